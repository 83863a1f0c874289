"""Nonblocking collectives: many under way, called differently, with ranks that end and memory that faults."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("seed", range(2))
def test_many_at_once(ranks, n, seed):
    ranks(n, program.many_at_once, seed)


def test_one_rank_runs_ahead(ranks, n):
    ranks(n, program.one_rank_runs_ahead)


def test_freed_while_under_way(ranks, n):
    ranks(n, program.freed_while_under_way)


@pytest.mark.parametrize("name", program.keys_of("MISMATCHES"))
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_mismatches(mpirun, n, name):
    mpirun(n, program.mismatches, name)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_other_roots_with_more_under_way(mpirun, n):
    mpirun(n, program.other_roots_with_more_under_way)


@pytest.mark.parametrize("more", [0, 20])
@pytest.mark.parametrize("length", [5, 9000, 40000])
@pytest.mark.parametrize("n", [2, 3])
def test_another_call_than_one_by_messages(mpirun, n, length, more):
    mpirun(n, program.another_call_than_one_by_messages, length, more)


@pytest.mark.parametrize("n", [2, 4, 7])
def test_faulting_memory(mpirun, n):
    mpirun(n, program.faulting)


@pytest.mark.parametrize("when", [0, 1, 7, 12])
@pytest.mark.parametrize("kind", ["Iallreduce", "Ibcast", "Igather", "Ibarrier"])
def test_a_rank_ends(mpirun, kind, when):
    """Those that the rank has not called fail at all that need it; one that it has called may complete."""
    result = mpirun(3, program.a_rank_ends, kind, when)
    failed = [int(line.split()[-1]) for line in result.lines if line.startswith("failed ")]
    assert len(failed) == 2, str(result)
    assert (max if kind == "Igather" else min)(failed) >= 20 - when, str(result)


def test_revoked(mpirun):
    mpirun(4, program.revoked)
