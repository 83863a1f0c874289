"""Messages and collective operations on objects, of sizes around those that one step has room for."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_collectives_of_each_size(ranks, n):
    ranks(n, program.collectives_of_each_size)


def test_messages_of_each_size(ranks, n):
    ranks(n, program.messages_of_each_size)


@pytest.mark.on_ranks(9)
def test_more_ranks_than_a_slot_has_heads_for(ranks):
    ranks(9, program.collectives_of_each_size, timeout=120)


def test_all_ranks_get_the_object_that_one_has_folded(ranks, n):
    ranks(n, program.all_ranks_get_the_object_that_one_has_folded)


def test_a_wrong_root_is_an_error_and_no_more(ranks, n):
    ranks(n, program.a_wrong_root_is_an_error_and_no_more)


@pytest.mark.on_ranks(2)
def test_pickles_of_any_kind_of_buffer(ranks):
    ranks(2, program.pickles_of_any_kind_of_buffer)
