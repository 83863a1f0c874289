"""Hints of windows: the values that hold, those that are refused, and what they do."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_the_values_that_hold(ranks):
    ranks(
        2,
        program.the_values_that_hold,
    )


def test_bad_values_name_the_choices_and_change_nothing(ranks):
    ranks(
        2,
        program.bad_values_name_the_choices_and_change_nothing,
    )


def test_no_locks(ranks):
    ranks(
        2,
        program.no_locks,
    )


def test_what_is_claimed_is_checked_on_all_ranks(ranks):
    ranks(
        3,
        program.what_is_claimed_is_checked_on_all_ranks,
    )


@pytest.mark.one_node("its windows are of shared memory")
@pytest.mark.shm("its windows are of shared memory")
def test_parts_are_contiguous_unless_the_hint_says_otherwise(ranks):
    ranks(
        3,
        program.parts_are_contiguous_unless_the_hint_says_otherwise,
    )
