"""Memory of an operation that nobody waits for any more stays until the operation is over, and then goes."""

import functools
import json
import subprocess
import sys

import pytest
from support.mpirun import environment


@functools.cache
def why_not(transport):
    """Say why jobs can't use a transport on this machine, or nothing."""
    command = [sys.executable, "-m", "gormapy", "info", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    row = next(row for row in json.loads(done.stdout)["transports"] if row["name"] == transport)
    return "" if row["usable"] else row["text"]


# Arrays that are mappings of their own: their memory is unmapped with them, and the next one has the same address.
PRELUDE = """
    import gc, mmap, time, weakref
    import numpy as np
    from gormapy._ext import fast
    from rankside import *

    SIZE = 1 << 20

    class Mapped(np.ndarray):
        pass

    def mapped(value=0, count=SIZE):
        array = np.frombuffer(mmap.mmap(-1, 8 * count), "i8").view(Mapped)
        array[:] = value
        return array

    def until(condition):
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, "it lasts"
            time.sleep(0.001)

    def others():
        # what lies where freed memory was
        return [mapped(7) for _ in range(4)]
"""


@pytest.mark.parametrize("end", ["request.Free()", "del request"])
def test_receive(mpirun, end):
    """The message comes, and into nobody else's memory."""
    mpirun(
        2,
        PRELUDE
        + f"""
    if rank == 0:
        array = mapped()
        alive = weakref.ref(array)
        request = world.Irecv(array, 1)
        {end}
        del array
        around = others()
        world.Barrier()
        until(lambda: fast.kept() == 0)
        assert alive() is None
        assert all((other == 7).all() for other in around), [other[0] for other in around]
    else:
        world.Barrier()
        world.Send(mapped(1), 0)
        """,
    )


@pytest.mark.parametrize("count", [1, 1 << 12, 1 << 20])
@pytest.mark.parametrize("call", ["Isend", "Issend", "Ibsend"])
@pytest.mark.parametrize("end", ["request.Free()", "del request"])
def test_send(mpirun, call, end, count):
    mpirun(
        2,
        PRELUDE
        + f"""
    MPI.Attach_buffer(np.zeros(1 << 24, "u1"))
    if rank == 0:
        for k in range(5):
            array = mapped(k, {count})
            alive = weakref.ref(array)
            request = world.{call}(array, 1)
            {end}
            del array
            around = others()
            world.Barrier()
            world.Recv(np.zeros(1), 1)
            until(lambda: fast.kept() == 0)
            assert alive() is None
    else:
        for k in range(5):
            got = np.zeros({count}, "i8")
            world.Barrier()
            world.Recv(got, 0)
            assert (got == k).all(), (k, got[:3], got[-3:])
            world.Send(np.zeros(1), 0)
        """,
    )


COLLECTIVES = {
    "Ibcast(a)": "a == 1",
    "Iallreduce(MPI.IN_PLACE, a)": "a == 6",
    "Iallgather(MPI.IN_PLACE, a)": "a == np.repeat([1, 2, 3], size // 3)",
    "Ialltoall(MPI.IN_PLACE, a)": "a == np.repeat([1, 2, 3], size // 3)",
}


@pytest.mark.parametrize(("call", "result"), COLLECTIVES.items())
def test_collective(mpirun, call, result):
    mpirun(
        3,
        PRELUDE
        + f"""
    size = 3 << 18
    a = mapped(rank + 1, size)
    if rank == 1:
        alive = weakref.ref(a)
        request = world.{call}
        request.Free()
        del request, a
        around = others()
        raise_flag("freed")
        until(lambda: fast.kept() == 0)
        assert alive() is None
        assert all((other == 7).all() for other in around)
    else:
        await_flag("freed")
        request = world.{call}
        request.Wait()
        assert ({result}).all(), a
    world.Barrier()
        """,
    )


@pytest.mark.parametrize("count", [1, 1 << 20])
def test_started_and_interrupted(mpirun, count):
    """Ctrl-C comes between the start of an operation and the object that is to hold it."""
    mpirun(
        2,
        PRELUDE
        + f"""
    count = {count}
    integer = MPI.INT64_T
    if rank == 0:
        array = mapped(5, count)
        alive = weakref.ref(array)
        fast.p2p(fast.SEND, world._h, array.ctypes.data, count, integer._h, 1, 3, array)  # nobody takes it
        del array
        around = others()
        world.Barrier()
        world.Recv(np.zeros(1), 1)
        until(lambda: fast.kept() == 0)
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
        """,
    )


@pytest.mark.parametrize("call", ["Send(array, 1)", "Ssend(array, 1)", "Sendrecv(array, 1, 0, np.zeros(1), 1, 9)"])
def test_interrupted_sends_come_whole(mpirun, call):
    mpirun(
        2,
        PRELUDE
        + f"""
    if rank == 0:
        array = mapped(5)
        alive = weakref.ref(array)
        with interrupted():
            world.{call}
        del array
        around = others()
        world.Barrier()
        world.Recv(np.zeros(1), 1)
        gc.collect()
        until(lambda: fast.kept() == 0)
        until(lambda: alive() is None)
    else:
        world.Barrier()
        got = mapped()
        world.Recv(got, 0)
        assert (got == 5).all()
        world.Send(np.zeros(1), 0)
        """,
    )


def test_the_end_does_not_wait_for_interrupted_sends(mpirun):
    result = mpirun(
        2,
        PRELUDE
        + """
    if rank == 0:
        with interrupted():
            world.Send(mapped(5), 1)
        world.Barrier()
        stamp("done")
    else:
        world.Barrier()
        """,
    )
    assert result.since("done") < 5


@pytest.mark.parametrize(
    "call", ["Recv(array, 1)", "Irecv(array, 1).Wait()", "Bcast(array, 1)", "Allreduce(array, mapped())"]
)
def test_interrupted_calls_give_memory_back(mpirun, call):
    """At once, or after the collective reset."""
    mpirun(
        2,
        PRELUDE
        + f"""
    if rank == 0:
        array = mapped(5)
        alive = weakref.ref(array)
        with interrupted():
            world.{call}
        del array
        gc.collect()
        if "reduce" not in "{call}" and "cast" not in "{call}" and "Irecv" not in "{call}":
            assert alive() is None
    else:
        time.sleep(0.5)
    reset()
    if rank == 0:
        until(lambda: fast.kept() == 0)
        assert alive() is None
        """,
    )


def test_nothing_is_collected_for_good(mpirun):
    """Thousands of requests that are freed: memory and handles stay bounded."""
    mpirun(
        2,
        PRELUDE
        + """
    import os
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
            until(lambda: fast.kept() == 0)
        if k == 99:
            before = resident()
    assert resident() - before < 20 << 20
        """,
    )


CALLS_OF_A_STOPPED_PEER = {
    "Recv": "world.Recv(array, 1)",
    "Irecv, status": "world.Irecv([array, SIZE, MPI.INT64_T], 1).Wait(MPI.Status())",
    "Sendrecv": "world.Sendrecv(np.zeros(1), 0, 5, array, 1)",
}


@pytest.mark.parametrize("call", CALLS_OF_A_STOPPED_PEER)
def test_a_network_that_may_still_write(mpirun, call):
    """Ctrl-C while a network reads the data of a sender that is stopped: the memory stays until that is over."""
    if why_not("ofi"):
        pytest.skip(f"no libfabric here: {why_not('ofi')}")
    mpirun(
        2,
        PRELUDE
        + f"""
    import os, signal
    if rank == 0:
        other = world.recv(source=1)
        array = mapped()
        alive = weakref.ref(array)
        world.Barrier()
        time.sleep(0.3)
        os.kill(other, signal.SIGSTOP)
        with interrupted(within=3):
            {CALLS_OF_A_STOPPED_PEER[call]}
        del array
        gc.collect()
        around = others()
        kept = fast.kept(), alive() is not None
        os.kill(other, signal.SIGCONT)
        until(lambda: fast.kept() == 0)
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
        """,
        env={"GORMAPY_FABRIC": "ofi"},
    )


def test_receive_in_a_cycle(mpirun):
    """The garbage collector ends the request, and not the receive."""
    mpirun(
        2,
        PRELUDE
        + """
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
        until(lambda: fast.kept() == 0)
        assert alive() is None
        assert all((other == 7).all() for other in around), [other[0] for other in around]
    else:
        world.Barrier()
        world.Send(mapped(1), 0)
        """,
    )


@pytest.mark.parametrize("first", ["completed", "active"])
def test_others_of_a_list_that_is_refused(mpirun, first):
    """Testall of a request that is completed already, and of an active one: that stays active."""
    mpirun(
        2,
        PRELUDE
        + f"""
    if rank == 0:
        array, small = mapped(), np.zeros(1)
        active, completed = world.Irecv(array, 1, 5), world.Irecv(small, 1, 6)
        MPI.Request(completed).Wait()  # a copy of it
        requests = [completed, active] if "{first}" == "completed" else [active, completed]
        statuses = []
        del array
        if "{first}" == "completed":
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
        """,
    )
