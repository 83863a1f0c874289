"""Collective resets in the middle of calls on an intercommunicator."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("length", [1, 100_000])
def test_reset_in_an_exchange(ranks, length):
    ranks(4, program.reset_in_an_exchange, length)


@pytest.mark.parametrize("call", program.keys_of("CALLS"))
def test_interrupted_in(ranks, call):
    ranks(3, program.interrupted_in, call)
