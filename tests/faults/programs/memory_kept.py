"""The programs of test_memory_kept.py."""

import contextlib
import gc
import mmap
import os
import signal
import threading
import time
import weakref

import numpy as np
from rankside import await_flag, fails, interrupted, interrupted_in_a_wait, raise_flag, rank, reset, stamp, until, world

from gormapy import MPI
from gormapy._ext import fast

SIZE = 1 << 20
COUNT = 3 << 18  # of integers in collectives of three ranks


class Mapped(np.ndarray):
    """An array that is a mapping of its own: its memory is unmapped with it, and the next one has the same address."""


def mapped(value=0, count=SIZE):
    array = np.frombuffer(mmap.mmap(-1, 8 * count), "i8").view(Mapped)
    array[:] = value
    return array


def nothing_is_kept():
    until(lambda: fast.kept() == 0, lambda: "it lasts", 25)


def others():
    """Return what lies where freed memory was."""
    return [mapped(7) for _ in range(4)]


def released(alive, around):
    """Expect that an array is kept no longer than it has to be, and that nothing was written where it was not."""
    nothing_is_kept()
    assert alive() is None
    assert all((other == 7).all() for other in around), [other[0] for other in around]


COLLECTIVES = {
    "Ibcast(a)": (world.Ibcast, lambda a: a == 1),
    "Iallreduce(MPI.IN_PLACE, a)": (lambda a: world.Iallreduce(MPI.IN_PLACE, a), lambda a: a == 6),
    "Iallgather(MPI.IN_PLACE, a)": (lambda a: world.Iallgather(MPI.IN_PLACE, a), lambda a: a == THIRDS),
    "Ialltoall(MPI.IN_PLACE, a)": (lambda a: world.Ialltoall(MPI.IN_PLACE, a), lambda a: a == THIRDS),
}
THIRDS = np.repeat([1, 2, 3], COUNT // 3)

SENDS = {
    "Send(array, 1)": lambda array: world.Send(array, 1),
    "Ssend(array, 1)": lambda array: world.Ssend(array, 1),
    "Sendrecv(array, 1, 0, np.zeros(1), 1, 9)": lambda array: world.Sendrecv(array, 1, 0, np.zeros(1), 1, 9),
}

WAITS = {
    "Recv(array, 1)": lambda array: world.Recv(array, 1),
    "Irecv(array, 1).Wait()": lambda array: world.Irecv(array, 1).Wait(),
    "Bcast(array, 1)": lambda array: world.Bcast(array, 1),
    "Allreduce(array, mapped())": lambda array: world.Allreduce(array, mapped()),
}

CALLS_OF_A_STOPPED_PEER = {
    "Recv": lambda array: world.Recv(array, 1),
    "Irecv, status": lambda array: world.Irecv([array, SIZE, MPI.INT64_T], 1).Wait(MPI.Status()),
    "Sendrecv": lambda array: world.Sendrecv(np.zeros(1), 0, 5, array, 1),
}


def receive(end):
    if rank == 0:
        array = mapped()
        alive = weakref.ref(array)
        request = world.Irecv(array, 1)
        if end == "request.Free()":
            request.Free()
        else:
            del request
        del array
        around = others()
        world.Barrier()
        released(alive, around)
    else:
        world.Barrier()
        world.Send(mapped(1), 0)


def send(call, end, count):
    MPI.Attach_buffer(np.zeros(1 << 24, "u1"))
    if rank == 0:
        for k in range(5):
            array = mapped(k, count)
            alive = weakref.ref(array)
            request = getattr(world, call)(array, 1)
            if end == "request.Free()":
                request.Free()
            else:
                del request
            del array
            around = others()
            world.Barrier()
            world.Recv(np.zeros(1), 1)
            released(alive, around)
    else:
        for k in range(5):
            got = np.zeros(count, "i8")
            world.Barrier()
            world.Recv(got, 0)
            assert (got == k).all(), (k, got[:3], got[-3:])
            world.Send(np.zeros(1), 0)
    MPI.Detach_buffer()


def collective(call):
    start, result = COLLECTIVES[call]
    a = mapped(rank + 1, COUNT)
    if rank == 1:
        alive = weakref.ref(a)
        request = start(a)
        request.Free()
        del request, a
        around = others()
        raise_flag("freed")
        released(alive, around)
    else:
        await_flag("freed")
        request = start(a)
        request.Wait()
        assert result(a).all(), a
    world.Barrier()


def started_and_interrupted(count):
    integer = MPI.INT64_T
    if rank == 0:
        array = mapped(5, count)
        alive = weakref.ref(array)
        fast.p2p(fast.SEND, world._h, array.ctypes.data, count, integer._h, 1, 3, array)  # nobody takes it
        del array
        around = others()
        world.Barrier()
        world.Recv(np.zeros(1), 1)
        nothing_is_kept()
        assert alive() is None
        # a receive does not take the message of another one
        array = mapped(0, count)
        alive = weakref.ref(array)
        fast.p2p(fast.RECV, world._h, array.ctypes.data, count, integer._h, 1, 4, array)
        del array
        assert alive() is None
        around += others()
        world.Barrier()
        got = np.zeros(count, "i8")
        world.Recv(got, 1, 4)
        assert (got == 6).all()
        assert all((other == 7).all() for other in around)
    else:
        world.Barrier()
        got = np.zeros(count, "i8")
        world.Recv(got, 0, 3)
        assert (got == 5).all(), got
        world.Send(np.zeros(1), 0)
        world.Barrier()
        world.Send(np.full(count, 6), 0, 4)


def interrupted_sends_come_whole(call):
    if rank == 0:
        array = mapped(5)
        alive = weakref.ref(array)
        with interrupted():
            SENDS[call](array)
        del array
        around = others()
        world.Barrier()
        world.Recv(np.zeros(1), 1)
        gc.collect()
        nothing_is_kept()
        until(lambda: alive() is None, lambda: "the array is kept", 25)
        assert all((other == 7).all() for other in around)
    else:
        world.Barrier()
        got = mapped()
        world.Recv(got, 0)
        assert (got == 5).all()
        world.Send(np.zeros(1), 0)


def the_end_does_not_wait_for_interrupted_sends():
    if rank == 0:
        with interrupted():
            world.Send(mapped(5), 1)
        world.Barrier()
        stamp("done")
    else:
        world.Barrier()


def interrupted_calls_give_memory_back(call):
    if rank == 0:
        array = mapped(5)
        alive = weakref.ref(array)
        with interrupted_in_a_wait():
            WAITS[call](array)
        del array
        gc.collect()
        if call == "Recv(array, 1)":
            assert alive() is None
    else:
        time.sleep(0.5)
    reset()
    if rank == 0:
        nothing_is_kept()
        assert alive() is None


def nothing_is_collected_for_good():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    before = None
    for k in range(400):
        if rank == 0:
            world.Isend(mapped(k, 1 << 16), 1).Free()
        else:
            world.Irecv(mapped(0, 1 << 16), 0).Free()
        if k % 20 == 19:
            world.Barrier()
            nothing_is_kept()
        if k == 99:
            before = resident()
    assert resident() - before < 20 << 20


def a_network_that_may_still_write(call):
    if rank == 0:
        other = world.recv(source=1)
        array = mapped()
        alive = weakref.ref(array)
        world.Barrier()
        time.sleep(0.3)
        os.kill(other, signal.SIGSTOP)
        with interrupted_in_a_wait():
            CALLS_OF_A_STOPPED_PEER[call](array)
        del array
        gc.collect()
        around = others()
        kept = fast.kept(), alive() is not None
        os.kill(other, signal.SIGCONT)
        nothing_is_kept()
        gc.collect()
        assert alive() is None
        assert all((other == 7).all() for other in around)
        assert kept[0] and kept[1], kept
    else:
        world.send(os.getpid(), 0)
        request = world.Isend(mapped(1), 0)
        world.Barrier()
        try:
            request.Wait()
        except MPI.Exception as e:
            print(e)


SENDS_TO_A_STOPPED_PEER = {
    "Allreduce": lambda comm, array: comm.Allreduce(array, mapped()),
    "Scan": lambda comm, array: comm.Scan(array, mapped()),
}


def a_collective_that_fails_while_a_peer_may_read(call):
    comm = world.Dup()
    SENDS_TO_A_STOPPED_PEER[call](comm, mapped())
    if rank == 0:
        other = world.recv()
        time.sleep(0.3)  # until the other rank waits in the collective
        os.kill(other, signal.SIGSTOP)
        revokes = threading.Timer(0.3, comm.Revoke)
        array = mapped(1)
        alive = weakref.ref(array)
        revokes.start()
        with fails(MPI.ERR_REVOKED):
            SENDS_TO_A_STOPPED_PEER[call](comm, array)
        revokes.join()
        del array
        gc.collect()
        kept = fast.kept(), alive() is not None
        os.kill(other, signal.SIGCONT)
        reset()  # a peer that finds the communicator revoked does not receive what was sent before
        nothing_is_kept()
        gc.collect()
        assert alive() is None
        assert kept[0] and kept[1], kept
    else:
        world.send(os.getpid(), 0)
        with contextlib.suppress(MPI.Exception):
            SENDS_TO_A_STOPPED_PEER[call](comm, mapped(2))
        reset()


def receive_in_a_cycle():
    if rank == 0:
        array = mapped()
        alive = weakref.ref(array)
        cycle = [world.Irecv(array, 1)]
        cycle.append(cycle)
        del array, cycle
        gc.collect()
        assert alive() is not None and fast.kept() == 1
        around = others()
        world.Barrier()
        released(alive, around)
    else:
        world.Barrier()
        world.Send(mapped(1), 0)


def others_of_a_list_that_is_refused(first):
    if rank == 0:
        array, small = mapped(), np.zeros(1)
        active, completed = world.Irecv(array, 1, 5), world.Irecv(small, 1, 6)
        MPI.Request(completed).Wait()  # a copy of it
        requests = [completed, active] if first == "completed" else [active, completed]
        statuses = []
        del array
        if first == "completed":
            with fails(MPI.ERR_REQUEST):
                MPI.Request.Testall(requests, statuses)
            errors = [status.Get_error() for status in statuses]
            assert errors == [MPI.ERR_REQUEST, MPI.ERR_PENDING], errors
            assert not completed and active
        assert not MPI.Request.Testall(requests)
        around = others()
        world.Barrier()
        while active:
            try:
                MPI.Request.Testall(requests)
            except MPI.Exception as e:
                assert e == MPI.ERR_REQUEST or e.Get_error_class() == MPI.ERR_REQUEST, e
        assert MPI.Request.Testall(requests)
        assert all((other == 7).all() for other in around), [other[0] for other in around]
    else:
        world.Send(np.ones(1), 0, 6)
        world.Barrier()
        world.Send(mapped(1), 0, 5)
