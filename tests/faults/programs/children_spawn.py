"""A program whose children do without MPI: of test_children.py."""

import math
import multiprocessing as mp


def main():
    from gormapy import MPI

    world = MPI.COMM_WORLD
    if world.rank == 0:
        with mp.get_context("spawn").Pool(2) as pool:
            assert pool.map(math.factorial, range(5)) == [1, 1, 2, 6, 24]
    world.Barrier()


if __name__ == "__main__":
    main()
