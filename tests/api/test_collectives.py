"""Collective operations on buffers and on objects."""

from support.programs import beside

program = beside(__file__)


def test_buffers(ranks, n):
    ranks(n, program.buffers, timeout=60)


def test_different_amounts(ranks, n):
    ranks(
        n,
        program.different_amounts,
    )


def test_amounts_of_all_lengths(ranks, n):
    ranks(n, program.amounts_of_all_lengths, timeout=120)


def test_parts_that_are_too_long(ranks, n):
    ranks(n, program.parts_that_are_too_long)


def test_reductions(ranks, n):
    ranks(
        n,
        program.reductions,
        timeout=60,
    )


def test_long_reductions(ranks, n):
    ranks(n, program.long_reductions, timeout=120)


def test_nonblocking(ranks, n):
    ranks(
        n,
        program.nonblocking,
    )


def test_objects(ranks, n):
    ranks(
        n,
        program.objects,
    )


def test_errors_before_anything_moves(ranks):
    ranks(
        2,
        program.errors_before_anything_moves,
    )
