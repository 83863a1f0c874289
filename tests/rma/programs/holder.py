"""Rank 0 holds a lock for a second; the others wait for it. Print the processor time that they used."""

import json
import resource
import time

from onesided import MPI, Window, rank, world

with Window("allocate", 1, "i8") as w:
    world.Barrier()
    if rank == 0:
        w.win.Lock(0)
    world.Barrier()
    before = resource.getrusage(resource.RUSAGE_SELF)
    if rank == 0:
        time.sleep(1.0)
    else:
        w.win.Lock(0, MPI.LOCK_EXCLUSIVE if rank % 2 else MPI.LOCK_SHARED)
    w.win.Unlock(0)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = world.gather(cpu)
    if rank == 0:
        print(json.dumps(found[1:]))
