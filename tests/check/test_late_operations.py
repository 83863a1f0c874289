"""mpiexec --unkind: errors, threads, interrupts, requests and datatypes of programs that are right by the standard."""

import textwrap

import pytest

HEAD = """
import threading
import time
import numpy as np
import gormapy
from gormapy import MPI, notify

world = MPI.COMM_WORLD
rank, other = world.rank, 1 - world.rank
win = MPI.Win.Allocate(64, 8, comm=world)
part, mine, got = np.frombuffer(win, "f8"), np.arange(8.0), np.zeros(8)
part[:] = 7
world.Barrier()

def fails(kind, call, *args):
    try:
        call(*args)
    except MPI.Exception as error:
        assert error.Get_error_class() == kind, error
    else:
        raise AssertionError("no error")

"""

PROGRAMS = {
    "ranks that are numbers of NumPy": """
        to = np.int64(other)
        win.Lock(other)
        win.Put(mine, to)
        win.Flush(to)
        win.Get(got, to)
        win.Unlock(to)
        assert (got == mine).all()
        """,
    "arguments that have errors": """
        win.Lock(other)
        fails(MPI.ERR_RMA_RANGE, win.Put, mine, other, 1)
        fails(MPI.ERR_TYPE, win.Put, mine, other, [0, 1, MPI.DOUBLE])
        fails(MPI.ERR_TYPE, win.Compare_and_swap, mine[:1], got[1:2], got[:1], other)
        fails(MPI.ERR_OP, win.Accumulate, mine, other, None, MPI.BOR)
        fails(MPI.ERR_OP, win.Fetch_and_op, mine[:1], got[:1], other, 0, MPI.BOR)
        fails(MPI.ERR_TYPE, win.Get_accumulate, mine, got[:1], other)
        win.Put(mine, other)
        win.Unlock(other)
        world.Barrier()
        assert (part == mine).all()
        """,
    "an operation that fails among others": """
        dynamic = MPI.Win.Create_dynamic(comm=world)
        there = np.zeros(8)
        dynamic.Attach(there)
        place = world.allgather(MPI.Get_address(there))[other]
        world.Barrier()
        dynamic.Lock(other)
        for i in range(8):
            dynamic.Put(mine[i : i + 1], other, place + 8 * i)
            dynamic.Put(mine[i : i + 1], other, 64)
        fails(MPI.ERR_RMA_RANGE, dynamic.Unlock, other)
        dynamic.Lock(other)
        dynamic.Unlock(other)
        world.Barrier()
        assert (there == mine).all()
        dynamic.Free()
        """,
    "two threads that flush one operation": """
        if rank == 1:
            win.Lock(1)
            world.Barrier()
            time.sleep(0.5)
            win.Unlock(1)
        else:
            world.Barrier()
            win.Lock(1)
            win.Put(mine, 1)
            first = threading.Thread(target=win.Flush, args=(1,))  # waits for the lock
            first.start()
            time.sleep(0.2)
            win.Flush(1)
            world.send(None, 1)
            first.join()
            win.Unlock(1)
        if rank == 1:
            world.recv(source=0)
            assert (part == mine).all()
        """,
    "an interrupt while a Lock is waited for": """
        import signal
        if rank == 1:
            win.Lock(1)
            world.Barrier()
            world.recv(source=0)
            win.Unlock(1)
        else:
            world.Barrier()
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            win.Lock(1)
            win.Put(mine, 1)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                win.Flush(1)
            except KeyboardInterrupt:
                world.send(None, 1)
            else:
                raise AssertionError("no interrupt")
            win.Unlock(1)
        world.Barrier()
        assert rank == 0 or (part == mine).all()
        """,
    "an origin that is given by its address": """
        absolute = MPI.DOUBLE.Create_hindexed([8], [MPI.Get_address(mine)]).Commit()
        win.Lock_all()
        win.Put([MPI.BOTTOM, 1, absolute], other, [0, 8, MPI.DOUBLE])
        win.Flush_local(other)
        mine[:] = 0
        win.Unlock_all()
        world.Barrier()
        assert (part == np.arange(8.0)).all()
        """,
    "an origin between whose elements no memory is": """
        import ctypes
        import mmap
        mapped = mmap.mmap(-1, 1 << 22)
        ends = np.frombuffer(mapped, "f8")
        ends[[0, 1, 2, -3, -2, -1]] = 1, 0, 2, 3, 0, 4
        middle = ctypes.c_void_p(ends.ctypes.data + (1 << 20))
        assert ctypes.CDLL(None).mprotect(middle, ctypes.c_size_t(1 << 20), 0) == 0
        pairs = MPI.DOUBLE.Create_hindexed([1, 1], [0, (1 << 22) - 24]).Commit()
        both = pairs.Create_resized(0, 16).Commit()
        win.Lock_all()
        win.Put([ends, 2, both], other, [0, 4, MPI.DOUBLE])
        win.Flush_local(other)
        ends[[0, 2, -3, -1]] = 0
        win.Unlock_all()
        world.Barrier()
        assert part[:4].tolist() == [1, 3, 2, 4]
        """,
    "a datatype that is freed before the Flush": """
        pairs = MPI.DOUBLE.Create_vector(4, 1, 2).Commit()
        win.Lock_all()
        win.Put([mine, 1, pairs], other, [0, 1, pairs])
        pairs.Free()
        win.Unlock_all()
        world.Barrier()
        assert part.tolist() == [0, 7, 2, 7, 4, 7, 6, 7]
        """,
    "a Lock that has an error": """
        fails(MPI.ERR_LOCKTYPE, win.Lock, other, 99)
        fails(MPI.ERR_ASSERT, win.Lock, other, MPI.LOCK_SHARED, 99)
        fails(MPI.ERR_RANK, win.Lock, 2)
        win.Lock(other)
        fails(MPI.ERR_RMA_SYNC, win.Lock, other)
        fails(MPI.ERR_RMA_SYNC, win.Lock_all)
        win.Put(mine, other)
        win.Unlock(other)
        fails(MPI.ERR_RMA_SYNC, win.Unlock, other)
        world.Barrier()
        assert (part == mine).all()
        """,
    "locks of two windows, in one order on all ranks": """
        second = MPI.Win.Allocate(64, 8, comm=world)
        if rank == 0:
            win.Lock(1)
            second.Lock(1)
            second.Put(mine, 1)
            second.Flush(1)
            world.send(None, 1)
            time.sleep(0.3)
            win.Put(mine, 1)
            win.Flush(1)
        else:
            world.recv(source=0)
            win.Lock(1)
            second.Lock(1)
        second.Unlock(1)
        win.Unlock(1)
        second.Free()
        """,
    "a Start that has an error": """
        alone = world.Split(rank)
        small = MPI.Win.Allocate(8, comm=alone)
        fails(MPI.ERR_GROUP, small.Start, world.group.Incl([other]))
        small.Free()
        group = world.group.Incl([other])
        win.Post(group)
        win.Start(group)
        fails(MPI.ERR_RMA_SYNC, win.Start, group)
        fails(MPI.ERR_RMA_SYNC, win.Put, mine, rank)
        win.Put(mine, other)
        group.Free()
        win.Complete()
        win.Wait()
        assert (part == mine).all()
        """,
    "a notification under a Lock": """
        win.Lock(other, MPI.LOCK_SHARED)
        notify.put_notify(win, mine, other)
        notify.win_notified(win, 0)
        assert (part == mine).all()
        win.Unlock(other)
        """,
    "a handle, by which compiled code goes past": """
        from gormapy._ext import fast
        for read in (lambda win: win.handle, MPI._handleof, MPI.Win.toint, MPI.Win.py2f):
            shown = MPI.Win.Allocate(64, 8, comm=world)
            shown.Lock(other)
            handle = read(shown)
            shown.Put(mine, other)
            fast.flush(handle, other)
            world.Barrier()
            assert (np.frombuffer(shown, "f8") == mine).all()
            shown.Unlock(other)
            shown.Free()
        """,
    "requests of accumulates": """
        win.Lock_all()
        for i in range(5):
            win.Accumulate(np.full(8, 1.0 + i), other, op=MPI.REPLACE)
            win.Raccumulate(np.full(8, -1.0 - i), other, op=MPI.REPLACE).Wait()
        win.Unlock_all()
        world.Barrier()
        assert (part == -5).all()
        """,
    "requests that are asked, and copies of them": """
        win.Lock_all()
        request = win.Rget(got[:4], other)
        while not request.Get_status():
            pass
        assert (got[:4] == 7).all()
        request.Wait()
        MPI.Request(win.Rget(got[4:], other, 4)).Wait()
        assert (got == 7).all()
        win.Unlock_all()
        """,
    "what was put off before a reset": """
        win.Lock(other)
        win.Put(mine, other)
        gormapy.reset()
        win.Lock(other)
        win.Unlock(other)
        world.Barrier()
        assert (part == 7).all()
        """,
    "requests that are completed after their epoch": """
        win.Lock_all()
        requests = [win.Rget(got[i : i + 1], other, i) for i in range(8)]
        win.Unlock_all()
        MPI.Request.Waitall(requests)
        assert (got == 7).all()
        """,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_stay_right(mpirun, program):
    mpirun(2, HEAD + textwrap.dedent(PROGRAMS[program]) + "world.Barrier()\nwin.Free()\n", launcher=["--unkind=1"])


def test_init_after_a_session_does_not_begin_the_order_again(mpirun):
    program = """
    import numpy as np
    import gormapy
    gormapy.rc.initialize = False
    from gormapy import MPI
    session = MPI.Session.Init()
    group = session.Create_group("mpi://SELF")
    win = MPI.Win.Allocate(8, 8, comm=MPI.Intracomm.Create_from_group(group))
    last = []
    for i in range(20):
        if i == 10:
            MPI.Init()
        win.Lock(0)
        for j in range(10):
            win.Put(np.full(1, float(j)), 0)
        win.Unlock(0)
        last.append(np.frombuffer(win, "f8")[0])
    assert last[:10] != last[10:]
    win.Free()
    session.Finalize()
    """
    mpirun(1, program, launcher=["--unkind=1"])


def test_a_lock_that_comes_late_shows_nothing(mpirun):
    program = """
    if rank == 0:
        win.Lock(1)
        world.Barrier()
        world.Barrier()
        win.Unlock(1)
        assert part[0] == 7
        win.Sync()
        assert part[0] == 0
    else:
        world.Barrier()
        win.Lock(0)
        win.Put(mine, 0)
        win.Unlock(0)
        world.Barrier()
    world.Barrier()
    win.Free()
    """
    head = HEAD.replace("part[:] = 7", "part[:] = 7; win.Sync()")
    mpirun(2, head + textwrap.dedent(program), launcher=["--unkind=1,separate"])


@pytest.mark.parametrize("value", ["1,", "unified", "-1", "separate,1"])
def test_what_the_variable_does_not_know(mpirun, value):
    result = mpirun(1, "from gormapy import MPI", env={"GORMAPY_UNKIND": value}, expect=1)
    assert f"GORMAPY_UNKIND: expecting a number, separate, or NUMBER,separate; got '{value}'" in result.stderr


def test_the_model_alone_by_its_variable(mpirun):
    program = """
    from gormapy import MPI

    class Window(MPI.Win):
        pass

    win = Window.Allocate(8)
    assert type(win) is Window and win.model == MPI.WIN_SEPARATE
    win.Free()
    """
    mpirun(1, program, env={"GORMAPY_UNKIND": "separate"})


def test_a_large_window_with_two_copies(mpirun):
    program = """
    import resource
    import numpy as np
    from gormapy import MPI
    win = MPI.Win.Allocate(64 << 20, 8)
    mem = np.frombuffer(win, "f8")
    win.Fence()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mem.view("B")[:] = 1
    win.Fence()
    mem[::2] = 2
    win.Fence()
    got = np.zeros_like(mem)
    win.Get(got, 0)
    win.Fence()
    assert (got == mem).all()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3 * (64 << 10)
    win.Free()
    """
    mpirun(1, program, launcher=["--unkind=1,separate"], timeout=60)
