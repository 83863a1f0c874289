"""gormapy.util.sync: counters, locks, conditions and semaphores of processes."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("function", "one_after_the_other exclusion producer_and_consumers limited".split())
def test_synchronization(ranks, function, n):
    ranks(n, getattr(program, function))


@pytest.mark.alone
@pytest.mark.slow
def test_waiting_costs_nothing(mpirun):
    mpirun(3, program.waiting_costs_nothing)
