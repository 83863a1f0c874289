"""Messages and one-sided operations with arrays of every kind of number."""

import numpy as np

from gormapy import MPI

NUMBERS = "?bBhHiIlLqQfdgFDG"


def messages_of_every_kind_of_number():
    comm = MPI.COMM_WORLD  # of two
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    for kind in NUMBERS:
        sent = (np.arange(12) + 20 * comm.rank).astype(kind).reshape(3, 4)
        expected = (np.arange(12) + 20 * left).astype(kind).reshape(3, 4)
        got = np.zeros((3, 4), kind)
        comm.Sendrecv(sent, right, 0, got, left, 0)
        assert (got == expected).all(), (kind, got)

        # The same memory is a message's in Fortran's order.
        got = np.zeros((4, 3), kind, order="F")
        comm.Sendrecv(sent, right, 0, got, left, 0)
        assert (expected == got.T).all(), (kind, got)

        reduced = np.zeros((3, 4), kind)
        comm.Allreduce(sent, reduced, MPI.LOR if kind == "?" else MPI.SUM)
        assert (reduced == sent + expected).all(), (kind, reduced)

        window = np.zeros((3, 4), kind)
        win = MPI.Win.Create(window, window.itemsize, comm=comm)
        win.Fence()
        win.Put(sent, right)
        win.Fence()
        assert (window == expected).all(), (kind, window)
        win.Free()

    # One whose datatype is not that of its items, and a part of an array.
    numbers = np.arange(10, dtype="D") * (1 + comm.rank)
    got = np.zeros(20)
    comm.Sendrecv([numbers[2:7], 10, MPI.DOUBLE], right, 1, [got, 10, MPI.DOUBLE], left, 1)
    assert (got[:10].view("D") == np.arange(2, 7) * (1 + left)).all() and not got[10:].any()
