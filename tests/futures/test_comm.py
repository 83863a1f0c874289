"""MPICommExecutor: one rank of a communicator submits tasks, and the others are its workers."""

import os
import signal
import time

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize(
    "function",
    "every_root parts_of_the_world arguments broken_initializer pending_tasks exception_in_the_block two_at_a_time".split(),
)
def test_on_ranks(ranks, function, n):
    ranks(n, getattr(program, function))


@pytest.mark.parametrize("rank", [0, 1])
def test_killed_rank_is_named(mpirun, rank):
    job = mpirun.start(3, program.waits)
    pids = job.pids(3)
    job.expect(r"^begun \d", 2)
    sent = time.monotonic()
    os.kill(pids[rank], signal.SIGKILL)
    result = job.finish(expect=ANY)
    assert result.status != 0 and time.monotonic() - sent < 20, result
    assert f"rank {rank} (pid {pids[rank]})" in result.stderr, result


def test_interrupt_ends_the_job(mpirun):
    job = mpirun.start(3, program.waits)
    job.pids(3)
    job.expect(r"^begun \d", 2)
    sent = time.monotonic()
    job.signal(signal.SIGINT)
    result = job.finish(expect=130)
    assert time.monotonic() - sent < 20, result
