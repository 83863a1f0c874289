"""Many ranks that contend for the same lock: the time of a turn, and whether all ranks get equally many."""

from time import perf_counter, sleep

import numpy as np

from .timing import BUDGET, row
from .windows import window

STRETCHES = 50


def contention(MPI, comm, budget=BUDGET):
    """Let all ranks take an exclusive lock on rank 0, Put and unlock, for 40 times the budget, and count the turns."""
    with window(MPI, comm, "allocate", 8 * comm.size) as made:
        ends = _turns(MPI, comm, made, 40 * budget)
    every = comm.gather(ends)
    if comm.rank == 0:
        who = f"{comm.size} ranks, exclusive Lock + Put 8 B + Unlock on rank 0"
        # Ranks wake at different times, and a rank alone takes turns a hundred times as fast: turns count from when
        # each rank has had one.
        begin = max(ends[0] for ends in every)
        counted = [ends[ends > begin] for ends in every]
        turns = [len(ends) for ends in counted]
        if not min(turns):
            raise RuntimeError(f"contention: {comm.size} ranks had no second turn in {40 * budget:g} s: use --budget")
        mean = sum(turns) / len(turns)
        fair = {"turns": turns, "fewest": round(min(turns) / mean, 3), "most": round(max(turns) / mean, 3)}
        # All turns in order, whatever their ranks, in stretches of equally many turns.
        order = np.sort(np.concatenate([[begin], *counted]))
        step = max(1, (len(order) - 1) // STRETCHES)
        yield row(f"{who}: time per turn", (np.diff(order[::step]) / step).tolist(), **fair)
        waits = np.concatenate([np.diff(ends)[-len(own) :] for ends, own in zip(every, counted)]).tolist()
        yield row(f"{who}: a rank's time for its turn", waits, max=round(1e6 * max(waits), 1))


def _turns(MPI, comm, made, duration):
    """Return when each turn of this rank ended, on the clock that the ranks of a host share."""
    win, mine, place = made.win, np.full(1, comm.rank + 1, "l"), 8 * comm.rank
    begin = comm.bcast(perf_counter() + 0.05)
    comm.Barrier()
    sleep(max(0.0, begin - perf_counter()))
    begin = perf_counter() if perf_counter() > begin + duration else begin  # if the barrier took very long
    ends = []
    while not ends or ends[-1] < begin + duration:
        win.Lock(0)
        win.Put(mine, 0, place)
        win.Unlock(0)
        ends.append(perf_counter())
    comm.Barrier()
    if comm.rank == 0:
        win.Lock(0)
        there = made.memory.view("l").tolist()
        win.Unlock(0)
        if there != list(range(1, comm.size + 1)):
            raise RuntimeError(f"contention: rank 0 has {there} after a Put by every rank")
    return np.array(ends)
