"""pytest --mpi --check: a test in which mpiexec --check finds something fails."""

import re

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
    done = suite.write("test_windows.py", SUITE)("--mpi", "-n", 2, "--check").check(1, failed=1, passed=2)
    said = done.text("test_race")
    assert "origin-reuse: The buffer is changed while an operation may still read it." in said
    assert "rank 0: store of mine, " in said
    assert "mine[0] = 2" in said
    assert re.search(r"\(MPI 4\.1, section [0-9.]+\)$", done.out, re.MULTILINE)


def test_check_may_be_the_option_of_another_plugin(suite):
    other = "def pytest_addoption(parser):\n    parser.addoption('--check', metavar='WHAT')\n"
    suite.write("other_plugin.py", other).write("test_windows.py", SUITE)
    suite("-p", "other_plugin", "--mpi", "-n", 2, "--check", "style").check(0, passed=3)
    suite("-p", "other_plugin", "--check", "style", "-n", 2, "--mpi-check").check(1, failed=1, passed=2)


def test_check_may_be_the_option_of_a_conftest(suite):
    conftest = "def pytest_addoption(parser):\n    parser.addoption('--check', action='store_true')\n"
    suite.write("conftest.py", conftest).write(
        "test_windows.py", "def test(pytestconfig):\n    pytestconfig.option.check"
    )
    suite("--check").check(0, passed=1)
    suite("--mpi", "-n", 2, "--check").check(0, passed=1)


def test_check_is_for_mpi(suite):
    done = suite.write("test_windows.py", "def test():\n    pass")("--check")
    assert done.status == 4 and "--check is for --mpi" in done.out, done


LEFT = """
from gormapy import MPI

pytestmark = __import__("pytest").mark.mpi
windows = []


def test_leaves_an_epoch(comm):
    windows.append(MPI.Win.Allocate(64, 8, comm=MPI.COMM_WORLD))
    windows[-1].Lock_all()


def test_last(comm):
    comm.Barrier()
"""


def test_what_is_found_when_the_ranks_end_is_an_error_of_their_last_test(suite):
    done = suite.write("test_windows.py", LEFT)("--mpi", "-n", 2, "--mpi-check").check(1, passed=2, error=1)
    said = done.text("test_last")
    assert "when the ranks ended:" in said
    assert "epoch-open: the rank has ended inside the epoch of Lock_all" in said
    assert "windows[-1].Lock_all()" in said


def test_without_the_option_nothing_is_checked(suite):
    suite.write("test_windows.py", SUITE)("--mpi", "-n", 2).check(passed=3)
