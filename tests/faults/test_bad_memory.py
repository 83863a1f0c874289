"""Memory that faults when it is communicated: an MPI error, and nothing else is hurt."""

import signal

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


WINDOWS = {
    "allocated": "MPI.Win.Allocate(PAGE, 8, comm=world)",
    "created": "MPI.Win.Create(np.zeros(PAGE // 8, 'i8'), 8, comm=world)",
}


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("memory", ["truncated", "protected"])
@pytest.mark.parametrize("enabled", ["never", "before", "after"])
def test_one_sided_calls(mpirun, kind, memory, enabled):
    first = "import faulthandler; faulthandler.enable()"
    mpirun(
        2,
        f"""
        {first if enabled == "before" else ""}
        import numpy as np
        from badmemory import *
        from rankside import *
        one, zero, other = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
        {first if enabled == "after" else ""}
        win = {WINDOWS[kind]}
        bad = {memory}()
        to = 1 - rank
        win.Lock_all()
        for k in range(3):
            faults(win.Put, bad, to)
            faults(win.Put, bad[:1], to)
            faults(win.Get, bad, to)
            faults(win.Get, bad[:1], to)
            faults(win.Accumulate, bad[:1], to)
            faults(win.Accumulate, bad, to)
            faults(win.Fetch_and_op, bad[:1], other, to)
            faults(win.Fetch_and_op, one, bad[:1], to)
            faults(win.Compare_and_swap, bad[:1], zero, other, to, 5)
            faults(win.Compare_and_swap, one, bad[:1], other, to)
            faults(win.Compare_and_swap, one, one, bad[:1], to)
        win.Flush_all()
        world.Barrier()
        win.Put(np.full(1, 40), to, 3)
        win.Accumulate(one, to, 3)
        win.Fetch_and_op(one, other, to, 3)
        win.Flush(to)
        assert other[0] == 41, other
        win.Get(other, to, 3)
        win.Flush(to)
        assert other[0] == 42, other
        win.Unlock_all()
        win.Free()
        """,
    )


def test_what_is_applied_is_not_applied_again(ranks):
    ranks(
        2,
        program.what_is_applied_is_not_applied_again,
    )


def test_copies_of_any_length(mpirun):
    """The guard is around the copy of the C library, in all its forms."""
    mpirun(
        1,
        """
        import numpy as np
        from badmemory import *
        from rankside import *
        one, zero, other = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
        import mmap
        size = 64 * PAGE
        win = MPI.Win.Allocate(size, 1, comm=world)
        memory = mmap.mmap(-1, size + PAGE)
        buffer = np.frombuffer(memory, "u1")
        protect(buffer[size:])
        buffer[:size] = np.arange(size) % 251
        tail = np.zeros(size, "u1")
        win.Lock(0)
        for n in [*range(1, 300), 4095, 4096, 65536, 65537, size - 1]:
            faults(win.Put, buffer[size - n + 1 : size + 1], 0)
            win.Put(buffer[size - n : size], 0)
            win.Get(tail[:n], 0)
            assert (tail[:n] == buffer[size - n : size]).all(), n
            faults(win.Get, buffer[size - n + 1 : size + 1], 0)
        win.Unlock(0)
        win.Free()
        """,
    )


def test_threads_fault_at_once(ranks):
    ranks(
        1,
        program.threads_fault_at_once,
    )


def test_tokens_of_channels(ranks):
    ranks(
        1,
        program.tokens_of_channels,
    )


def test_calls_that_only_copy(ranks):
    ranks(
        1,
        program.calls_that_only_copy,
    )


def test_addresses_where_no_memory_lies(ranks):
    ranks(
        1,
        program.addresses_where_no_memory_lies,
    )


@pytest.mark.parametrize("enabled", ["never", "before", "after", "taken back"])
@pytest.mark.parametrize("what", ["ctypes.string_at(8)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_other_faults_are_as_fatal_as_ever(mpirun, enabled, what):
    first = "import faulthandler; faulthandler.enable()"
    result = mpirun.alone(
        f"""
        {first if enabled == "before" else ""}
        import ctypes, os, signal
        from gormapy import MPI
        {first if enabled in ("after", "taken back") else ""}
        {"faulthandler.disable()" if enabled == "taken back" else ""}
        win = MPI.Win.Allocate(8)
        {what}
        """,
        expect=ANY,
    )
    assert result.status == -signal.SIGSEGV, result
    if enabled in ("before", "after"):
        assert "Fatal Python error: Segmentation fault" in result.stderr, result


SEVERAL = {
    "Waitany": "MPI.Request.Waitany(requests) == 1",
    "waitany": "MPI.Request.waitany(requests)[0] == 1",
    "Testany": "MPI.Request.Testany(requests) == (1, True)",
    "Waitsome": "MPI.Request.Waitsome(requests) == [1]",
    "Testsome": "MPI.Request.Testsome(requests) == [1]",
    "Testall": "MPI.Request.Testall(requests)",
}


@pytest.mark.parametrize(("call", "done"), SEVERAL.items())
@pytest.mark.parametrize("both", [False, True])
def test_one_of_several_requests(mpirun, call, done, both):
    """A call says once that the memory of one of them faulted; the others are received."""
    mpirun(
        2,
        f"""
        import time
        import numpy as np
        from badmemory import *
        from rankside import *
        if rank == 0:
            bad, good = truncated(), np.zeros(4)
            requests = [world.Irecv(bad, 1, 1), world.Irecv(good, 1, 2)]
            world.Barrier()
            if {both}:
                world.Recv(np.zeros(1), 1, 3)  # which comes last: both have come
            end, faults = time.monotonic() + 10, 0
            while True:
                assert time.monotonic() < end
                try:
                    if {done}:
                        break
                except MPI.Exception as e:
                    assert e.Get_error_class() == MPI.ERR_BUFFER, e
                    faults += 1
                    assert not requests[0]
                    if "{call}" != "Testall":
                        assert requests[1]
                        world.Send(np.zeros(1), 1)
                    else:
                        break
            assert faults == 1 and (good == 1).all() and not any(requests), (faults, good)
        else:
            world.Barrier()
            world.Send(np.zeros(PAGE // 8, "i8"), 0, 1)
            if not {both} and "{call}" != "Testall":
                world.Recv(np.zeros(1), 0)
            world.Send(np.ones(4), 0, 2)
            world.Send(np.zeros(1), 0, 3)
            if {both} and "{call}" != "Testall":
                world.Recv(np.zeros(1), 0)
        """,
    )


PACKED = {
    "Alltoallw": "world.{0}([array, [1] * size, [0] * size, [T] * size], [into, [1] * size, [0] * size, [T] * size])",
    "Allreduce": "world.{0}(array, into, op)",
    "Scan": "world.{0}(array, into, op)",
    "Reduce": "world.{0}(array, into, op, 0)",
    "Reduce_scatter": "world.{0}(array, into[: len(into) // size], [len(into) // size] * size, op)",
}


@pytest.mark.parametrize("way", ["", "I", "_init"])
@pytest.mark.parametrize("call", PACKED)
def test_collectives_that_python_packs(mpirun, call, way):
    """No rank waits for the one whose memory faults; those that need its data hear of it, and the next call works."""
    text = PACKED[call].format("I" + call.lower() if way == "I" else call + way)
    mpirun(
        3,
        f"""
        import numpy as np
        from badmemory import *
        from rankside import *
        T = MPI.INT64_T

        def add(a, b, datatype):
            np.frombuffer(b, "i8")[:] += np.frombuffer(a, "i8")

        op = MPI.Op.Create(add, True)
        array, into = np.ones(510, "i8"), np.zeros(510, "i8")
        if rank == 0:
            good, array = array, truncated()[:510]
        needs = rank == 0 or "{call}" != "Reduce"
        for k in range(3):
            try:
                request = {text}
                if "{way}" == "_init":
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
        assert not into.any()
        if rank == 0:
            array = good
        request = {text}
        if "{way}" == "_init":
            request.Start()
        if request is not None:
            request.Wait()
        if "{call}" == "Allreduce":
            assert (into == size).all(), into
        if "{call}" == "Reduce_scatter":
            assert (into[: 510 // size] == size).all(), into
        if "{call}" == "Scan":
            assert (into == rank + 1).all(), into
        """,
    )
