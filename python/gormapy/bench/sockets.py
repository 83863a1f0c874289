"""Messages, Put and Get beside a plain loop over one TCP connection between the same two processes, in the same run.

Each row is compared with the faster of two plain loops: one waits in the kernel, the other polls the socket.
"""

import ctypes
import socket
from functools import partial

import numpy as np

from .label import label
from .pair import pair_of
from .timing import BUDGET, alternate, percentile, row

SIZES = (8, 64 << 10, 1 << 20, 4 << 20, 64 << 20)
STREAM = 16  # messages of a stream, or as many as have FILL bytes together
FILL = 64 << 20


def sockets(MPI, comm, budget=BUDGET):
    """Time messages, Put and Get beside a plain loop over a TCP connection between the same ranks."""
    pair = pair_of(MPI, comm, "sockets")
    if pair != MPI.COMM_NULL:
        if len(set(pair.allgather(socket.gethostname()))) > 1:
            raise SystemExit("sockets: the ranks are on two hosts, and the loops use one's loopback: run it on one")
        with _connected(pair) as connection:
            memory, answer = np.zeros(SIZES[-1], "b"), np.zeros(1, "b")
            loops = _Waiting(connection), _Polling(connection)
            for size in SIZES:
                yield from _messages(pair, loops, memory[:size], answer, budget)
            yield from _accesses(MPI, pair, loops, memory, answer, budget)
        pair.Free()
    comm.Barrier()


def _connected(pair):
    """Return a connection between ranks 0 and 1."""
    if pair.rank == 0:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(10)
            pair.bcast(server.getsockname()[1])
            connection, _ = server.accept()
    else:
        connection = socket.create_connection(("127.0.0.1", pair.bcast(None)), 10)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class _Waiting:
    """The loop whose calls wait in the kernel until all bytes are sent, or received."""

    def __init__(self, connection):
        self.connection = connection

    def sender(self, memory):
        return partial(self.connection.sendall, memory)

    def receiver(self, memory):
        return partial(self.connection.recv_into, memory, memory.size, socket.MSG_WAITALL)


class _Polling:
    """The loop whose calls return at once. Exceptions would be the larger part of a poll, so it calls the C library."""

    def __init__(self, connection):
        self.connection = connection
        self.recv = ctypes.PyDLL(None).recv
        self.recv.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self.recv.restype = ctypes.c_ssize_t

    def sender(self, memory):
        send, whole = self.connection.send, memoryview(memory)

        def call():
            rest = whole
            while rest:
                try:
                    rest = rest[send(rest, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    continue

        return call

    def receiver(self, memory):
        recv, number, begin = self.recv, self.connection.fileno(), memory.ctypes.data
        end = begin + memory.size

        def call():
            at = begin
            while at < end:
                got = recv(number, at, end - at, socket.MSG_DONTWAIT)
                if got > 0:
                    at += got
                elif got == 0:
                    raise ConnectionError("sockets: the other rank has closed the connection")

        return call


def _there_and_back(pair, sender, receiver, there, back):
    """Return the call that sends `there` from rank 0 to rank 1, and then `back`."""
    if pair.rank == 0:
        return _sequence(sender(there), receiver(back))
    return _sequence(receiver(there), sender(back))


def _sequence(first, second):
    def call():
        first()
        second()

    return call


def _one_way(pair, count, sender, receiver, memory, answer):
    """Return the call that sends `memory` from rank 0 to rank 1, `count` times, and then an answer."""
    move, end = (sender(memory), receiver(answer)) if pair.rank == 0 else (receiver(memory), sender(answer))

    def call():
        for _ in range(count):
            move()
        end()

    return call


def _messages(pair, loops, memory, answer, budget):
    """Yield the rows of messages of a size: there and back, and many one way before a short answer."""
    peer, size = 1 - pair.rank, memory.size
    ways = [(lambda part: partial(pair.Send, part, peer), lambda part: partial(pair.Recv, part, peer))]
    ways += [(loop.sender, loop.receiver) for loop in loops]
    calls = [_there_and_back(pair, *way, memory, memory) for way in ways]
    yield _beside(f"Send/Recv half round trip {label(size)}", alternate(calls, budget, comm=pair), 2)
    count = max(2, min(STREAM, FILL // size))
    calls = [_one_way(pair, count, *way, memory, answer) for way in ways]
    result = _beside(f"{count} Send/Recv {label(size)} + answer, each", alternate(calls, budget, comm=pair), count)
    yield {**result, "MB/s": round(size / result["us"], 1)}


def _accesses(MPI, pair, loops, memory, answer, budget):
    """Yield the rows of Put and Get by rank 0 on rank 1, which waits in a barrier."""
    win = MPI.Win.Allocate(memory.size, 1, comm=pair)
    if pair.rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
    for name, transfer in (("Put", win.Put), ("Get", win.Get)):
        for size in SIZES:
            part = memory[:size]
            there, back = (part, answer) if name == "Put" else (answer, part)
            access = _sequence(partial(transfer, part, 1), partial(win.Flush, 1)) if pair.rank == 0 else _nothing
            calls = [access, *(_there_and_back(pair, loop.sender, loop.receiver, there, back) for loop in loops)]
            yield _beside(f"{name} {label(size)} + Flush", alternate(calls, budget, comm=pair))
    if pair.rank == 0:
        win.Unlock(1)
    win.Free()


def _nothing():
    """Do what the target of a one-sided call does."""


def _beside(what, found, parts=1):
    """Return the row of the first of several calls, each of which did `parts` things, beside the fastest other."""
    times, *others = ([t / parts for t in seconds] for seconds in found)
    plain = min(percentile(seconds, 50) for seconds in others)
    ratio = percentile(times, 50) / plain
    return row(f"{what}, beside a socket", times, socket=round(1e6 * plain, 3), ratio=round(ratio, 3))
