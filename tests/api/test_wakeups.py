"""A thread that sleeps in a wait is woken by another thread of its process."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("what", ["message", "long", "object", "cancelled", "partitions", "generalized", "notified"])
def test_another_thread_wakes(ranks, what, n):
    ranks(n, program.woken, what)
