"""The programs of test_bad_memory.py."""

import functools
import mmap
import threading
import time

import numpy as np
from badmemory import PAGE, faults, protect, protected, truncated
from rankside import fails, rank, size, world

from gormapy import MPI
from gormapy._ext import fast


def what_is_applied_is_not_applied_again():
    one, other = np.ones(1, "i8"), np.zeros(1, "i8")
    win = MPI.Win.Allocate(8, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        faults(win.Fetch_and_op, one, protected()[:1], 1, flush=win.Flush_all)
        win.Get(other, 1)
        win.Flush(1)
        assert other[0] in (0, 1), other
    win.Unlock_all()
    win.Free()


def threads_fault_at_once():
    one = np.ones(1, "i8")
    win = MPI.Win.Allocate(1 << 20, 8, comm=world)
    win.Lock_all()
    bad, good = protected(), np.ones(1 << 16, "i8")

    def work():
        for _ in range(300):
            faults(win.Put, bad, 0)
            win.Put(good, 0)
            faults(win.Fetch_and_op, one, bad[:1], 0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    win.Unlock_all()
    win.Free()


def tokens_of_channels():
    one = np.ones(1, "i8")
    win = MPI.Win.Allocate(2 * PAGE, 8, comm=world)
    at = MPI.Get_address(win.tomemory())
    word = fast.Word(win._h, -1, at, win, "word")
    bad = truncated()
    there = MPI.Get_address(bad)
    faults(word.put, at + 8, bad[:1], 8, 1)
    faults(word.copy_in, at + 8, bad[:1])
    faults(word.move, at + 8, there, 8, 1)
    faults(word.take, there, 8, 1)
    faults(word.take_into, at + 8, bad[:1], 1)
    assert word.load() == 0  # nothing was announced
    word.put(at + 8, one, 8, 1)
    assert word.load() == 1 and word.take(at + 8, 8, 2) == one.tobytes()
    win.Free()


def calls_that_only_copy():
    vector = MPI.INT64_T.Create_vector(2, 1, 2).Commit()
    for bad in truncated(), protected():
        good = np.zeros(PAGE // 8, "i8")
        faults(MPI.INT64_T.Pack, bad, good, 0, world)
        faults(MPI.INT64_T.Unpack, bad, 0, good, world)
        faults(MPI.INT64_T.Unpack, good, 0, bad, world)
        faults(vector.Pack, bad[:4], good, 0, world)
        faults(MPI.SUM.Reduce_local, bad, good)
        faults(MPI.SUM.Reduce_local, good, bad)
        assert not good.any()


def addresses_where_no_memory_lies():
    low, good = MPI.memory.fromaddress(8, 64), np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    for call in (
        lambda: MPI.DOUBLE.Pack(low, good, 0, world),
        lambda: MPI.DOUBLE.Pack(good, low, 0, world),
        lambda: MPI.DOUBLE.Unpack(low, 0, good, world),
        lambda: MPI.DOUBLE.Unpack(good, 0, low, world),
        lambda: MPI.SUM.Reduce_local([low, MPI.DOUBLE], good),
        lambda: MPI.SUM.Reduce_local(good, [low, MPI.DOUBLE]),
        lambda: MPI.Win.Create(low, comm=world),
        lambda: win.Attach(low),
        lambda: world.Send([low, MPI.DOUBLE], 0),
    ):
        with fails(MPI.ERR_BUFFER):
            call()
    for position in (-1, 65, 2**63 - 8):
        with fails(MPI.ERR_ARG):
            MPI.DOUBLE.Pack(good, np.zeros(64, "u1"), position, world)
        with fails(MPI.ERR_ARG):
            MPI.DOUBLE.Unpack(np.zeros(64, "u1"), position, good, world)
    nothing = MPI.memory.fromaddress(8, 0)
    assert MPI.DOUBLE.Pack(nothing, nothing, 0, world) == 0
    MPI.Win.Create(nothing, comm=world).Free()
    win.Free()


def messages_longer_than_any_memory():
    vector, array = MPI.DOUBLE.Create_vector(3, 1, 2).Commit(), np.zeros(6)
    to, source = (rank + 1) % size, (rank - 1) % size
    for count in 1 << 30, 1 << 40, 1 << 50:
        message = [array, count, vector]
        for call in (
            lambda message=message: world.Send(message, to),
            lambda message=message: world.Ssend(message, to),
            lambda message=message: world.Isend(message, to).Wait(),
            lambda message=message: world.Issend(message, to).Wait(),
            lambda message=message: world.Sendrecv(message, to, 0, array, source),
        ):
            with fails(MPI.ERR_BUFFER):
                call()
    world.Barrier()
    assert not world.Iprobe()
    vector.Free()


# Calls of all ranks with an array, a datatype and a count.
OF_ALL = {
    "Bcast": lambda a, n, t: world.Bcast([a, n, t]),
    "Ibcast": lambda a, n, t: world.Ibcast([a, n, t]).Wait(),
    "Gather": lambda a, n, t: world.Gather([a, n, t], [a.copy(), n, t]),
    "Scatter": lambda a, n, t: world.Scatter([a, n, t], [a.copy(), n, t]),
    "Allgather": lambda a, n, t: world.Allgather([a, n, t], [a.copy(), n, t]),
    "Alltoall": lambda a, n, t: world.Alltoall([a, n, t], [a.copy(), n, t]),
    "Ialltoall": lambda a, n, t: world.Ialltoall([a, n, t], [a.copy(), n, t]).Wait(),
    "Gatherv": lambda a, n, t: world.Gatherv([a, n, t], [a.copy(), ([n] * size, [0] * size), t]),
    "Alltoallv": lambda a, n, t: world.Alltoallv(*[[b, ([n] * size, [0] * size), t] for b in (a, a.copy())]),
    "Alltoallw": lambda a, n, t: world.Alltoallw(*[[b, ([n] * size, [0] * size), [t] * size] for b in (a, a.copy())]),
    "Allreduce": lambda a, n, t: world.Allreduce([a, n, t], [a.copy(), n, t]),
    "Iallreduce": lambda a, n, t: world.Iallreduce([a, n, t], [a.copy(), n, t]).Wait(),
    "Reduce": lambda a, n, t: world.Reduce([a, n, t], [a.copy(), n, t]),
    "Reduce_scatter_block": lambda a, n, t: world.Reduce_scatter_block([a, n, t], [a.copy(), n, t]),
    "Scan": lambda a, n, t: world.Scan([a, n, t], [a.copy(), n, t]),
}


def collectives_longer_than_any_memory(call):
    vector, array = MPI.DOUBLE.Create_vector(3, 1, 2).Commit(), np.zeros(6)
    for count in 1 << 40, 1 << 50:
        if size > 1 or call not in ("Bcast", "Ibcast"):  # one rank alone copies nothing
            try:
                OF_ALL[call](array, count, vector)
            except (MPI.Exception, ValueError) as e:
                assert isinstance(e, ValueError) or e.Get_error_class() in (MPI.ERR_BUFFER, MPI.ERR_OTHER), e
            else:
                assert rank and call in ("Reduce", "Gather", "Gatherv"), "no error"
        world.Barrier()
    assert world.allreduce(1) == size
    vector.Free()


SEVERAL = {
    "Waitany": lambda requests: MPI.Request.Waitany(requests) == 1,
    "waitany": lambda requests: MPI.Request.waitany(requests)[0] == 1,
    "Testany": lambda requests: MPI.Request.Testany(requests) == (1, True),
    "Waitsome": lambda requests: MPI.Request.Waitsome(requests) == [1],
    "Testsome": lambda requests: MPI.Request.Testsome(requests) == [1],
    "Testall": MPI.Request.Testall,
}


def shares(array):
    """Return the specification of a buffer of Alltoallw that has one element for each rank, at its beginning."""
    return [array, [1] * size, [0] * size, [MPI.INT64_T] * size]


# Calls with what each needs of an array, one to write into, and an operation.
GENERAL = {
    "Alltoallw": lambda call, array, into, op: call(shares(array), shares(into)),
    "Allreduce": lambda call, array, into, op: call(array, into, op),
    "Scan": lambda call, array, into, op: call(array, into, op),
    "Reduce": lambda call, array, into, op: call(array, into, op, 0),
    "Reduce_scatter_block": lambda call, array, into, op: call(array, into[: len(into) // size], op),
    "Reduce_scatter": lambda call, array, into, op: call(
        array, into[: len(into) // size], [len(into) // size] * size, op
    ),
}


def copies_of_any_length():
    length = 64 * PAGE
    win = MPI.Win.Allocate(length, 1, comm=world)
    memory = mmap.mmap(-1, length + PAGE)
    buffer = np.frombuffer(memory, "u1")
    protect(buffer[length:])
    buffer[:length] = np.arange(length) % 251
    tail = np.zeros(length, "u1")
    win.Lock(0)
    for n in [*range(1, 300), 4095, 4096, 65536, 65537, length - 1]:
        faults(win.Put, buffer[length - n + 1 : length + 1], 0)
        win.Put(buffer[length - n : length], 0)
        win.Get(tail[:n], 0)
        assert (tail[:n] == buffer[length - n : length]).all(), n
        faults(win.Get, buffer[length - n + 1 : length + 1], 0)
    win.Unlock(0)
    win.Free()


def one_of_several_requests(call, both):
    if rank == 0:
        bad, good = truncated(), np.zeros(4)
        requests = [world.Irecv(bad, 1, 1), world.Irecv(good, 1, 2)]
        world.Barrier()
        if both:
            world.Recv(np.zeros(1), 1, 3)  # which comes last: both have come
        end, said = time.monotonic() + 10, 0
        while True:
            assert time.monotonic() < end
            try:
                if SEVERAL[call](requests):
                    break
            except MPI.Exception as e:
                assert e.Get_error_class() == MPI.ERR_BUFFER, e
                said += 1
                assert not requests[0]
                if call != "Testall":
                    assert requests[1]
                    world.Send(np.zeros(1), 1)
                else:
                    break
        assert said == 1 and (good == 1).all() and not any(requests), (said, good)
    else:
        world.Barrier()
        world.Send(np.zeros(PAGE // 8, "i8"), 0, 1)
        if not both and call != "Testall":
            world.Recv(np.zeros(1), 0)
        world.Send(np.ones(4), 0, 2)
        world.Send(np.zeros(1), 0, 3)
        if both and call != "Testall":
            world.Recv(np.zeros(1), 0)


def collectives_with_functions_and_types(call, way):
    def add(a, b, datatype):
        np.frombuffer(b, "i8")[:] += np.frombuffer(a, "i8")

    op = MPI.Op.Create(add, True)
    collective = getattr(world, "I" + call.lower() if way == "I" else call + way)
    array, into = np.ones(510, "i8"), np.zeros(510, "i8")
    if rank == 0:
        good, array = array, truncated()[:510]
    needs = rank == 0 or call != "Reduce"
    for _ in range(3):
        try:
            request = GENERAL[call](collective, array, into, op)
            if way == "_init":
                request.Start()
            if request is not None:
                request.Wait()
        except MPI.Exception as e:
            assert needs, e
            assert e.Get_error_class() == (MPI.ERR_OTHER if rank else MPI.ERR_BUFFER), e
            assert rank == 0 or "rank 0" in str(e), e
        else:
            assert not needs
        world.Barrier()
    if call != "Alltoallw":  # which stores what arrives, whatever becomes of the rest
        assert not into.any()
    into[:] = 0
    if rank == 0:
        array = good
    request = GENERAL[call](collective, array, into, op)
    if way == "_init":
        request.Start()
    if request is not None:
        request.Wait()
    if call == "Allreduce":
        assert (into == size).all(), into
    if call in ("Reduce_scatter", "Reduce_scatter_block"):
        assert (into[: 510 // size] == size).all(), into
    if call == "Scan":
        assert (into == rank + 1).all(), into
    if call == "Alltoallw":
        assert into[0] == 1 and not into[1:].any(), into


@functools.cache
def everybody():
    """Return a communicator in which all others are neighbors."""
    others = [r for r in range(size) if r != rank]
    return world.Create_dist_graph_adjacent(others, others)


# Calls with what each sends, and what it receives, of 12 parts. Rank 1 is the root.
LONG = {
    "Neighbor_allgather": lambda array, into: everybody().Neighbor_allgather(
        array[: len(into) // size], into[len(into) // size :]
    ),
    "Neighbor_alltoall": lambda array, into: everybody().Neighbor_alltoall(
        array[len(into) // size :], into[len(into) // size :]
    ),
    "Neighbor_alltoallw": lambda array, into: everybody().Neighbor_alltoallw(
        *(
            [
                buf,
                [len(into) // size] * (size - 1),
                [r * len(into) // size * 8 for r in range(1, size)],
                [MPI.LONG] * (size - 1),
            ]
            for buf in (array, into)
        )
    ),
    "Bcast": lambda array, into: world.Bcast(array if rank == 1 else into, root=1),
    "Gather": lambda array, into: world.Gather(array[: len(into) // size], into, root=1),
    "Scatter": lambda array, into: world.Scatter(array, into[: len(array) // size], root=1),
    "Allgather": lambda array, into: world.Allgather(array[: len(into) // size], into),
    "Alltoall": world.Alltoall,
    "Gatherv": lambda array, into: world.Gatherv(array[: len(into) // size], into, root=1),
    "Scatterv": lambda array, into: world.Scatterv(array, into[: len(array) // size], root=1),
    "Allgatherv": lambda array, into: world.Allgatherv(array[: len(into) // size], into),
    "Alltoallv": world.Alltoallv,
    "Reduce": lambda array, into: world.Reduce(array, into, root=1),
    "Allreduce": world.Allreduce,
    "Reduce_scatter_block": lambda array, into: world.Reduce_scatter_block(array, into[: len(array) // size]),
}


def long_collectives(call):
    for pages in 3, 12, 48, 240, 1200:
        for make in truncated, protected:
            victim = 1 if call in ("Bcast", "Scatter", "Scatterv") else 0
            into, good = np.zeros(pages * PAGE // 8, "i8"), np.ones(pages * PAGE // 8, "i8")
            error = None
            try:
                LONG[call](make(pages) if rank == victim else good, into)
            except MPI.Exception as e:
                error = e
            errors = world.allgather(error and (error.Get_error_class(), str(error)))
            assert errors[victim] and errors[victim][0] == MPI.ERR_BUFFER, errors
            assert "can't be read or written" in errors[victim][1], errors
            assert errors[1 - victim], errors
            LONG[call](good, into)  # the same again
            receives = rank != 1 if call == "Bcast" else rank == 1 or call not in ("Gather", "Gatherv", "Reduce")
            assert into.any() == receives


def memory_that_comes_and_goes():
    """All that a Put over a network writes is there if it has no error, though a part of the memory faults now and then."""
    pages = 250
    mine = protected(pages)
    protect(mine, False)
    some = mine[200 * PAGE // 8 : 210 * PAGE // 8]
    win = MPI.Win.Create(mine, 8, comm=world)
    puts = threading.Event()

    def toggle():
        while not puts.is_set():
            protect(some)
            time.sleep(0.00005)
            protect(some, False)
            time.sleep(0.0002)

    thread = threading.Thread(target=toggle)
    if rank == 1:
        thread.start()
    for turn in range(1, 201):
        win.Lock_all()
        error = None
        if rank == 0:
            try:
                win.Put(np.full(len(mine), turn), 1)
                win.Flush(1)
            except MPI.Exception as e:
                error = e.Get_error_class()
        try:
            win.Unlock_all()
        except MPI.Exception as e:
            error = e.Get_error_class()
        error = world.bcast(error)
        assert error in (None, MPI.ERR_BUFFER), error
        if rank == 1 and error is None:
            around = np.concatenate((mine[: 200 * PAGE // 8], mine[210 * PAGE // 8 :]))
            assert (around == turn).all(), (turn, np.flatnonzero(around != turn))
        world.Barrier()
    puts.set()
    if rank == 1:
        thread.join()
        assert (mine == 200).all() or error
    win.Free()
