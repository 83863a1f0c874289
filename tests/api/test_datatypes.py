"""Datatypes: the predefined ones, derived ones, and what NumPy has."""

from support.programs import beside

program = beside(__file__)


def test_every_numpy_type_has_a_datatype(ranks):
    ranks(
        1,
        program.every_numpy_type_has_a_datatype,
    )


def test_derived_types(ranks):
    ranks(
        2,
        program.derived_types,
    )


def test_types_of_numpy_by_their_characters(ranks):
    ranks(
        1,
        program.types_of_numpy_by_their_characters,
    )


def test_distributed_arrays(ranks):
    ranks(
        1,
        program.distributed_arrays,
    )


def test_only_committed_types_communicate(ranks):
    """Every call that communicates refuses a type that is not committed, and says what to do."""
    ranks(1, program.only_committed_types_communicate)


def test_counts_that_wrap(ranks):
    """Counts whose bytes are 2^64 more than those of the origin."""
    ranks(
        1,
        program.counts_that_wrap,
    )


def test_how_datatypes_were_made(ranks):
    ranks(1, program.how_datatypes_were_made)


def test_how_structs_were_made(ranks):
    ranks(1, program.how_structs_were_made)


def test_datatypes_made_again(ranks):
    ranks(1, program.datatypes_made_again)


def test_unusual_arguments_of_constructors(ranks):
    ranks(1, program.unusual_arguments_of_constructors)
