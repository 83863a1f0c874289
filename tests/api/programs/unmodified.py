"""A program for mpi4py: of test_run_and_launch.py."""

import sys

import mpi4py

mpi4py.rc.threads = False
import mpi4py.MPI as same  # noqa: E402
from mpi4py import MPI, rc  # noqa: E402

assert same is MPI and rc is mpi4py.rc
assert tuple(map(int, mpi4py.__version__.split(".")[:2])) >= (4, 0)
assert __name__ == "__main__" and sys.argv[0] == __file__ and sys.argv[1:] == ["a", "-b"]
assert sys.modules["__main__"].MPI is MPI


class Point:
    pass


point = Point()
point.x = MPI.COMM_WORLD.rank
assert MPI.COMM_WORLD.bcast(point).x == 0
