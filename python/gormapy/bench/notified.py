"""Notified puts of gormapy.notify, beside Put and Flush in the same run, and how soon a rank that sleeps is woken."""

import time

import numpy as np

from .timing import BUDGET, absent, alternate, row

_WAKES = 200
_REST = 0.003  # seconds: longer than a wait polls before it sleeps


def notified(MPI, comm, budget=BUDGET):
    """Time notified puts of 8 bytes from rank 0 to rank 1, and the wake-up of a rank that waits for one."""
    if MPI.__name__ != "gormapy.MPI":
        yield absent("notified", "notified puts are gormapy's own")
        return
    from gormapy.notify import put_notify, win_notified

    if comm.size < 2:
        raise SystemExit("notified: it takes 2 ranks, and there is 1: use -n 2")
    win = MPI.Win.Allocate(16, 8, comm=comm)
    there = np.frombuffer(win, dtype=float)
    win.Lock_all()
    comm.Barrier()
    if comm.rank == 0:
        one = np.ones(1)

        def put():
            win.Put(one, 1)
            win.Flush(1)

        plain, notifying = alternate((put, lambda: put_notify(win, one, 1, 0, 0)), budget)
        yield row("Put 8 B + Flush", plain)
        yield row("put_notify 8 B", notifying)
    comm.Barrier()
    late = []
    for _ in range(_WAKES):
        if comm.rank == 0:
            time.sleep(_REST)
            put_notify(win, np.array([time.monotonic()]), 1, 0, 1)
            win_notified(win, 2)
        elif comm.rank == 1:
            win_notified(win, 1)
            late.append(time.monotonic() - there[0])  # the clock is the host's
            put_notify(win, np.zeros(1), 0, 0, 2)
    late = comm.bcast(late, 1)
    if comm.rank == 0:
        yield row("a rank that sleeps is woken", late)
    win.Unlock_all()
    del there
    win.Free()
