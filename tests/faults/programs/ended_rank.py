"""The programs of test_ended_rank.py."""

import functools
import os
import sys
import time

import numpy as np
from rankside import fails, rank, say, size, stamp, world

from gormapy import MPI


def messages_of_an_ended_rank_can_still_be_received():
    if rank == 1:
        for i in range(10):
            world.Send(np.full(4, i), dest=0, tag=i)
    else:
        time.sleep(0.7)
        for i in range(10):
            a = np.zeros(4, int)
            world.Recv(a, source=1, tag=i)
            assert (a == i).all()
        with fails(MPI.ERR_PROC_FAILED, "rank 1"):
            world.Recv(a, source=1)


def the_status_says_that_a_receive_has_failed(call):
    """Of all calls that receive: the long messages and the short ones, those that wait in Python and those that wait in the core."""
    if rank == 1:
        return
    data, status = np.zeros(4 if call != "long" else 100_000), MPI.Status()
    receive = {
        "recv": lambda: world.Recv(data, 1, 0, status),
        "wait": lambda: world.Irecv(data, 1, 0).Wait(status),
        "sendrecv": lambda: world.Sendrecv(data.copy(), 1, 0, data, 1, 0, status),
    }.get(call, lambda: world.Sendrecv_replace(data, 1, 0, 1, 0, status))
    status.error = MPI.SUCCESS
    with fails(MPI.ERR_PROC_FAILED, "rank 1"):
        receive()
    assert status.error == MPI.ERR_PROC_FAILED


def uninvolved_ranks_go_on():
    a = np.zeros(1)
    if rank == 1:
        sys.exit(0)
    time.sleep(0.5)
    other = 2 - rank
    for _i in range(200):
        world.Sendrecv(np.ones(1), other, 0, a, other, 0)
    assert a[0] == 1


def any_source_when_nobody_is_left():
    if rank == 0:
        with fails(MPI.ERR_PROC_FAILED):
            world.Recv(np.zeros(1), source=MPI.ANY_SOURCE)
    else:
        time.sleep(0.2 * rank)


def lock_held_by_an_ended_rank():
    win = MPI.Win.Allocate(8, 1, comm=world)
    if rank == 1:
        win.Lock(0)
        world.Barrier()
        os._exit(0)  # no finalisation: the lock stays where it is
    world.Barrier()
    begun = time.monotonic()
    try:
        win.Lock(0)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
        say("told", error)
        win.Lock(0)  # it is free now
    win.Unlock(0)
    assert time.monotonic() - begun < 20
    world.sendrecv(None, 2 - rank, source=2 - rank)  # the lock lies on rank 0


def end_without_finalisation():
    if rank == 1:
        os._exit(0)
    with fails(MPI.ERR_PROC_FAILED, "rank 1"):
        world.Recv(np.zeros(1), source=1)


def rank_that_ends_without_ever_joining():
    if os.environ["GORMAPY_JOB_RANK"] == "1":
        sys.exit(0)
    for call in (
        world.Barrier,
        lambda: world.Recv(np.zeros(1), source=1),
        lambda: world.Ssend(np.zeros(1), dest=1),
        lambda: world.Send(np.zeros(1_000_000), dest=1),
        lambda: MPI.Win.Allocate(8, comm=world),
    ):
        with fails(MPI.ERR_PROC_FAILED, "rank 1"):
            call()
        world.sendrecv(0, 2 - rank, source=2 - rank)


def put_to_an_ended_rank():
    a = np.zeros(1000)
    shared, private = MPI.Win.Allocate(8000, 8, comm=world), MPI.Win.Create(a, 8, comm=world)
    world.Barrier()
    if rank == 1:
        os._exit(0)
    with fails(MPI.ERR_PROC_FAILED, "rank 1"):
        world.Recv(np.zeros(1), source=1)  # until it has ended, and this rank knows it
    with fails(MPI.ERR_PROC_FAILED, "rank 1"):
        private.Lock(1, MPI.LOCK_SHARED)
        private.Put(np.ones(1000), 1)
        private.Flush(1)
    # what lives still works
    other = 2 - rank
    shared.Lock(other)
    shared.Put(np.full(1000, 3.0), other)
    shared.Unlock(other)
    private.Lock(other)
    private.Accumulate(np.full(1000, 3.0), other)
    private.Unlock(other)
    world.sendrecv(0, 2 - rank, source=2 - rank)


def lock_at_an_ended_rank_that_a_living_one_holds():
    win = MPI.Win.Allocate(8, 8, comm=world)
    if rank == 0:
        win.Lock(1)
    world.Barrier()
    if rank == 1:
        time.sleep(0.3)
        os._exit(0)
    if rank == 2:
        with fails(MPI.ERR_PROC_FAILED, "rank 1"):
            win.Lock(1)
    world.sendrecv(0, 2 - rank, source=2 - rank)


@functools.cache
def ring():
    return world.Create_cart([size], [True])


def persistent(win):
    request = world.Recv_init(np.zeros(1), source=1)
    request.Start()
    request.Wait()


def partitioned(init, parts):
    request = init(np.zeros(4), 2, 1, 5)
    request.Start()
    for i in range(parts):
        request.Pready(i)
    request.Wait()


WAITS = {
    "partitioned receive": lambda win: partitioned(world.Precv_init, 0),
    "partitioned send": lambda win: partitioned(world.Psend_init, 1),
    "recv": lambda win: world.Recv(np.zeros(1), source=1),
    "pickled": lambda win: world.recv(source=1),
    "irecv": lambda win: world.Irecv(np.zeros(1), source=1).Wait(),
    "persistent": persistent,
    "waitall": lambda win: MPI.Request.Waitall([world.Irecv(np.zeros(1), source=1) for i in range(3)]),
    "probe": lambda win: world.Probe(source=1),
    "ssend": lambda win: world.Ssend(np.zeros(1), dest=1),
    "rendezvous": lambda win: world.Send(np.zeros(1_000_000), dest=1),
    "sendrecv": lambda win: world.Sendrecv(np.zeros(1), 1, 0, np.zeros(1), 1, 0),
    "barrier": lambda win: world.Barrier(),
    "bcast": lambda win: world.Bcast(np.zeros(1), root=1),
    "gather": lambda win: (world.gather(rank, root=0), world.Barrier()),
    "allreduce": lambda win: world.Allreduce(np.ones(1), np.zeros(1)),
    "alltoall": lambda win: world.alltoall(list(range(size))),
    "neighbors": lambda win: ring().Neighbor_alltoall(np.zeros(2), np.zeros(2)),
    "neighbors-large": lambda win: ring().Neighbor_alltoall(np.zeros(200_000), np.zeros(200_000)),
    "fence": lambda win: win.Fence(),
    "split": lambda win: world.Split(0),
    "dup": lambda win: world.Dup(),
    "create": lambda win: MPI.Win.Create(np.zeros(4), comm=world),
    "allocate": lambda win: MPI.Win.Allocate(64, comm=world),
    "free": lambda win: win.Free(),
}


def others_get_an_error(wait):
    win = MPI.Win.Allocate(8, 1, comm=world)
    ring()  # all ranks make it
    world.Barrier()
    if rank == 1:
        time.sleep(0.3)
        stamp("leaving")
        sys.exit(0)
    with fails(MPI.ERR_PROC_FAILED):
        try:
            WAITS[wait](win)
        except MPI.Exception as error:
            say("text", error)
            raise
    stamp(f"rank{rank}")
    # neither ends before the other one knows of rank 1
    world.sendrecv(None, 2 - rank, source=2 - rank)
    # the error leaves a process that can go on by itself
    assert MPI.COMM_SELF.allreduce(7) == 7
