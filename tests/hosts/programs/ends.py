"""A rank ends badly while the others wait for it; they tell what they learn."""

import os
import signal
import sys
import time

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
how, victim = sys.argv[1], world.Get_size() - 1
world.Barrier()
print(f"rank {rank} is there", flush=True)
begun = time.monotonic()
if rank == victim and how not in ("waits", "writes"):
    time.sleep(0.5)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        sys.exit(3)
    elif how == "abort":
        world.Abort(7)
    elif how == "raise":
        raise ValueError("wrong")
win = MPI.Win.Create(np.zeros(1 << 16, "b"), comm=world) if how == "writes" else None
try:
    if how == "writes" and rank == 0:
        data = np.ones(1 << 16, "b")
        win.Lock(victim)
        while True:
            win.Put(data, victim)
            win.Flush(victim)
    world.Recv(np.zeros(1), source=victim)
except MPI.Exception as error:
    print(f"rank {rank} learns after {time.monotonic() - begun:.1f} s: {error}", flush=True)
    os._exit(9)
