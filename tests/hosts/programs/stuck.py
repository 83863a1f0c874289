"""Ranks that wait for ever: for the next one; in C; the one that is named is stopped."""

import ctypes
import os
import signal
import sys

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
world.Barrier()
if len(sys.argv) > 1 and rank == int(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGSTOP)


def sleep_in_c():
    ctypes.CDLL(None).sleep(600)


if rank == 2:
    sleep_in_c()
world.Recv(np.zeros(1), source=(rank + 1) % size, tag=7)
