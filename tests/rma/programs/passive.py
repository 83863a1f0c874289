"""Rank 0 works on windows of the others, which are busy for as long as that takes and longer.

The argument says with what: Python code, sleep, or a call of C that keeps the interpreter lock. A target that had
to take part would be found at the end of its work only: the operations would take as long as that.
"""

import ctypes
import os
import sys
import time

import numpy as np
from onesided import FLAVOURS, MPI, Window, rank, same, size, world

BUSY = 60.0  # seconds, at most: the targets stop as soon as rank 0 is through
ENOUGH = 40.0  # for what takes milliseconds, on a machine that does much else
COUNT = 1000


def through():
    return os.path.exists("through")


def busy():
    how = sys.argv[1]
    keeps_the_lock = ctypes.PyDLL(None)
    while time.monotonic() < ends and not through():
        if how == "python":
            sum(i * i for i in range(10_000))
        elif how == "sleep":
            time.sleep(0.1)
        else:
            keeps_the_lock.usleep(800_000)


def work(w):
    """Make every call to every other rank, with every way of completing it."""
    one, old, number = np.ones(1), np.zeros(1), np.ones(1, "i8")
    values, back = np.arange(COUNT, dtype="f8"), np.zeros(COUNT)
    column = MPI.DOUBLE.Create_vector(50, 1, 20).Commit()
    for target in range(1, size):
        for lock_type in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED):
            w.win.Lock(target, lock_type)
            w.win.Put(values, target, w.at(target))
            w.win.Unlock(target)
            w.win.Lock(target, lock_type)
            w.win.Get(back, target, w.at(target))
            w.win.Unlock(target)
            same(back, values)
        w.win.Lock_all()
        for i in range(30):
            w.win.Accumulate(one, target, w.at(target))
            w.win.Fetch_and_op(one, old, target, w.at(target))
            w.win.Flush(target)
            same(old, [2 * i + 1])
        w.win.Get_accumulate(values, back, target, w.at(target), MPI.MAX)
        w.win.Flush(target)
        same(back[1:], values[1:])
        w.win.Compare_and_swap(number * 3, number, number * 7, target, w.at(target, 5))
        w.win.Flush_all()
        w.win.Put([values, 50, MPI.DOUBLE], target, (w.at(target, 1), 1, column))
        w.win.Flush(target)
        w.win.Get([back, 50, MPI.DOUBLE], target, (w.at(target, 1), 1, column))
        w.win.Flush_local(target)
        same(back[:50], values[:50])
        MPI.Request.Waitall([w.win.Rput(values, target, w.at(target)), w.win.Raccumulate(one, target, w.at(target))])
        w.win.Flush(target)
        w.win.Rget(back, target, w.at(target)).Wait()
        same(back[1:], values[1:])
        w.win.Unlock_all()
    column.Free()


windows = [Window(flavour, COUNT) for flavour in FLAVOURS]
world.Barrier()
ends = time.monotonic() + BUSY
if rank == 0:
    time.sleep(0.1)
    for w in windows:
        begun = time.monotonic()
        work(w)
        took = time.monotonic() - begun
        print(f"{w.flavour}: {took:.3f} s", flush=True)
        assert time.monotonic() < ends - (BUSY - ENOUGH), f"{w.flavour}: {took:.2f} s, while the targets are busy"
    open("through", "w").close()
else:
    busy()
    assert through(), "the targets had done their work before rank 0 was through"
world.Barrier()
for w in windows:
    if rank:
        expected = np.arange(COUNT)
        expected[0] += 1
        same(w.mine, expected)
    w.free()
