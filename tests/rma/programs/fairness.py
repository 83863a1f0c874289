"""All ranks want the same exclusive lock for as many seconds as the argument says; print who had how many turns, how far apart."""

import json
import resource
import statistics
import sys
import time

import numpy as np
from onesided import Window, rank, world

seconds, flavour = float(sys.argv[1]), sys.argv[2]
with Window(flavour, 2, "i8") as w:
    value, turns, last, gaps = np.zeros(1, "i8"), 0, 0, []
    world.Barrier()
    used = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.monotonic()
    ends = begun + seconds
    while time.monotonic() < ends:
        w.win.Lock(0)
        # what is done under the lock takes as long as a small update of shared data
        w.win.Get(value, 0, w.at(0))
        w.win.Flush(0)
        gaps.append(int(value[0]) - last)  # the turns of others since the last one
        value += 1
        last = int(value[0])
        pause = time.perf_counter() + 20e-6
        while time.perf_counter() < pause:
            pass
        w.win.Put(value, 0, w.at(0))
        w.win.Unlock(0)
        turns += 1
    took = time.monotonic() - begun
    now = resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    found = world.gather((turns, cpu, took, statistics.median(gaps[1:] or [seconds * 1e6])))
    if rank == 0:
        every = [f[0] for f in found]
        assert w.mine[0] == sum(every), "updates were lost"
        wall, cpu = max(f[2] for f in found), sum(f[1] for f in found)
        print(json.dumps({"turns": every, "gaps": [f[3] for f in found], "cpu": cpu, "wall": wall}))
