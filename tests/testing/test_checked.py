"""pytest --mpi-check: a test in which mpiexec --check finds something fails."""

import pytest

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

SUITE = """
import numpy as np
import pytest
from gormapy import MPI

pytestmark = pytest.mark.mpi


@pytest.fixture
def win():
    win = MPI.Win.Allocate(64, 8, comm=MPI.COMM_WORLD)
    win.Lock_all()
    yield win
    win.Unlock_all()
    win.Free()


def test_clean(win, comm):
    mine = np.ones(1)
    if comm.rank == 0:
        win.Put(mine, 1)
        win.Flush(1)
        mine[0] = 2


def test_race(win, comm):
    mine = np.ones(1)
    if comm.rank == 0:
        win.Put(mine, 1)
        mine[0] = 2


def test_clean_again(win, comm):
    mine = np.ones(1)
    win.Put(mine, (comm.rank + 1) % comm.size)
"""


def test_findings_fail_their_test(suite):
    done = suite.write("test_windows.py", SUITE)("--mpi", "-n", 2, "--mpi-check").check(1, failed=1, passed=2)
    said = done.text("test_race")
    assert "origin-reuse: The buffer is changed while an operation may still read it." in said
    assert "rank 0: store of mine, " in said
    assert "mine[0] = 2" in said


def test_without_the_option_nothing_is_checked(suite):
    suite.write("test_windows.py", SUITE)("--mpi", "-n", 2).check(passed=3)
