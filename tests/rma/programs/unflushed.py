"""Operations that nothing completes, on a target that is slow or whose program is elsewhere.

``compute``: rank 0 starts them and then computes; by our promise, which goes beyond the standard, they reach the target's
memory. ``stopped``: the target's process is stopped for a while; starting operations does not take ever more memory.
"""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
from onesided import MPI, rank, same, world

ENOUGH = 20.0
COUNT = 300


def compute():
    memory = MPI.Alloc_mem(2 * COUNT * 8)
    view = np.frombuffer(memory, "f8")
    view[:] = 0
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Lock_all()
    world.Barrier()
    end = time.monotonic() + ENOUGH
    if rank == 0:
        values = np.arange(1.0, COUNT + 1)
        for i in range(COUNT):
            win.Put(values[i : i + 1], 1, i)
            win.Accumulate(values[i : i + 1], 1, COUNT + i)
        while not os.path.exists("seen") and time.monotonic() < end:
            sum(i * i for i in range(10_000))
        assert os.path.exists("seen"), "what was started has not arrived"
    elif rank == 1:
        while not view.all() and time.monotonic() < end:
            win.Sync()
            time.sleep(0.001)
        same(view[:COUNT], np.arange(1.0, COUNT + 1))
        same(view[COUNT:], np.arange(1.0, COUNT + 1))
        open("seen", "w").close()
    win.Unlock_all()
    win.Free()


def stopped():
    piece, puts = 16 << 10, 20_000
    win = MPI.Win.Allocate(piece, 1, comm=world)
    pid = world.bcast(os.getpid(), root=1)
    win.Lock_all()
    win.Flush_all()
    world.Barrier()
    if rank == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.kill(pid, signal.SIGSTOP)
        again = subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {pid}"])
        value = np.zeros(piece, "u1")
        for i in range(puts):
            value[:] = i % 251
            win.Put(value, 1)
        win.Flush(1)
        again.wait()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        assert grown < 100, f"{grown} MiB for operations that were under way"
        world.send("done", dest=1)
    elif rank == 1:
        world.recv(source=0)
        win.Sync()
        same(np.frombuffer(win.tomemory(), "u1"), np.full(piece, (puts - 1) % 251))
    win.Unlock_all()
    win.Free()


{"compute": compute, "stopped": stopped}[sys.argv[1]]()
