"""The program of test_table.py: ranks in a state, one of which, or all, can be told to fail."""

import ctypes
import os
import signal
import sys
import time

import numpy as np
from rankside import MPI, hello, rank, world

VICTIM = 1

win = MPI.Win.Allocate(8, 1, comm=world)


def raise_error():
    raise ValueError("lost")


# What a rank does when it is told to by SIGUSR1.
FAULTS = {
    "os._exit(3)": lambda: os._exit(3),
    "sys.exit(3)": lambda: sys.exit(3),
    "raise": raise_error,
    "Abort(5)": lambda: world.Abort(5),
    "segfault": lambda: ctypes.string_at(8),
}


def compute():
    while True:
        sum(range(1000))


# What the ranks other than the victim do. Those that have to prepare it do so before a barrier.
STATES = {
    "recv": lambda: world.Recv(np.zeros(1), source=VICTIM),
    "recv, any source": world.recv,
    "Barrier": world.Barrier,
    "Fence": win.Fence,
    "Lock, waiting": lambda: win.Lock(0) if rank == 2 else world.recv(source=VICTIM),
    "Lock, of the victim": lambda: win.Lock(0),
    "Win.Free": win.Free,
    "Allreduce": lambda: world.Allreduce(np.zeros(4), np.zeros(4)),
    "Bcast": lambda: world.Bcast(np.zeros(4), root=VICTIM),
    "computing": compute,
    "in C": lambda: sum(range(10**12)),
}
HOLDER = {"Lock, waiting": 0, "Lock, of the victim": VICTIM}


def be(state, fault, alone):
    """Be in a state; the victim fails alone, or is in a state like the others."""
    if fault is not None:
        signal.signal(signal.SIGUSR1, lambda *_: FAULTS[fault]())
    if rank == HOLDER.get(state):
        win.Lock(0)
    world.Barrier()
    hello()
    if rank != VICTIM:
        STATES[state]()
    elif alone:
        while True:
            time.sleep(1)
    else:
        world.recv(source=VICTIM, tag=99)
