"""Programs of test_bad_memory.py that enable faulthandler before they begin MPI, or after that."""

import ctypes
import faulthandler
import os
import signal

import numpy as np


def one_sided_calls(kind, memory, enabled):
    if enabled == "before":
        faulthandler.enable()
    import badmemory
    from badmemory import PAGE, faults
    from rankside import MPI, rank, world

    one, zero, other = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    if enabled == "after":
        faulthandler.enable()
    if kind == "allocated":
        win = MPI.Win.Allocate(PAGE, 8, comm=world)
    else:
        win = MPI.Win.Create(np.zeros(PAGE // 8, "i8"), 8, comm=world)
    bad = getattr(badmemory, memory)()
    to = 1 - rank
    win.Lock_all()
    for _ in range(3):
        faults(win.Put, bad, to, flush=win.Flush_all)
        faults(win.Put, bad[:1], to, flush=win.Flush_all)
        faults(win.Get, bad, to, flush=win.Flush_all)
        faults(win.Get, bad[:1], to, flush=win.Flush_all)
        faults(win.Accumulate, bad[:1], to, flush=win.Flush_all)
        faults(win.Accumulate, bad, to, flush=win.Flush_all)
        faults(win.Fetch_and_op, bad[:1], other, to, flush=win.Flush_all)
        faults(win.Fetch_and_op, one, bad[:1], to, flush=win.Flush_all)
        faults(win.Compare_and_swap, bad[:1], zero, other, to, 5, flush=win.Flush_all)
        faults(win.Compare_and_swap, one, bad[:1], other, to, flush=win.Flush_all)
        faults(win.Compare_and_swap, one, one, bad[:1], to, flush=win.Flush_all)
    win.Flush_all()
    world.Barrier()
    win.Put(np.full(1, 40), to, 3)
    win.Accumulate(one, to, 3)
    win.Fetch_and_op(one, other, to, 3)
    win.Flush(to)
    assert other[0] == 41, other
    win.Get(other, to, 3)
    win.Flush(to)
    assert other[0] == 42, other
    win.Unlock_all()
    win.Free()


FATAL = {
    "ctypes.string_at(8)": lambda: ctypes.string_at(8),
    "os.kill(os.getpid(), signal.SIGSEGV)": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}


def other_faults_are_as_fatal_as_ever(enabled, what):
    if enabled == "before":
        faulthandler.enable()
    from gormapy import MPI

    if enabled in ("after", "taken back"):
        faulthandler.enable()
    if enabled == "taken back":
        faulthandler.disable()
    _win = MPI.Win.Allocate(8)
    FATAL[what]()
