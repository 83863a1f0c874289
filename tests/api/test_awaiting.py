"""Requests that tasks of asyncio await."""

import signal

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("task", program.keys_of("TASKS"))
def test_await(ranks, n, task):
    ranks(n, program.in_asyncio, task)


def test_several_loops(ranks, n):
    ranks(n, program.several_loops)


def test_thousands(ranks):
    ranks(2, program.in_asyncio, "thousands")


def test_loops_leave_nothing(ranks):
    ranks(2, program.many_loops)


def test_loops_that_end_before_their_requests_leave_nothing(ranks):
    ranks(2, program.loops_that_end_before_their_requests)


def test_finalize_ends_what_is_awaited(mpirun):
    mpirun(2, program.in_asyncio, "finalize ends what is awaited")


def test_fork_while_a_request_is_awaited(mpirun):
    result = mpirun(2, program.in_asyncio, "fork while a request is awaited")
    assert result.stderr == "", str(result)


def test_nothing_is_used_while_waiting(mpirun):
    mpirun(2, program.in_asyncio, "nothing is used while waiting")


def test_peer_that_is_killed(mpirun):
    result = mpirun(3, program.in_asyncio, "peer that is killed", launcher=["--enable-recovery"])
    assert result.stdout.splitlines() == ["told"] * 2, str(result)


def test_end_with_awaited_requests(mpirun):
    result = mpirun(2, program.in_asyncio, "end with awaited requests")
    assert result.duration < 25 and result.stderr == "", str(result)


def test_interrupt(mpirun):
    result = mpirun(1, program.in_asyncio, "interrupted", expect=128 + signal.SIGINT)
    assert "KeyboardInterrupt" in result.stderr, str(result)
