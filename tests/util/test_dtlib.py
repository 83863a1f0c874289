"""gormapy.util.dtlib: datatypes of NumPy and of MPI."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("function", "there_and_back records layouts refusals".split())
def test_datatypes(ranks, function):
    ranks(1, getattr(program, function))
