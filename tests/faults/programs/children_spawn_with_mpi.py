"""A program whose children begin MPI when they import it: of test_children.py."""

import multiprocessing as mp

from gormapy import MPI


def size(i):
    return MPI.COMM_WORLD.size


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    assert world.size == 2
    if world.rank == 0:
        with mp.get_context("spawn").Pool(2) as pool:
            assert pool.map(size, range(4)) == [1] * 4
    world.Barrier()
