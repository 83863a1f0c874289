"""Rank 0 sends to rank 1 for some seconds. Rank 1 prints MiB a second of the second half, and how they are connected."""

import sys
import time

import numpy as np

from gormapy import MPI

world, seconds = MPI.COMM_WORLD, float(sys.argv[1])
buf = np.zeros(4 << 20, "b")
begin, counted, half = time.monotonic(), 0, None
while True:
    if world.rank == 0:
        buf[0] = time.monotonic() - begin > seconds
        world.Send(buf, 1)
    else:
        world.Recv(buf, 0)
        now = time.monotonic()
        if half is None and now - begin > seconds / 2:
            half = now
        elif half is not None:
            counted += buf.nbytes
    if buf[0]:
        break
if world.rank == 1:
    print(f"{counted / (now - half) / 2**20:.0f} MiB/s", flush=True)
