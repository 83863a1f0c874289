"""The program of two_hosts.py: the last rank is killed, or its host ends, while another host's rank writes to its window."""

import os
import signal
import sys
import time

import numpy as np

from gormapy import MPI

comm = MPI.COMM_WORLD
how, victim = sys.argv[1], comm.size - 1
win = MPI.Win.Create(np.zeros(1 << 16, "b") if comm.rank == victim else None, comm=comm)
comm.Barrier()
print(f"rank {comm.rank} is there", flush=True)
if comm.rank == victim:
    time.sleep(2)
    if how == "rank":
        os.kill(os.getpid(), signal.SIGKILL)
    with open("/run/rxe-guest/rc", "w") as status:
        status.write("0\n")  # for rxe-guest: the guest has ended as it should
    print("the host ends", flush=True)
    with open("/proc/sysrq-trigger", "w") as trigger:
        trigger.write("c")  # the kernel panics, and QEMU ends: nobody says goodbye
begun = time.monotonic()
try:
    if comm.rank == 0:
        data = np.ones(1 << 16, "b")
        win.Lock(victim)
        while True:
            win.Put(data, victim)
            win.Flush(victim)
    comm.Recv(np.zeros(1), source=victim)
except MPI.Exception as error:
    print(f"rank {comm.rank} learns after {time.monotonic() - begun:.1f} s: {error}", flush=True)
    if comm.rank == 0:
        time.sleep(10)  # the others meet at it, and would end with it
    os._exit(9)
