"""A program of test_interrupt.py that looks at its threads before it begins MPI."""

import os
import signal
import time

import numpy as np


def signals_go_to_the_threads_of_python():
    np.zeros((300, 300)) @ np.zeros((300, 300))  # NumPy makes threads of its own
    before = set(os.listdir("/proc/self/task"))
    from rankside import MPI, reset, world

    win = MPI.Win.Allocate(8, 8, comm=world)
    for _ in range(20):
        world.Barrier()
        reset()
    added = set(os.listdir("/proc/self/task")) - before
    assert added
    deadline = time.monotonic() + 10
    for thread in added:
        while True:
            with open(f"/proc/self/task/{thread}/status") as file:
                blocked = int(next(line for line in file if line.startswith("SigBlk")).split()[1], 16)
            # Go blocks all signals of a thread that begins.
            if not blocked >> (signal.SIGSEGV - 1) & 1 or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1):
            assert blocked >> (number - 1) & 1, (thread, number, hex(blocked))
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGURG, signal.SIGPROF):
            assert not blocked >> (number - 1) & 1, (thread, number, hex(blocked))
    win.Free()
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
