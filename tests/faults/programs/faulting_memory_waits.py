"""Programs of test_faulting_memory.py: who waits for what, and who is told what."""

import pathlib
import signal
import time

import numpy as np
from badmemory import protected
from rankside import fails, rank, size, world

from gormapy import MPI


def ranks_that_are_far_ahead_tell_of_it(n):
    good, bad = np.zeros(512, "l"), protected()
    if rank == 0:
        # More collectives than a rank can be ahead of others by what it has posted.
        requests = [world.Ibcast(good if i < n - 1 else bad, root=0) for i in range(n)]
    else:
        requests = [world.Ibcast(good, root=0) for i in range(n)]
    errors = []
    for request in requests:
        try:
            request.Wait()
        except MPI.Exception as error:
            errors.append(error)
    assert len(errors) == 1, errors
    assert errors[0].Get_error_class() == (MPI.ERR_BUFFER if rank == 0 else MPI.ERR_OTHER), errors
    assert world.allreduce(1) == size


def late_news_do_not_cover_newer_ones(later):
    request = world.Ibcast(protected() if rank == 1 else np.zeros(512, "l"), root=0)
    for i in range(later):
        small = np.full(1, i if rank == 1 else -1)
        world.Bcast(small, root=1)
        assert small[0] == i
    try:
        request.Wait()
    except MPI.Exception as error:
        assert rank == 1 or error.Get_error_class() == MPI.ERR_OTHER, error
    assert world.allreduce(1) == size


def addresses_close_to_zero(address):
    nothing = MPI.buffer.fromaddress(address, 64)
    win = MPI.Win.Create(np.zeros(64, "u1"), 1, comm=world)
    win.Fence()
    for call in (
        lambda: world.Isend([nothing, MPI.BYTE], 1 - rank).Wait(),
        lambda: world.Irecv([nothing, MPI.BYTE], 1 - rank),
        lambda: world.Ibcast([nothing, MPI.BYTE], root=0),
        lambda: world.Allreduce([nothing, MPI.BYTE], [np.zeros(64, "u1"), MPI.BYTE]),
        lambda: win.Put([nothing, MPI.BYTE], 1 - rank),
        lambda: win.Get([nothing, MPI.BYTE], 1 - rank),
    ):
        with fails(MPI.ERR_BUFFER):
            call()
    win.Fence()
    win.Free()


def a_receive_does_not_wait_for_what_its_own_send_did_not_send(call, pages):
    bad = protected(pages)
    with fails(MPI.ERR_BUFFER):
        request = getattr(world, call)(bad, 0, recvbuf=np.zeros_like(bad))
        request.Wait()
    got = np.zeros(2)
    world.Sendrecv(np.ones(2), 0, recvbuf=got)
    assert got.all()


def a_long_sendrecv_ends_with_the_send_that_a_peer_can_not_read(directory):
    bad, got = protected(400), np.zeros(2)
    looked = pathlib.Path(directory, "rank 0 looked at signals")
    if rank == 0:
        signal.signal(signal.SIGALRM, lambda *_: looked.touch())
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        with fails(MPI.ERR_BUFFER):
            world.Sendrecv(bad, 1, recvbuf=np.zeros_like(bad), source=1, recvtag=5)
        signal.setitimer(signal.ITIMER_REAL, 0)
    else:
        while not looked.exists():
            time.sleep(0.01)
        try:
            world.Recv(np.zeros_like(bad), 0)
        except MPI.Exception:
            pass
        else:
            raise AssertionError("memory that can't be read was received")
    world.Sendrecv(np.ones(2), 1 - rank, recvbuf=got)
    assert got.all()
