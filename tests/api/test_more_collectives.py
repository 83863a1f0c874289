"""Collective operations with a type for each part, persistent ones, and nonblocking ones that move blocks."""

from support.programs import beside

program = beside(__file__)


def test_a_type_for_each_part(ranks, n):
    ranks(
        n,
        program.a_type_for_each_part,
    )


def test_persistent(ranks, n):
    ranks(
        n,
        program.persistent,
    )


def test_nonblocking(ranks, n):
    ranks(
        n,
        program.nonblocking,
    )


def test_nonblocking_ones_go_on_in_other_calls(ranks):
    """A rank in the middle of a tree passes on what it gets although its program waits for something else."""
    ranks(
        4,
        program.nonblocking_ones_go_on_in_other_calls,
    )


def test_parts_that_are_too_long_for_their_own_rank(ranks, n):
    ranks(n, program.parts_that_are_too_long_for_their_own_rank)


def test_places_beyond_the_buffer(ranks, n):
    ranks(n, program.places_beyond_the_buffer)
