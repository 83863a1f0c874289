"""What a rank is told of, and is spared, after the target of its operations was killed."""

import sys

import pytest
from support.programs import beside
from support.windows import WAYS

# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)

program = beside(__file__)


@pytest.mark.parametrize("way", ["default", "messages"])
def test_each_request_is_told(mpirun, way):
    """A request to a rank that has ended must not look complete because another one was given up."""
    env = WAYS["messages"] if way == "messages" else {}
    result = mpirun(2, program.each_request_is_told, python=UNNOTICED, env=env)
    assert "told 3" in result.stdout, str(result)


def test_an_idle_rank_burns_no_core(mpirun):
    """What can't be sent to a rank that has ended is not tried again and again."""
    result = mpirun(2, program.an_idle_rank_burns_no_core, python=UNNOTICED)
    used = float(result.stdout.split()[1])
    assert used < 0.1, str(result)


@pytest.mark.parametrize("way", WAYS)
def test_puts_end_without_a_flush(mpirun, way):
    result = mpirun(2, program.puts_end_without_a_flush, python=UNNOTICED, env=WAYS[way])
    assert "told" in result.stdout, str(result)
