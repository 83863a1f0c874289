"""The programs of test_kind_errors.py."""

import numpy as np
from rankside import fails, world

from gormapy import MPI


def integers_beyond_32_bits_are_not_cut():
    a, b, far = np.zeros(1), np.zeros(1), 1 << 32
    i, j = np.zeros(1, "i8"), np.zeros(1, "i8")
    win = MPI.Win.Allocate(8, 8, comm=world)
    win.Lock_all()
    for call, kind in [
        (lambda: world.Send(a, far), MPI.ERR_RANK),
        (lambda: world.Send(a, 0, far), MPI.ERR_TAG),
        (lambda: world.Send(a, 0, 1 << 31), MPI.ERR_TAG),
        (lambda: world.Isend(a, 0, far), MPI.ERR_TAG),
        (lambda: world.Sendrecv(a, 0, far, b, 0), MPI.ERR_TAG),
        (lambda: world.Recv(a, far), MPI.ERR_RANK),
        (lambda: world.Probe(far), MPI.ERR_RANK),
        (lambda: world.Bcast(a, far), MPI.ERR_ROOT),
        (lambda: world.Gather(a, None, far), MPI.ERR_ROOT),
        (lambda: win.Put(a, far), MPI.ERR_RANK),
        (lambda: win.Get(a, far), MPI.ERR_RANK),
        (lambda: win.Accumulate(a, far), MPI.ERR_RANK),
        (lambda: win.Fetch_and_op(a, b, far), MPI.ERR_RANK),
        (lambda: win.Compare_and_swap(i, i, j, far), MPI.ERR_RANK),
        (lambda: win.Flush(far), MPI.ERR_RANK),
        (lambda: win.Unlock(far), MPI.ERR_RANK),
        (lambda: win.Lock(far), MPI.ERR_RANK),
        (lambda: win.Lock(0, far), MPI.ERR_LOCKTYPE),
        (lambda: win.Fence(far), MPI.ERR_ASSERT),
    ]:
        with fails(kind):
            call()
    win.Unlock_all()
    win.Free()


def abort_is_never_a_success():
    MPI.COMM_WORLD.Abort(256)


def rank_given_to_recv_as_the_buffer():
    request = MPI.COMM_WORLD.isend("x", 0)
    MPI.COMM_WORLD.recv(0)
    request.wait()
