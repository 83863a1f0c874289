"""The cost of an MPI's threads to a rank that computes and calls no MPI."""

import os
from contextlib import ExitStack
from time import perf_counter

import numpy as np

from .timing import BUDGET, row
from .windows import FLAVOURS, window

_SAMPLES = 5


def idle(MPI, comm, budget=BUDGET):
    """Time the threads of a rank beside its own, per second that it computes with windows of every flavour alive."""
    peer, some = (comm.rank + 1) % comm.size, np.ones(8, "b")
    with ExitStack() as alive:
        for flavour in FLAVOURS:
            try:
                made = alive.enter_context(window(MPI, comm, flavour, 64))
            except NotImplementedError:
                continue
            made.win.Lock(peer)
            made.win.Put(some, peer, made.starts[peer])
            made.win.Unlock(peer)
        comm.Barrier()
        _compute(0.1)  # activity that follows communication is over
        samples = [_sample(max(budget, 0.01)) for _ in range(_SAMPLES)]
        comm.Barrier()
        ranks = comm.gather(samples)
        if comm.rank == 0:
            wakes = max(sorted(sample[1] for sample in rank)[_SAMPLES // 2] for rank in ranks)
            costs = [sample[0] for rank in ranks for sample in rank]
            yield row("threads beside the computing one, for each second", costs, **{"wake-ups": round(wakes, 1)})


def _sample(seconds):
    """Return what the other threads have taken for each second: seconds of a core, wake-ups."""
    before, begin = threads(), perf_counter()
    _compute(seconds)
    after, took = threads(), perf_counter() - begin
    changes = [(now, before.get(thread, (0, 0))) for thread, now in after.items()]
    return tuple(sum(now[i] - was[i] for now, was in changes) / took for i in (0, 1))


def threads():
    """Return seconds of a core and switches to and from it of each thread but the main one, by its number."""
    found = {}
    for thread in os.listdir("/proc/self/task"):
        if int(thread) == os.getpid():
            continue
        try:
            with open(f"/proc/self/task/{thread}/schedstat") as file:
                used = int(file.read().split()[0]) / 1e9
            with open(f"/proc/self/task/{thread}/status") as file:
                switches = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        except (OSError, IndexError):  # it has ended, or the kernel does not report it
            continue
        found[thread] = used, switches
    return found


def _compute(seconds):
    end = perf_counter() + seconds
    while perf_counter() < end:
        sum(range(1000))
