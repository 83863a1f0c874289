"""Communicators, groups, hints, names and attributes."""

from support.programs import beside

program = beside(__file__)


def test_duplicate_split_and_create(ranks, n):
    ranks(
        n,
        program.duplicate_split_and_create,
    )


def test_groups(ranks, n):
    ranks(
        n,
        program.groups,
    )


def test_names_hints_and_attributes(ranks):
    ranks(
        2,
        program.names_hints_and_attributes,
    )


def test_calls_that_raise_leave_no_communicator(ranks, n):
    ranks(n, program.calls_that_raise_leave_no_communicator)


def test_duplicate_without_blocking(ranks, n):
    ranks(
        n,
        program.duplicate_without_blocking,
    )


def test_group_that_makes_its_communicator_alone(ranks, n):
    ranks(
        n,
        program.group_that_makes_its_communicator_alone,
    )


def test_attributes_of_windows_and_datatypes(ranks):
    ranks(
        2,
        program.attributes_of_windows_and_datatypes,
    )


def test_cartesian_grid(ranks, n):
    ranks(
        n,
        program.cartesian_grid,
    )


def test_keys_and_colours_are_not_cut(ranks):
    """They are compared whole, also where they differ above the 32nd bit only."""
    ranks(
        4,
        program.keys_and_colours_are_not_cut,
    )
