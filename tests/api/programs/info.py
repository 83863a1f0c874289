"""The programs of test_info.py."""

import json
import subprocess
import sys

import numpy as np

import gormapy
from gormapy import MPI


def child_of_a_rank_says_that_it_is_none():
    done = subprocess.run([sys.executable, "-m", "gormapy", "info", "--json"], capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["job"]["launcher"] == "none" and found["job"]["size"] == 1, found
    assert f"rank {MPI.COMM_WORLD.rank} of the job was granted to process" in found["job"]["why"], found


def value_that_a_setting_cannot_have():
    MPI.COMM_WORLD.Barrier()


def program():
    world = MPI.COMM_WORLD
    for win in (MPI.Win.Create(np.zeros(2), comm=world), MPI.Win.Allocate(8, comm=world)):
        win.Free()
    gormapy.reset()
