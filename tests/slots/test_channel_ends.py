"""Channels whose other end dies, or is slow, and waits that the user ends."""

import sys

import pytest
from support.programs import beside

pytestmark = pytest.mark.slow

setup = beside(__file__, "setup")
program = beside(__file__)


# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)
TCP = {"GORMAPY_FABRIC": "tcp"}
KINDS = ["spsc", "variable", "locking", "nonlocking"]


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted(mpirun, kind):
    mpirun(
        2,
        setup.interrupted_call,
        kind,
    )


@pytest.mark.parametrize("kind, env", [*((kind, None) for kind in KINDS), ("spsc", TCP), ("locking", TCP)])
@pytest.mark.parametrize("victim", [0, 1])
def test_killed(mpirun, kind, victim, env):
    result = mpirun(
        3,
        setup.killed,
        kind,
        victim,
        python=UNNOTICED,
        env=env,
    )
    assert result.lines == ["told"], str(result)


def test_a_consumer_goes_on_while_one_producer_lives(mpirun):
    for env in (None, TCP):
        for locking in (True, False):
            result = mpirun(4, program.a_consumer_goes_on_while_one_producer_lives, locking, python=UNNOTICED, env=env)
            assert result.lines == ["told [1, 2, 3] 200"], str(result)


def test_producers_that_die_with_the_lock(mpirun):
    """Producers are killed at any moment; what comes of each is an unbroken beginning, and nobody is stuck."""
    result = mpirun(
        5,
        program.producers_that_die_with_the_lock,
        python=UNNOTICED,
        timeout=200,
    )
    assert result.lines == ["whole"], str(result)


def test_other_threads_run_while_one_waits(mpirun):
    mpirun(
        2,
        setup.other_threads_run_while_one_waits,
        "spsc",
    )


def test_waits_say_what_they_are(mpirun):
    said = "in slots on pop: channel is empty, waiting for rank 0"
    result = mpirun.until_timeout(2, setup.waits_say_what_they_are, "spsc", says={said: 1}, first=3)
    assert said in result.stderr, str(result)


# Over a network the calls that acquire and release are several, each of which an interrupt can end.
@pytest.mark.shm("in shared memory the lock is released by one call")
@pytest.mark.parametrize("kind", KINDS)
def test_interrupts_at_any_moment(mpirun, kind):
    """A push that an interrupt ends has pushed its token or has not; no token is lost, and no lock is kept."""
    mpirun(
        3,
        setup.interrupts_at_any_moment,
        kind,
    )
