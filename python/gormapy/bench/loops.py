"""What is measured. Each function takes the MPI module and a communicator and is called by all its ranks.

It returns rows on rank 0, and anything on the others.
"""

import os
from time import perf_counter, sleep

import numpy as np

from .timing import batches, row

SIZES = (8, 65536, 1 << 20, 4 << 20)


def label(size):
    """Write a number of bytes as people do."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def windows(MPI, comm, size):
    """Make a window in each of the two ways: of the library's memory and of the user's."""
    yield "Win.Allocate", MPI.Win.Allocate(size, 1, comm=comm)
    memory = np.zeros(size, "b")
    yield "Win.Create", MPI.Win.Create(memory, 1, comm=comm)


def put_latency(MPI, comm):
    """Time Put + Flush, and the other one-sided calls, from rank 0 to rank 1 that waits in a barrier."""
    rows = []
    peer = 1 if comm.size > 1 else 0
    for kind, win in windows(MPI, comm, SIZES[-1]):
        if comm.rank == 0:
            win.Lock(peer, MPI.LOCK_SHARED)
            for name, size, call in _one_sided(MPI, win, peer):
                seconds = batches(comm, call, budget=0.3, together=False)
                rows.append(row(f"{name} {label(size)} + Flush, {kind}", seconds))
            win.Unlock(peer)
            for name, call in _epochs(MPI, win, peer):
                rows.append(row(f"{name}, {kind}", batches(comm, call, budget=0.3, together=False)))
        comm.Barrier()
        win.Free()
    return rows


def _one_sided(MPI, win, peer):
    flush = win.Flush
    for name, method in (("Put", win.Put), ("Get", win.Get)):
        for size in SIZES:
            memory = np.zeros(size, "b")

            def call(method=method, memory=memory):
                method(memory, peer)
                flush(peer)

            yield name, size, call
    one, old, new = np.ones(1), np.zeros(1), np.zeros(1, "l")
    expected, found = np.zeros(1, "l"), np.zeros(1, "l")

    def accumulate():
        win.Accumulate(one, peer, op=MPI.SUM)
        flush(peer)

    def fetch_and_op():
        win.Fetch_and_op(one, old, peer, 0, MPI.SUM)
        flush(peer)

    def compare_and_swap():
        win.Compare_and_swap(new, expected, found, peer, 0)
        flush(peer)

    yield "Accumulate", 8, accumulate
    yield "Fetch_and_op", 8, fetch_and_op
    yield "Compare_and_swap", 8, compare_and_swap


def _epochs(MPI, win, peer):
    memory = np.zeros(8, "b")

    def lock_put_unlock():
        win.Lock(peer, MPI.LOCK_SHARED)
        win.Put(memory, peer)
        win.Unlock(peer)

    yield "Lock + Put 8 B + Unlock", lock_put_unlock


def fence(MPI, comm):
    """Time a Put to the right-hand neighbour and a Fence, on all ranks."""
    rows = []
    right = (comm.rank + 1) % comm.size
    memory = np.zeros(8, "b")
    for kind, win in windows(MPI, comm, 8):
        win.Fence()

        def put_fence(win=win):
            win.Put(memory, right)
            win.Fence()

        rows.append(row(f"Put 8 B + Fence, {kind}", batches(comm, put_fence)))
        rows.append(row(f"Fence, {kind}", batches(comm, win.Fence)))
        win.Fence(MPI.MODE_NOSUCCEED)
        win.Free()
    return rows


def pingpong(MPI, comm):
    """Time half a round trip of Send and Recv between ranks 0 and 1."""
    rows = []
    pair = comm.Split(0 if comm.rank < 2 else MPI.UNDEFINED)
    if pair != MPI.COMM_NULL:
        if pair.size < 2:
            raise SystemExit("pingpong: it takes 2 ranks, and there is 1: use -n 2")
        peer = 1 - pair.rank
        for size in SIZES:
            memory = np.zeros(size, "b")

            def call(memory=memory):
                if peer:
                    pair.Send(memory, peer)
                    pair.Recv(memory, peer)
                else:
                    pair.Recv(memory, peer)
                    pair.Send(memory, peer)

            times = [t / 2 for t in batches(pair, call)]
            rows.append(row(f"Send/Recv half round trip {label(size)}", times))
        pair.Free()
    comm.Barrier()
    return rows


def ring(MPI, comm):
    """Time a turn of persistent requests around the ring of all ranks."""
    out, into = np.zeros(1, "i"), np.zeros(1, "i")
    requests = [
        comm.Send_init(out, (comm.rank + 1) % comm.size),
        comm.Recv_init(into, (comm.rank - 1) % comm.size),
    ]
    start_send, start_recv, waitall = requests[0].Start, requests[1].Start, MPI.Request.Waitall

    def turn():
        start_send()
        start_recv()
        waitall(requests)

    times = batches(comm, turn)
    for request in requests:
        request.Free()
    return [row("persistent ring (Start 2, Waitall)", times)]


def barrier(MPI, comm):
    """Time the barrier and small and large reductions on all ranks."""
    rows = [row("Barrier", batches(comm, comm.Barrier))]
    for size in (8, 1 << 20):
        send, recv = np.zeros(size // 8), np.zeros(size // 8)

        def reduce(send=send, recv=recv):
            comm.Allreduce(send, recv)

        rows.append(row(f"Allreduce {label(size)}", batches(comm, reduce)))
    return rows


def passive(MPI, comm, busy=3.0):
    """Time Lock/Put/Flush/Unlock to rank 1 while it computes in pure Python and calls no MPI."""
    rows = []
    if comm.size < 2:
        raise SystemExit("passive: it takes 2 ranks, and there is 1: use -n 2")
    way = ", GORMAPY_ONE_COPY=0" if os.environ.get("GORMAPY_ONE_COPY") == "0" else ""
    for kind, win in windows(MPI, comm, 8):
        memory = np.zeros(8, "b")
        comm.Barrier()
        seconds = []
        if comm.rank == 1:
            _compute(busy)
        elif comm.rank == 0:
            begin = perf_counter()
            sleep(0.1)  # until it computes for certain
            while perf_counter() < begin + busy - 0.3:
                start = perf_counter()
                win.Lock(1)
                win.Put(memory, 1)
                win.Flush(1)
                win.Unlock(1)
                seconds.append(perf_counter() - start)
        comm.Barrier()
        win.Free()
        if comm.rank == 0:
            most = round(1e6 * max(seconds), 1)
            rows.append(row(f"Lock + Put 8 B + Flush + Unlock to a computing rank, {kind}{way}", seconds, max=most))
    return rows


def _compute(seconds):
    end, total = perf_counter() + seconds, 0
    while perf_counter() < end:
        for i in range(1000):
            total += i * i
    return total


LOOPS = {loop.__name__: loop for loop in (put_latency, fence, pingpong, ring, barrier, passive)}
RANKS = {"put_latency": 2, "fence": 2, "pingpong": 2, "ring": 4, "barrier": 4, "passive": 2}
