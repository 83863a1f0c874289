"""Create_intercomm and Create_from_groups that are refused, interrupted, or left by a killed leader."""

import sys

import pytest
from support.programs import beside

program = beside(__file__)

# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)


@pytest.mark.parametrize("how", program.keys_of("REFUSED"))
def test_creation_that_is_refused(ranks, how):
    ranks(5, program.creation_that_is_refused, how)


def test_overlapping_groups(ranks):
    ranks(3, program.overlapping_groups)


def test_one_tag_for_two(ranks):
    ranks(5, program.one_tag_for_two)


@pytest.mark.parametrize("when", ["before", "in the middle"])
def test_killed_leader(mpirun, when):
    result = mpirun(5, program.killed_leader, when, python=UNNOTICED)
    assert sorted(result.lines) == ["told 0", "told 1", "told 2", "told 4"], str(result)


def test_interrupted_creation(ranks):
    ranks(4, program.interrupted_creation)


def test_tags_of_all_sizes(ranks):
    ranks(2, program.tags_of_all_sizes)


def test_a_leader_that_was_interrupted_calls_again(ranks):
    ranks(2, program.a_leader_that_was_interrupted_calls_again)


def test_groups_are_given_back(ranks):
    ranks(2, program.groups_are_given_back)
