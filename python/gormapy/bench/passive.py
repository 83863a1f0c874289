"""Operations on a target that calls no MPI meanwhile: the test of one-sided communication."""

import ctypes
import os
from time import perf_counter, sleep

import numpy as np

from .timing import BUDGET, absent, percentile, row
from .windows import FLAVOURS, window


def passive(MPI, comm, budget=BUDGET):
    """Time Lock/Put/Flush/Unlock to rank 1 while it computes in pure Python and calls no MPI."""
    return _while(MPI, comm, budget, "computing", _compute)


def passive_asleep(MPI, comm, budget=BUDGET):
    """Time Lock/Put/Flush/Unlock to rank 1 while it sleeps and calls no MPI."""
    return _while(MPI, comm, budget, "sleeping", sleep)


def passive_c_call(MPI, comm, budget=BUDGET):
    """Time Lock/Put/Flush/Unlock to rank 1 while it holds the GIL in a C function."""
    return _while(MPI, comm, budget, "GIL-holding", _hold)


def _while(MPI, comm, budget, name, occupy):
    """Measure on a window of each flavour while rank 1 is occupied for ten times the budget."""
    if comm.size < 2:
        raise SystemExit("passive: it takes 2 ranks, and there is 1: use -n 2")
    busy = 10 * budget
    way = ", GORMAPY_ONE_COPY=0" if os.environ.get("GORMAPY_ONE_COPY") == "0" else ""
    for flavour in ("allocate", "create", "shared", "dynamic"):  # first those that every library has
        what = f"Lock + Put 8 B + Flush + Unlock to a {name} rank, {FLAVOURS[flavour]}{way}"
        try:
            with window(MPI, comm, flavour, 8) as made:
                seconds = _accesses(MPI, comm, made, busy, occupy)
        except NotImplementedError as error:
            yield absent(what, error)
            continue
        if comm.rank == 0:
            yield row(what, seconds, p99=_us(percentile(seconds, 99)), max=_us(max(seconds)))


def _us(seconds):
    return round(1e6 * seconds, 1)


def _accesses(MPI, comm, made, busy, occupy):
    """Return the seconds of each access by rank 0, to which rank 1 does nothing."""
    win, memory, start = made.win, np.ones(8, "b"), made.starts[1]
    if comm.rank == 0:  # the extra cost of the first access is not measured
        win.Lock(1)
        win.Put(memory, 1, start)
        win.Unlock(1)
    comm.Barrier()
    seconds = []
    if comm.rank == 1:
        occupy(busy)
    elif comm.rank == 0:
        begin = perf_counter()
        sleep(busy / 10)  # until it is certainly occupied
        while perf_counter() < begin + 0.9 * busy:
            now = perf_counter()
            win.Lock(1)
            win.Put(memory, 1, start)
            win.Flush(1)
            win.Unlock(1)
            seconds.append(perf_counter() - now)
    comm.Barrier()
    return seconds


def _compute(seconds):
    end, total = perf_counter() + seconds, 0
    while perf_counter() < end:
        for i in range(1000):
            total += i * i
    return total


def _hold(seconds):
    """Stay in one C function that keeps the GIL: no thread of this process runs Python meanwhile."""
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(1e6 * seconds)))
