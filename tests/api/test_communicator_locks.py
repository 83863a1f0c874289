"""Locks of communicators."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_threads_do_not_mix_their_collectives(ranks, n):
    ranks(n, program.threads_do_not_mix_their_collectives)


def test_an_error_leaves_no_lock(ranks, n):
    ranks(n, program.an_error_leaves_no_lock)


def test_contexts(ranks, n):
    ranks(n, program.contexts)


@pytest.mark.parametrize("call", program.keys_of("TWO_STEPS"))
def test_threads_in_the_same_call(mpirun, call):
    mpirun(4, program.threads_in_the_same_call, call)
