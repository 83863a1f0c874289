"""The programs of test_watch.py."""

import numpy as np

from gormapy import MPI
from gormapy._ext import fast


def a_signal_in_it_is_seen():
    class Late(Exception):
        pass

    def watch(obj):
        raise Late

    comm = MPI.COMM_WORLD
    win = MPI.Win.Allocate(1 << 20, 1, comm=comm)
    win.Lock_all()
    a, b = np.zeros(1000), np.zeros(1000)
    fast.watch(1000, watch)
    calls = [
        lambda: comm.Isend(a, 0),
        lambda: comm.Irecv(a, 0),
        lambda: comm.Send(a, 0),
        lambda: comm.Recv(a, 0),
        lambda: comm.Bcast(a),
        lambda: comm.Allreduce(a, b),
        lambda: comm.Alltoall(a, b),
        lambda: win.Put(a, 0),
        lambda: win.Get(a, 0),
        lambda: win.Accumulate(a, 0),
        lambda: win.Rput(a, 0),
    ]
    for i, call in enumerate(calls):
        try:
            call()
        except Late:
            continue
        raise AssertionError(i)
    fast.watch(1 << 30, watch)
    comm.Allreduce(a, b)
    win.Unlock_all()
    win.Free()
