"""The programs of test_p2p.py."""

import array
import os
import re
import time

import numpy as np
from rankside import raise_flag, rank, size, world

from gormapy import MPI


def ring_of_buffers():
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (0, 1, 7, 1000, 300_000):
        for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16", "?", "f2", "g", "G"):
            out = (np.arange(count) * (rank + 1) % 100).astype(dtype)
            into = np.zeros(count + 1, dtype)
            request = world.Irecv(into, left, tag=count % 100)
            world.Send(out, right, tag=count % 100)
            status = MPI.Status()
            request.Wait(status)
            assert (into[:count] == (np.arange(count) * (left + 1) % 100).astype(dtype)).all()
            assert not into[count:].any()
            assert status.Get_source() == left and status.Get_tag() == count % 100
            assert status.Get_count(MPI.BYTE) == count * into.itemsize
    # no NumPy needed
    out, into = array.array("d", [rank] * 3), array.array("d", [-1] * 3)
    world.Sendrecv(out, right, 5, into, left, 5)
    assert into.tolist() == [left] * 3
    into = bytearray(2)
    world.Sendrecv(bytes([rank, 1]), right, 0, into, left)
    assert into == bytes([left, 1])


def modes_and_specifications():
    right, left = (rank + 1) % size, (rank - 1) % size
    out = np.arange(10, dtype="i4") + rank
    for send in (world.Isend, world.Issend, world.Ibsend):
        whole = [out, [out, 10], (out, MPI.INT), [out, "i"], [out, 10, MPI.INT]]
        skipping = [[out, (8, 2), "i4"], [out, 8, 2, MPI.INT]]
        for spec in whole + skipping:
            into = np.full(10, -1, "i4")
            request = send(spec, right, 3)
            world.Recv(into, left, 3)
            request.Wait()
            assert not request and request == MPI.REQUEST_NULL
            skipped = 2 if any(spec is s for s in skipping) else 0
            assert (into[: 10 - skipped] == (np.arange(10) + left)[skipped:]).all(), (spec, into)
    # every second element, as one item of a derived type
    every_second = MPI.INT.Create_vector(5, 1, 2).Commit()
    into = np.full(10, -1, "i4")
    request = world.Irecv([into, 1, every_second], left, 4)
    world.Send([out, 5, MPI.INT], right, 4)
    request.Wait()
    assert into[::2].tolist() == [left + i for i in range(5)] and (into[1::2] == -1).all()
    every_second.Free()
    value = np.array(float(rank))  # no dimension
    world.Sendrecv_replace(value, right, 0, left, 0)
    assert value == left


def wildcards_probe_and_order():
    if rank == 0:
        seen = {r: [] for r in range(size)}
        requests = [world.Isend(np.array([0, i]), 0, i % 3) for i in range(5)]
        for _ in range(5 * size):
            status = MPI.Status()
            world.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            assert world.Iprobe(status.source, status.tag)
            into = np.zeros(status.Get_count(MPI.LONG), int)
            world.Recv(into, status.source, status.tag)
            assert into[0] == status.source and into[1] % 3 == status.tag
            seen[status.source].append(int(into[1]))
        MPI.Request.Waitall(requests)
        for r, order in seen.items():
            assert order == list(range(5)), (r, order)
        assert not world.Iprobe()
    else:
        for i in range(5):
            world.Send(np.array([rank, i]), 0, i % 3)


def proc_null():
    into = np.full(3, 9)
    status = MPI.Status()
    world.Send(into, MPI.PROC_NULL)
    world.Recv(into, MPI.PROC_NULL, 0, status)
    assert (into == 9).all() and status.source == MPI.PROC_NULL and status.Get_count() == 0
    request = world.Irecv(into, MPI.PROC_NULL)
    status = MPI.Status()
    request.Wait(status)
    assert status.source == MPI.PROC_NULL and not request
    world.Send(None, MPI.PROC_NULL)
    world.Recv(None, MPI.PROC_NULL)
    world.send({}, MPI.PROC_NULL)
    assert world.recv(source=MPI.PROC_NULL) is None
    assert world.irecv(source=MPI.PROC_NULL).wait() is None
    assert world.mprobe(MPI.PROC_NULL).recv() is None
    assert world.sendrecv(1, MPI.PROC_NULL, source=MPI.PROC_NULL) is None


def persistent_requests():
    right, left = (rank + 1) % size, (rank - 1) % size
    out, into = np.zeros(100), np.zeros(100)
    requests = [world.Recv_init(into, left, 1), world.Send_init([out, MPI.DOUBLE], right, 1)]
    for step in range(20):
        out[:] = rank * 100 + step
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        assert (into == left * 100 + step).all()
    requests[0].Start()
    requests[1].Start()
    while not requests[0].Test():
        pass
    requests[1].Wait()
    assert requests[0] and requests[0] != MPI.REQUEST_NULL
    status = MPI.Status()
    requests[0].Wait(status)  # inactive: at once, with an empty status
    assert status.source == MPI.ANY_SOURCE and status.tag == MPI.ANY_TAG
    for request in requests:
        request.Free()
        assert not request


def completion_of_many():
    out = [np.full(4, 10 * rank + i) for i in range(size)]
    into = [np.zeros(4, int) for _ in range(size)]

    def start():
        receives = [world.Irecv(into[r], r, 0) for r in range(size)]
        return receives, [world.Isend(out[r], r, 0) for r in range(size)]

    receives, sends = start()
    left = set(range(size))
    while left:
        status = MPI.Status()
        i = MPI.Request.Waitany(receives, status)
        assert status.source == i
        left.remove(i)
    assert MPI.Request.Waitany(receives) == MPI.UNDEFINED
    assert MPI.Request.Testany(receives) == (MPI.UNDEFINED, True)
    MPI.Request.Waitall(sends)
    receives, sends = start()
    statuses = []
    MPI.Request.Waitall(receives + sends, statuses)
    assert [s.source for s in statuses[:size]] == list(range(size))
    receives, sends = start()
    done = []
    while len(done) < size:
        done += MPI.Request.Waitsome(receives)
    assert sorted(done) == list(range(size)) and MPI.Request.Waitsome(receives) is None
    while not MPI.Request.Testall(sends):
        pass
    assert [int(b[0]) for b in into] == [10 * r + rank for r in range(size)]


def objects():
    right, left = (rank + 1) % size, (rank - 1) % size

    def message(r, i):
        return [None, {"rank": r, "index": i}, "x" * i, np.arange(i) + r, (r, b"bytes")][i % 5]

    def same(a, b):
        return (a == b).all() if isinstance(a, np.ndarray) else a == b

    for i in (0, 1, 2, 3, 4, 60_003, 400_003):
        request = world.isend(message(rank, i), right, tag=i)
        status = MPI.Status()
        assert same(world.recv(source=left, tag=i, status=status), message(left, i))
        assert status.source == left and status.tag == i
        assert request.wait() is None
        later = world.irecv(source=left, tag=i)
        (world.ssend if rank % 2 else world.send)(message(rank, i), right, tag=i)
        assert same(later.wait(), message(left, i))
        assert same(world.sendrecv(message(rank, i), right, i, None, left, i), message(left, i))
    # exchanges that wait for what they send first
    sending = [world.isend("x" * 200_000, right, 1), world.isend({"a": rank}, right, 2)]
    receiving = [world.irecv(source=left, tag=1), world.irecv(source=left, tag=2)]
    assert MPI.Request.waitall(sending + receiving) == [None, None, "x" * 200_000, {"a": left}]
    world.isend([rank], right, 5).wait()
    matched = world.mprobe(left, 5)
    assert matched.recv() == [left] and not matched
    assert world.irecv(source=left, tag=77).test() == (False, None)


def a_receive_that_was_started_first_gets_the_first_object():
    if rank == 0:
        first = world.irecv(source=1)
        second = world.recv(source=1)
        assert (first.wait(), second) == ("first", "second")
    else:
        world.send("first", 0)
        world.send("second", 0)


def wrong_arguments_are_said():
    def refused(kind, pattern, call):
        try:
            call()
        except kind as error:
            assert re.search(pattern, str(error)), error
        else:
            raise AssertionError(pattern)

    a = np.zeros((4, 4))
    refused(ValueError, "expecting 2 to 4 items", lambda: world.Send([a], 0))
    refused(TypeError, "expecting a buffer.*lower-case", lambda: world.Send({"a": 1}, 0))
    refused(TypeError, "lower-case", lambda: world.Send([1, 2, 3], 0))
    refused(BufferError, "not contiguous: axis 0.*ascontiguousarray", lambda: world.Send(a[:, 1], 0))
    refused(BufferError, "read-only", lambda: world.Recv(b"abc", 0))
    refused(KeyError, "cannot map", lambda: world.Send([a, "nothing"], 0))
    refused(ValueError, "count 17 of 8-byte elements.*128", lambda: world.Send([a, 17, MPI.DOUBLE], 0))
    refused(ValueError, "negative count", lambda: world.Send([a, -1, MPI.DOUBLE], 0))
    refused(BufferError, "big-endian", lambda: world.Send(a.astype(">f8"), 0))
    refused(ValueError, "not a multiple", lambda: world.Send([bytearray(7), MPI.INT], 0))
    refused(TypeError, "dest", lambda: world.Send(a))


def messages_that_wait_for_room_go_out_while_the_sender_computes():
    count = 3000  # more than a ring holds
    if rank == 0:
        requests = [world.Isend(np.full(1000, i, "i4"), 1) for i in range(count)]
        end = time.monotonic() + 25
        while time.monotonic() < end and not os.path.exists("flag-done"):
            pass
        assert os.path.exists("flag-done"), "nothing moved while rank 0 computed"
        MPI.Request.Waitall(requests)
    else:
        time.sleep(0.2)  # rank 0 has left MPI
        into = np.zeros(1000, "i4")
        for i in range(count):
            world.Recv(into, 0)
            assert (into == i).all()
        raise_flag("done")


def messages_that_nobody_receives_do_not_fill_the_memory():
    """500 MiB are under way to a rank that waits for something else: most of it stays with the sender."""
    count, size = 64000, 8192

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    if rank == 0:
        data = np.arange(size // 8.0)
        requests = [world.Isend(data, 1, i % 100) for i in range(count)]
        world.Send(np.ones(1), 1, 200)
        world.Recv(np.zeros(1), 1)
        MPI.Request.Waitall(requests)
    elif rank == 1:
        before = resident()
        world.Recv(np.zeros(1), 0, 200)  # behind all of them
        assert resident() - before < 250 << 20, (before, resident())
        world.Send(np.ones(1), 0)
        data = np.zeros(size // 8)
        status = MPI.Status()
        for i in range(count):
            world.Recv(data, 0, MPI.ANY_TAG, status)
            assert status.Get_tag() == i % 100 and data[-1] == size // 8 - 1, i
    world.Barrier()
