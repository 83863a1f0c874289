"""gormapy.util.pool on workers that the launcher has started."""

import sys

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", [1, 3])
def test_pools(mpirun, n):
    everything = program.everything
    mpirun.command(n, sys.executable, "-m", "gormapy.futures", everything.file, everything.function).finish()
