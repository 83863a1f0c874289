"""The object store: publish, handles, get, destroy."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_object_store(ranks, n):
    ranks(n, program.the_program)


def test_object_store_over_tcp(ranks):
    ranks(2, program.the_program, env={"GORMAPY_FABRIC": "tcp"})
