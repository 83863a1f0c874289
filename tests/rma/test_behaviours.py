"""What MPI says of windows: synchronisation, access, nothing to do, requests, algorithms on top."""

import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("program", ["access", "algorithms", "attached", "datatypes", "epochs", "nothing", "requests"])
def test_behaviours(onesided, program):
    onesided(program)


def test_locks_of_four_nodes(mpirun):
    """Ranks that lock all, and others that wait for one exclusively, do not wait for each other for ever."""
    program = Path(__file__).parent / "programs" / "epochs.py"
    mpirun.command(4, sys.executable, program, env={"GORMAPY_JOB_NODES": "0,1,2,3"}).finish()
