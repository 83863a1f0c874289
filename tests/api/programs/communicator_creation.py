"""The programs of test_communicator_creation.py."""

import random
import threading

import numpy as np
from rankside import MPI, await_flag, fails, interrupted_in_a_wait, raise_flag, rank, size, world

import gormapy


def splits(seed, rounds):
    """Split into groups of which all ranks know what they are, one out of another."""
    plan = random.Random(seed)
    parent = world.Dup()
    for _ in range(rounds):
        colors = [plan.choice([0, 1, 2, MPI.UNDEFINED]) for _ in range(size)]
        keys = [plan.randrange(size) for _ in range(size)]
        made = parent.Split(colors[rank], keys[rank])
        if colors[rank] == MPI.UNDEFINED:
            assert made == MPI.COMM_NULL
        else:
            members = sorted((r for r in range(size) if colors[r] == colors[rank]), key=lambda r: keys[r])
            assert made.allgather(rank) == members
            inner = made.Split(made.rank % 2, -made.rank)
            assert inner.allgather(rank) == [r for r in members if members.index(r) % 2 == made.rank % 2][::-1]
            again = inner.Dup()
            again.Barrier()
            again.Free()
            inner.Free()
            made.Free()
        assert parent.allreduce(1) == size
    parent.Free()


def more_than_there_are_blocks():
    """Communicators that find no barrier block use messages; blocks that are given back are used again."""
    for _ in range(2):
        made = [world.Dup() for _ in range(600)]
        for comm in (made[0], made[300], made[-1]):
            assert comm.allreduce(1) == size
            inner = comm.Split(0, -rank)
            assert inner.allgather(rank) == list(range(size))[::-1]
            inner.Free()
        for comm in made:
            comm.Free()


MAKING = {
    "Dup": lambda comm: comm.Dup(),
    "Split": lambda comm: comm.Split(0, -rank),
    "Create": lambda comm: comm.Create(comm.group),
    "Allocate": lambda comm: MPI.Win.Allocate(64, comm=comm),
    "Create_cart": lambda comm: comm.Create_cart([size]),
    "Open": lambda comm: MPI.File.Open(comm, "file", MPI.MODE_CREATE | MPI.MODE_RDWR),
}


def given_up(what, who):
    """A rank's call is interrupted before the others make theirs: these fail, and the communicator can be used."""
    make, comm = MAKING[what], world.Dup()
    for attempt in range(3):
        world.Barrier()
        if rank == who:
            with interrupted_in_a_wait():
                make(comm)
            raise_flag(f"interrupted {attempt}")
        else:
            await_flag(f"interrupted {attempt}")
            with fails(MPI.ERR_OTHER, "has given it up"):
                make(comm)
        assert comm.allreduce(1) == size
        made = make(comm)
        if isinstance(made, MPI.Comm):
            assert sorted(made.allgather(rank)) == list(range(size))
        (made.Close if isinstance(made, MPI.File) else made.Free)()
    comm.Free()


def blocking_and_not():
    """Dup at one rank and Idup at another one: an error where that can be seen, and no hang."""
    comm = world.Dup()
    if rank == 0:
        with fails(MPI.ERR_OTHER, "make or free communicators or windows by different calls"):
            comm.Dup()
    else:
        comm.Idup()
    gormapy.reset()


def in_several_threads():
    """Threads make and free communicators of their own at a time."""
    comms = [world.Dup() for _ in range(4)]
    failed = []

    def work(comm):
        try:
            for k in range(30):
                made = comm.Dup() if k % 2 else comm.Split(rank % 2, rank)
                total = np.zeros(1)
                made.Allreduce(np.ones(1), total)
                assert total[0] == made.size
                made.Free()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(comm,)) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    for comm in comms:
        comm.Free()
