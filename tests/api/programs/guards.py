"""The programs of test_guards.py. They choose settings of one rank before MPI begins."""

import os


def that_differ(name, value):
    if os.environ["GORMAPY_JOB_RANK"] == "1":
        os.environ[name] = value
    from gormapy import MPI

    world = MPI.COMM_WORLD
    world.allgather(world.rank)
