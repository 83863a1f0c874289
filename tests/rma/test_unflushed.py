"""Operations that nothing completes reach their targets, and do not take memory without bounds."""

import pytest
from support.windows import PROGRAMS, WAYS


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_only_computes(mpirun, way):
    mpirun(2, PROGRAMS / "unflushed.py", "compute", env=WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_a_target_that_is_stopped(mpirun, way):
    mpirun(2, PROGRAMS / "unflushed.py", "stopped", env=WAYS[way])
