"""The programs of test_notify.py: notified puts."""

import asyncio
import os
import signal
import threading
import time

import numpy as np
from rankside import MPI, raise_flag, rank, size, world

from gormapy import notify

right, left = (rank + 1) % size, (rank - 1) % size
N = 16


def allocate():
    return MPI.Win.Allocate(8 * N, 8, comm=world)


def create():
    return MPI.Win.Create(np.zeros(N, "q"), 8, comm=world)


def create_on_arena():
    return MPI.Win.Create(MPI.Alloc_mem(8 * N), 8, comm=world)


WINDOWS = {"Allocate": allocate, "Create": create, "Create, Alloc_mem": create_on_arena}


def opened(kind):
    win = WINDOWS[kind]()
    memory = np.frombuffer(win, "q")
    memory[:] = 0
    win.Lock_all()
    world.Barrier()
    return win, memory


def closed(win):
    world.Barrier()
    win.Unlock_all()
    win.Free()


def ring(kind):
    """Each notification comes after its data."""
    win, memory = opened(kind)
    for k in range(300):
        slot = k % 255
        notify.put_notify(win, np.array([k, rank], "q"), right, 2 * (k % 8), slot)
        assert notify.win_notified(win, slot, timeout=30)
        assert memory[2 * (k % 8) : 2 * (k % 8) + 2].tolist() == [k, left], (k, memory)
        win.Sync()
        notify.put_notify(win, np.zeros(0, "q"), left, slot=255)  # the right neighbour may put again
        assert notify.win_notified(win, 255, timeout=30)
    assert [notify.pending(win, slot) for slot in range(notify.SLOTS)] == [0] * notify.SLOTS
    closed(win)


def long_and_strided(kind):
    n = 300_000
    win = MPI.Win.Allocate(8 * n, 8, comm=world)
    if kind != "Allocate":
        win.Free()
        win = MPI.Win.Create(np.zeros(n, "q") if kind == "Create" else MPI.Alloc_mem(8 * n), 8, comm=world)
    memory = np.frombuffer(win, "q")
    memory[:] = 0
    win.Lock_all()
    world.Barrier()
    notify.put_notify(win, np.full(n, rank, "q"), right)
    assert notify.win_notified(win, 0, 1, 30)
    assert (memory == left).all()
    world.Barrier()
    every_second = MPI.INT64_T.Create_vector(n // 2, 1, 2).Commit()
    notify.put_notify(win, np.full(n // 2, -1, "q"), right, (1, 1, every_second), 255)
    assert notify.win_notified(win, 255, 1, 30)
    assert (memory[1::2] == -1).all() and (memory[::2] == left).all()
    every_second.Free()
    closed(win)


def all_to_one(kind):
    win, memory = opened(kind)
    for _ in range(20):
        for _ in range(10):
            notify.put_notify(win, np.array([rank], "q"), 0, rank % N, 3)
        if rank == 0:
            assert notify.win_notified(win, 3, 10 * size, timeout=30)
            assert memory[: min(size, N)].tolist() == list(range(size))[:N]
            assert not notify.win_notified(win, 3, timeout=0)
        world.Barrier()
    closed(win)


def time_out_takes_nothing():
    win, _ = opened("Allocate")
    begun = time.monotonic()
    assert not notify.win_notified(win, 1, 2, timeout=0.1)
    assert 0.09 < time.monotonic() - begun < 5
    notify.put_notify(win, np.zeros(1, "q"), rank, 0, 1)
    assert not notify.win_notified(win, 1, 2, timeout=0.01)
    assert notify.pending(win, 1) == 1
    assert notify.win_notified(win, 1)
    closed(win)


def several_threads():
    """Each notification is taken once."""
    win, _ = opened("Allocate")
    n, taken = 400, []

    end = time.monotonic() + 25

    def take():
        while len(taken) < n and time.monotonic() < end:
            if notify.win_notified(win, 9, timeout=0.1):
                taken.append(1)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(n):
        notify.put_notify(win, np.zeros(1, "q"), right, 0, 9)
    for t in threads:
        t.join()
    win.Flush_all()
    world.Barrier()  # all puts have been made, and none is there that was taken for another one
    assert len(taken) == n and notify.pending(win, 9) == 0
    closed(win)


def in_asyncio():
    asyncio.run(_in_asyncio())


async def _in_asyncio():
    win, memory = opened("Allocate")
    waiting = [asyncio.ensure_future(_await(win, slot)) for slot in range(notify.SLOTS)]
    await asyncio.sleep(0.02)
    for slot in range(notify.SLOTS):
        notify.put_notify(win, np.array([slot], "q"), right, 3, slot)
    await asyncio.gather(*waiting)
    assert memory[3] == notify.SLOTS - 1
    # a cancelled wait takes nothing
    task = asyncio.ensure_future(_await(win, 7))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await world.Ibarrier()
    notify.put_notify(win, np.array([1], "q"), right, 3, 7)
    await notify.notified(win, 7)
    await world.Ibarrier()
    assert notify.pending(win, 7) == 0
    closed(win)


async def _await(win, slot):
    await asyncio.wait_for(_of(win, slot), 30)


async def _of(win, slot):
    await notify.notified(win, slot)


def target_that_computes():
    """A notification waits for no call of the target, which finds it afterwards."""
    win, memory = opened("Allocate")
    if rank == 0:
        for r in range(1, size):
            notify.put_notify(win, np.array([5], "q"), r, 0, 0)
        raise_flag("put")
        world.send(None, size - 1)
    else:
        end = time.monotonic() + 20
        while not os.path.exists("flag-put"):  # it computes, in no call of MPI
            assert time.monotonic() < end, "a put waits for its target"
        assert notify.win_notified(win, 0, timeout=10) and memory[0] == 5
    if rank == size - 1 and rank > 0:
        world.recv(source=0)
    closed(win)


def nothing_is_used_while_waiting():
    win, _ = opened("Allocate")
    if rank == 0:
        time.sleep(1.2)
        for r in range(1, size):
            notify.put_notify(win, np.zeros(1, "q"), r, 0, 0)
    else:
        begun = time.process_time()
        notify.win_notified(win, 0)
        used = time.process_time() - begun
        assert used < 0.15, used
    closed(win)


def error_of(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (MPI.Exception, TypeError, ValueError) as error:
        return error
    raise AssertionError("no error")


def wrong_arguments():
    win = allocate()
    one = np.ones(1, "q")
    np.frombuffer(win, "q")[:] = 0
    assert error_of(notify.put_notify, win, one, 0).Get_error_class() == MPI.ERR_RMA_SYNC
    win.Lock_all()
    world.Barrier()
    for slot in (-1, notify.SLOTS, 1 << 40):
        assert error_of(notify.put_notify, win, one, 0, 0, slot).Get_error_class() == MPI.ERR_ARG
        assert error_of(notify.win_notified, win, slot, timeout=0).Get_error_class() == MPI.ERR_ARG
        assert error_of(notify.pending, win, slot).Get_error_class() == MPI.ERR_ARG
    assert "0 to 255" in str(error_of(notify.put_notify, win, one, 0, 0, 256))
    assert error_of(notify.put_notify, win, one, size).Get_error_class() == MPI.ERR_RANK
    assert error_of(notify.put_notify, win, one, 0, N).Get_error_class() == MPI.ERR_RMA_RANGE
    assert error_of(notify.win_notified, win, 0, 0).Get_error_class() == MPI.ERR_COUNT
    assert isinstance(error_of(notify.win_notified, win, 0, timeout=-1), ValueError)
    assert isinstance(error_of(notify.win_notified, win, 0, timeout=float("nan")), ValueError)
    for wrong in (None, 3, "window", world):
        assert isinstance(error_of(notify.put_notify, wrong, one, 0), TypeError)
        assert isinstance(error_of(notify.win_notified, wrong, 0), TypeError)
        assert isinstance(error_of(notify.pending, wrong, 0), TypeError)
    assert isinstance(error_of(notify.put_notify, win, one, "right"), TypeError)
    assert isinstance(error_of(notify.put_notify, win, one, 0, 0, 1.5), TypeError)
    assert isinstance(error_of(notify.put_notify, win, None.__class__, 0), TypeError)
    notify.put_notify(win, one, MPI.PROC_NULL)
    world.Barrier()
    assert [notify.pending(win, s) for s in range(notify.SLOTS)] == [0] * notify.SLOTS
    assert np.frombuffer(win, "q").tolist() == [0] * N
    closed(win)
    assert error_of(notify.put_notify, win, one, 0).Get_error_class() == MPI.ERR_WIN
    assert error_of(notify.win_notified, win, 0).Get_error_class() == MPI.ERR_WIN


def rank_that_is_killed():
    win, _ = opened("Allocate")
    if rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    for call in (notify.win_notified, lambda *args: asyncio.run(_await(*args))):
        assert error_of(call, win, 0).Get_error_class() == MPI.ERR_PROC_FAILED
    assert error_of(notify.put_notify, win, np.ones(1, "q"), 1).Get_error_class() == MPI.ERR_PROC_FAILED
    print("told")


def interrupted():
    win, _ = opened("Allocate")
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        notify.win_notified(win, 0)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    notify.put_notify(win, np.ones(1, "q"), rank)
    assert notify.win_notified(win, 0, timeout=5) and notify.pending(win, 0) == 0
    closed(win)


class _Interrupt(Exception):
    pass


def interrupted_as_they_come():
    """A notification that comes at the time of a signal is not lost with the call that the signal's handler ends."""
    win, _ = opened("Allocate")
    rounds = 1000
    if rank == 1:
        for _ in range(rounds):
            notify.put_notify(win, np.ones(1, "q"), 0)
            time.sleep(0.0005)
        notify.put_notify(win, np.ones(1, "q"), 0, slot=1)
    if rank == 0:
        armed = False

        def interrupt(*_):
            if armed:
                raise _Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
        taken = 0
        while notify.pending(win, 1) == 0 or notify.pending(win, 0) > 0:
            try:
                armed = True
                came = notify.win_notified(win, 0)
                armed = False
                taken += came
            except _Interrupt:
                armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        # the handler may also run just after the call, where nobody can give anything back
        assert rounds - taken <= rounds // 50, rounds - taken
    closed(win)
