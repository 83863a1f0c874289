"""Partitioned sends and receives."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("over", ["shm", "tcp", "nodes"])
def test_partitions_of_either_side(ranks, n, over):
    env = {"tcp": {"GORMAPY_FABRIC": "tcp"}, "nodes": {"GORMAPY_JOB_NODES": "2"}}[over] if over != "shm" else {}
    if over == "nodes" and n < 2:
        pytest.skip("two nodes need two ranks")
    ranks(n, program.partitions_of_either_side, env=env)


def test_matched_in_the_order_in_which_they_are_made(ranks, n):
    ranks(n, program.matched_in_the_order_in_which_they_are_made)


def test_a_sender_is_ahead(ranks):
    ranks(2, program.a_sender_is_ahead)


def test_threads_make_partitions_ready(ranks):
    ranks(2, program.threads_make_partitions_ready)


def test_parrived_tells_of_each(ranks):
    ranks(2, program.parrived_tells_of_each)


def test_a_receiver_in_another_call_lets_the_sender_go_on(ranks):
    ranks(2, program.a_receiver_in_another_call_lets_the_sender_go_on)


def test_nothing_to_send(ranks):
    ranks(2, program.nothing_to_send)


def test_different_lengths_are_told(ranks):
    ranks(2, program.different_lengths_are_told)


def test_wrong_calls_are_said(ranks):
    ranks(1, program.wrong_calls_are_said)


def test_between_groups(ranks):
    ranks(4, program.between_groups)


def test_memory_that_faults(ranks):
    ranks(2, program.memory_that_faults)


def test_requests_that_are_freed_leave_nothing(ranks):
    ranks(2, program.requests_that_are_freed_leave_nothing)


def test_a_reset_between_starts(ranks):
    ranks(2, program.a_reset_between_starts)
