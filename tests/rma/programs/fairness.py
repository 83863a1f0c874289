"""All ranks want the same exclusive lock for as many seconds as the argument says; print who had how many turns."""

import json
import resource
import sys
import time

import numpy as np
from onesided import Window, rank, world

seconds, flavour = float(sys.argv[1]), sys.argv[2]
with Window(flavour, 2, "i8") as w:
    value, turns = np.zeros(1, "i8"), 0
    world.Barrier()
    used = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.monotonic()
    ends = begun + seconds
    while time.monotonic() < ends:
        w.win.Lock(0)
        # what is done under the lock takes as long as a small update of shared data
        w.win.Get(value, 0, w.at(0))
        w.win.Flush(0)
        value += 1
        pause = time.perf_counter() + 20e-6
        while time.perf_counter() < pause:
            pass
        w.win.Put(value, 0, w.at(0))
        w.win.Unlock(0)
        turns += 1
    took = time.monotonic() - begun
    now = resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    found = world.gather((turns, cpu, took))
    if rank == 0:
        every = [f[0] for f in found]
        assert w.mine[0] == sum(every), "updates were lost"
        print(json.dumps({"turns": every, "cpu": sum(f[1] for f in found), "wall": max(f[2] for f in found)}))
