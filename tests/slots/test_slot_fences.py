"""Counting fences and the locks of slots: who waits, for what, and how it ends."""

import sys

import pytest
from support.programs import beside

program = beside(__file__)


# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)
TCP = {"GORMAPY_FABRIC": "tcp"}


@pytest.mark.parametrize("n", [1, 2, 7])
def test_counting_fences(mpirun, n):
    mpirun(n, program.counts, timeout=60)


@pytest.mark.slow
def test_counting_fences_over_tcp(mpirun):
    mpirun(2, program.counts, env=TCP, timeout=60)


def test_fence_is_interrupted(mpirun):
    mpirun(
        2,
        program.fence_is_interrupted,
    )


@pytest.mark.parametrize("env", [None, TCP], ids=["shm", "tcp"])
def test_a_death_ends_the_wait(mpirun, env):
    result = mpirun(
        3,
        program.a_death_ends_the_wait,
        python=UNNOTICED,
        env=env,
    )
    assert sorted(result.lines) in (["told 0", "told 1"],), str(result)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_locks(mpirun, n):
    mpirun(n, program.locks, 300 if n < 7 else 60, timeout=60)


def test_locks_over_tcp(mpirun):
    mpirun(3, program.locks, 20, env=TCP, timeout=60)


def test_words(mpirun):
    mpirun(
        4,
        program.words,
    )


@pytest.mark.slow
def test_usable_after_a_reset(mpirun):
    for env in (None, TCP):
        mpirun(
            2,
            program.usable_after_a_reset,
            env=env,
        )
