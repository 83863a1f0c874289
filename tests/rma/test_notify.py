"""Notified puts: gormapy.notify."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("kind", program.keys_of("WINDOWS"))
@pytest.mark.parametrize(
    "what", [program.ring, program.long_and_strided, program.all_to_one], ids=lambda what: what.function
)
def test_notifications_come_after_their_data(ranks, n, what, kind):
    ranks(n, what, kind)


@pytest.mark.parametrize(
    "what",
    [program.time_out_takes_nothing, program.several_threads, program.in_asyncio, program.wrong_arguments],
    ids=lambda what: what.function,
)
def test_waits(ranks, n, what):
    ranks(n, what)


def test_target_that_computes(ranks, n):
    ranks(n, program.target_that_computes)


def test_nothing_is_used_while_waiting(mpirun):
    mpirun(2, program.nothing_is_used_while_waiting)


def test_rank_that_is_killed(mpirun):
    result = mpirun(3, program.rank_that_is_killed, launcher=["--enable-recovery"])
    assert result.stdout.splitlines() == ["told"] * 2, str(result)


def test_interrupt(mpirun):
    mpirun(2, program.interrupted)


def test_interrupts_lose_no_notification(mpirun):
    mpirun(2, program.interrupted_as_they_come)
