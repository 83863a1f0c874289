"""Targets do nothing for what others do to their memory: they compute, sleep, or hold the interpreter lock in C."""

import pytest
from support.windows import PROGRAMS, WAYS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("busy", ["python", "sleep", "C"])
def test_busy_targets(mpirun, busy, way):
    mpirun(2, PROGRAMS / "passive.py", busy, env=WAYS[way], timeout=90)


def test_several_busy_targets(mpirun):
    mpirun(4, PROGRAMS / "passive.py", "python", timeout=90)
