"""Sessions."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_sessions(mpirun, n):
    mpirun(n, PROGRAMS / "sessions.py")


@pytest.mark.parametrize("how", ["only", "before", "outlives", "late", "no world model", "as the last one ends"])
def test_beside_the_world_model(mpirun, how):
    mpirun(3, PROGRAMS / "sessions_alone.py", how)


def test_a_session_at_exit(mpirun):
    assert mpirun(2, PROGRAMS / "sessions_alone.py", "at exit").lines == ["used"] * 2
