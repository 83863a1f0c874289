"""The programs of test_mismatch.py."""

import contextlib
import random

import numpy as np
import pytest

from gormapy import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def lenient():
    data = np.arange(4, dtype="u8" if rank == 0 else "i8") * (rank == 0)
    comm.Bcast([data, MPI.BYTE] if rank == 1 else data)
    assert data.tolist() == [0, 1, 2, 3]
    for root in range(size):  # roots that run ahead
        for k in range(50):
            data[:] = k if rank == root else -1 if data.dtype == "i8" else 0
            comm.Bcast(data, root)
            assert (data == k).all()


def mismatch(mine, theirs):
    """Make a call on rank 0, and another one on all others."""
    exec(mine if rank == 0 else theirs)


WAITING = (
    lambda on, one, more: on.Bcast(one, (rank + 1) % size),
    lambda on, one, more: on.Gather(one, more, rank),
    lambda on, one, more: on.Scatter(more, one, (rank + 1) % size),
    lambda on, one, more: on.Gather(one, more, 1) if rank == 1 else on.Bcast(one, 1),
    lambda on, one, more: on.Bcast(one if rank else one[:100], (rank + 1) % size),
)


def each_waits_for_the_other():
    for length in (20_000, 200_000):
        one, more = np.zeros(length, "u1"), np.zeros(size * length, "u1")
        for call in WAITING:
            mine = comm.Dup()
            mine.Bcast(np.zeros(300_000), 0)  # finds out that all ranks can read from each other
            with pytest.raises(MPI.Exception, match=r"the ranks do not call the same|has given it up"):
                call(mine, one, more)


def all_hear_of_it():
    """Ranks of which one calls something else end, and say that, before the last one calls."""
    mine = comm.Dup()
    mine.Bcast(np.zeros(300_000), 0)
    if rank == 0:
        for other in range(1, size):
            comm.recv(source=other)
    kind = "f4" if rank == 1 else "f8"
    with pytest.raises(MPI.Exception, match="the ranks do not call the same"):
        mine.Allreduce(np.ones(300_000, kind), np.zeros(300_000, kind))
    if rank:
        comm.send(None, 0)


KINDS = ("Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce", "Allreduce", "Scan", "Exscan")


def collective(name, root, n):
    """Call a collective of n floats for each rank."""
    one, more = np.ones(n), np.ones(n * size)
    arguments = {
        "Barrier": (),
        "Bcast": (one, root),
        "Gather": (one, more, root),
        "Scatter": (more, one, root),
        "Allgather": (one, more),
        "Alltoall": (more, np.ones(n * size)),
        "Reduce": (one, np.ones(n), MPI.SUM, root),
    }
    getattr(comm, name)(*arguments.get(name, (one, np.ones(n))))


def patterns(mine, theirs, rounds):
    """Call other collectives on rank 0 than on the others, again and again."""
    for _ in range(rounds):
        failed = 0
        try:
            exec(mine if rank == 0 else theirs)
        except MPI.Exception as error:
            failed = 1
            assert "the ranks do not call the same collective" in str(error), error
        assert comm.allreduce(failed) > 0
        assert comm.allreduce(1) == size


def anything(seed, rounds):
    """Have each rank call what it likes."""
    for i in range(rounds):
        plan, own = random.Random(f"{seed} {i}"), random.Random(f"{seed} {i} {rank}")
        odd, everybody = plan.randrange(size), plan.random() < 0.3
        call = [plan.choice(KINDS), plan.randrange(size), plan.choice((0, 3, 500, 5000, 40_000))]
        if everybody or rank == odd:
            call = [own.choice(KINDS), own.randrange(size), own.choice((0, 3, 500, 5000, 40_000))]
        with contextlib.suppress(MPI.Exception):
            collective(*call)
        assert comm.allreduce(1) == size, (seed, i)


def objects_with_another_root(call):
    """Ranks that fail in the first step of a collective of objects stay in step with the others."""
    mine = comm.Dup()
    root = 1 if rank == size - 1 else 0
    with contextlib.suppress(MPI.Exception):
        if call == "gather":
            mine.gather("x", root)
        else:
            mine.scatter(list(range(size)) if rank in (0, 1) else None, root)
    comm.Barrier()
    for _ in range(2):
        assert mine.allgather(rank) == list(range(size))
