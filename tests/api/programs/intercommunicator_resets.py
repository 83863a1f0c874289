"""The programs of test_intercommunicator_resets.py."""

import time

import numpy as np
from rankside import interrupted, rank, reset, size
from two_groups import pair, root_argument

from gormapy import MPI


def drain(requests):
    """Wait for requests that were complete before a reset, or were dropped by it."""
    dropped = 0
    for request in requests:
        try:
            request.Wait()
        except MPI.Exception as error:
            assert error.Get_error_class() in (MPI.ERR_PENDING, MPI.ERR_OTHER), error
            dropped += 1
    return dropped


def check(comm, far):
    """All works on an intercommunicator."""
    assert not comm.Iprobe(), "a message of the time before the reset is still there"
    got = np.zeros(1)
    comm.Allreduce(np.full(1, float(rank)), got)
    assert got[0] == sum(far)
    assert comm.allgather(rank) == far
    for root in range(2):
        rooted = rank % 2 == root
        assert comm.bcast("all", root_argument(comm, rooted)) == (None if rooted else "all")
    if comm.rank == 0:
        comm.Sendrecv(np.full(100_000, float(rank)), 0, 5, into := np.zeros(100_000), 0, 5)
        assert (into == far[0]).all()
    merged = comm.Merge()
    assert merged.allreduce(1) == size
    merged.Free()
    dup = comm.Dup()
    assert dup.allgather(rank) == far
    dup.Free()


def reset_in_an_exchange(length):
    with pair() as (comm, far):
        for turn in range(2 * size):
            absent = turn % size  # calls nothing, so that nothing of all this can complete
            requests = []
            if rank != absent:
                n = comm.remote_size
                requests = [
                    comm.Iallreduce(np.zeros(length), np.zeros(length)),
                    comm.Ialltoall(np.zeros(n * length), np.zeros(n * length)),
                    comm.Iallgather(np.zeros(length), np.zeros(n * length)),
                    comm.Ibcast(np.zeros(length), root_argument(comm, rank % 2 == absent % 2, absent // 2)),
                    comm.Ibarrier(),
                    comm.Irecv(np.zeros(length), MPI.ANY_SOURCE, 3),
                ]
            if turn % 3 == 0 and rank != absent:
                time.sleep(0.02)  # the ranks have asked each other what they wait for
            reset()
            assert drain(requests) >= (0 if rank == absent else 2)
            check(comm, far)


CALLS = {
    "Allreduce": lambda comm: comm.Allreduce(np.zeros(1), np.zeros(1)),
    "alltoall": lambda comm: comm.alltoall([0] * comm.remote_size),
    "bcast": lambda comm: comm.bcast(None, root_argument(comm, rank % 2 == 0)),
    "Barrier": lambda comm: comm.Barrier(),
    "Merge": lambda comm: comm.Merge(),
    "Dup": lambda comm: comm.Dup(),
    "Split": lambda comm: comm.Split(0),
    "recv": lambda comm: comm.recv(source=0, tag=9),
}


def interrupted_in(call):
    """All ranks but world rank 0 are interrupted in a call, those that do not wait after it."""
    with pair() as (comm, far):
        if rank:
            with interrupted():
                CALLS[call](comm)
                time.sleep(5)
        else:
            time.sleep(0.4)
        reset()
        check(comm, far)
