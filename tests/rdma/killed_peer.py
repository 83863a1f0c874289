"""A job of two ranks of which one is killed while the other writes to it, over verbs: it ends, and says why."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, threading, time
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
"""

mpiexec = Path(__file__).resolve().parents[2] / "python/gormapy/_bin/mpiexec"
command = [str(mpiexec), "-n", "2", "--timeout", "90", sys.executable, "-c", PROGRAM]
done = subprocess.run(command, env={**os.environ, "GORMAPY_FABRIC": "verbs"}, stderr=subprocess.PIPE, text=True)
print(done.stderr)
print("ended with status", done.returncode)
sys.exit(done.returncode != 128 + 9 or "rank 1" not in done.stderr)
