"""A collective reset, and Free after it, with megabytes under way: nothing touches memory that is the program's again."""

import os

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", [2, 4] if os.environ.get("FAULTS") == "whole" else [2])
@pytest.mark.parametrize("over", ["copies", "messages", "tcp"])
@pytest.mark.parametrize("left", program.keys_of("LEFT"))
def test_reset_and_free(ranks, n, over, left):
    env = {"messages": {"GORMAPY_ONE_COPY": "0"}, "tcp": {"GORMAPY_FABRIC": "tcp"}}.get(over, {})
    result = ranks(n, program.reset_and_free, left, env=env, timeout=20)
    assert result.lines == ["done"] * n
