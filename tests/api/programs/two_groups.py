"""Intercommunicators for programs of tests."""

import contextlib

from rankside import rank, size, world

from gormapy import MPI

LAYOUTS = (lambda r: r % 2, lambda r: r < 1, lambda r: r >= size // 2)  # which ranks are in the one group


@contextlib.contextmanager
def pair(odd=lambda r: r % 2):
    """Make an intercommunicator of the ranks for which odd is true and the others; yield it and the far world ranks."""
    side = bool(odd(rank))
    near = world.Split(side, rank)
    leaders = [next(r for r in range(size) if bool(odd(r)) == s) for s in (False, True)]
    comm = near.Create_intercomm(0, world, leaders[not side], tag=7)
    near.Free()
    yield comm, [r for r in range(size) if bool(odd(r)) != side]
    comm.Free()


def root_argument(comm, rooted, root=0):
    """Return the root argument: rooted says whether the root is in this group."""
    if not rooted:
        return root
    return MPI.ROOT if comm.rank == root else MPI.PROC_NULL
