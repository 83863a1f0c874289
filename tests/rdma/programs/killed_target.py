"""The program of killed_peer.py: a target is killed while its window is written to."""

import os
import signal
import threading
import time

import numpy as np

from gormapy import MPI

comm = MPI.COMM_WORLD
win = MPI.Win.Create(np.zeros(1 << 18, "b") if comm.rank == 1 else None, comm=comm)
comm.Barrier()
if comm.rank == 1:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    time.sleep(60)
data = np.ones(1 << 18, "b")
win.Lock(1)
while True:
    win.Put(data, 1)
    win.Flush(1)
