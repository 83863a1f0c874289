"""gormapy.util.pkl5: objects whose buffers are messages of their own."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("function", "messages messages_from_anyone collectives".split())
def test_objects_with_buffers(ranks, function, n):
    ranks(n, getattr(program, function))
