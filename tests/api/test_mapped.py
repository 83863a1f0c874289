"""Memory that the other ranks map: messages and collectives take it from there."""

import itertools

import pytest
from support.programs import beside

program = beside(__file__)
KINDS = list(itertools.product(("shared", "ordinary", "mixed"), repeat=2))


@pytest.mark.parametrize("kinds", KINDS, ids=["-".join(kinds) for kinds in KINDS])
def test_messages(ranks, n, kinds):
    ranks(n, program.messages, *kinds, timeout=60)


@pytest.mark.parametrize("kinds", KINDS, ids=["-".join(kinds) for kinds in KINDS])
def test_collectives(ranks, n, kinds):
    ranks(n, program.collectives, *kinds, timeout=60)


def test_arguments(ranks, n):
    ranks(n, program.every_type_of_argument, timeout=60)


@pytest.mark.shm("is about copies from rank to rank")
def test_a_late_rank_reads_what_was_sent(mpirun):
    mpirun(3, program.a_late_rank_reads_what_was_sent, timeout=60)


@pytest.mark.parametrize("size", [3, 4])
def test_stages_are_bounded(mpirun, size):
    mpirun(size, program.stages_are_bounded, timeout=60)
