"""Faults at any moment of busy communication: the job ends, or goes on, and never hangs or corrupts."""

import os
import random
import signal
import time

import pytest
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive


@pytest.mark.parametrize("seed", range(6))
def test_rank_is_killed_in_the_middle(mpirun, seed):
    chance = random.Random(seed)
    job = mpirun.start(3, program.until_it_is_killed)
    ranks = job.pids(3)
    time.sleep(chance.uniform(0, 0.5))
    sent = time.monotonic()
    os.kill(ranks[chance.randrange(3)], signal.SIGKILL)
    result = job.finish(expect=137)
    assert time.monotonic() - sent < 20, str(result)
    assert "Traceback" not in result.stderr, str(result)


@pytest.mark.parametrize("ranks", [2, 3])
def test_interrupts_and_resets(mpirun, ranks):
    rounds = 12
    job = mpirun.start(ranks, program.interrupts_and_resets, rounds, timeout=60)
    pids = job.pids(ranks)
    chance = random.Random(ranks)
    for turn in range(rounds):
        job.expect(rf"^turn {turn}$", ranks)
        time.sleep(chance.uniform(0.02, 0.15))
        for rank in chance.sample(sorted(pids), ranks):
            os.kill(pids[rank], signal.SIGINT)
            time.sleep(chance.choice((0, 0.0005, 0.05)))
        job.expect(rf"^back {turn}$", ranks)
    job.finish()


def test_signals_that_do_not_raise_do_no_harm(mpirun):
    job = mpirun.start(2, program.signals_that_do_not_raise_do_no_harm, timeout=60)
    pids = job.pids(2)
    while job.process.poll() is None and "seen" not in job.stdout:
        for pid in pids.values():
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                break
        time.sleep(0.002)
    result = job.finish()
    assert result.lines.count("seen True") == 2, str(result)


def test_ranks_are_stopped_and_continued_at_random(mpirun):
    job = mpirun.start(3, program.until_it_is_over, timeout=60)
    pids = job.pids(3)
    chance = random.Random(1)
    for _ in range(15):
        pid = pids[chance.randrange(3)]
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0.001, 0.06))
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            break
        time.sleep(chance.uniform(0.001, 0.02))
    job.finish()


@pytest.mark.parametrize("n", [2, 5])
def test_resets_of_ranks_that_come_late(ranks, n):
    ranks(n, program.resets_of_ranks_that_come_late, timeout=60)
