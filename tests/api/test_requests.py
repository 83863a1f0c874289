"""Modes of sending, and the completion of one, some and all of several requests."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_buffered_sends_need_no_receiver(ranks, n):
    ranks(
        n,
        program.buffered_sends_need_no_receiver,
    )


def test_exchanges_without_blocking(ranks, n):
    ranks(
        n,
        program.exchanges_without_blocking,
    )


def test_some_of_several(ranks):
    ranks(
        2,
        program.some_of_several,
    )


def test_requests_of_the_program(ranks):
    ranks(
        2,
        program.requests_of_the_program,
    )


@pytest.mark.parametrize("call", program.keys_of("WAITS"))
def test_interrupted_wait_for_all_is_repeated(ranks, call):
    """A signal handler raises an exception once one of two messages has come: the program waits again."""
    ranks(2, program.interrupted_wait_for_all_is_repeated, call)


def test_failures_while_waiting_for_all(mpirun):
    """The statuses tell which of them failed, and what failed is not completed."""
    mpirun(
        2,
        program.failures_while_waiting_for_all,
    )


@pytest.mark.parametrize("call", program.keys_of("INITS"))
def test_datatypes_that_are_not_committed(ranks, call):
    """The call that is given one refuses it, before the operation is started and whoever it is for."""
    ranks(1, program.datatypes_that_are_not_committed, call)


CALLS = pytest.mark.parametrize("call", program.keys_of("COMPLETIONS"))


@CALLS
def test_lists_of_requests(ranks, n, call):
    """All kinds of requests in one list, and what their statuses say."""
    ranks(n, program.lists_of_requests, call)


def test_nothing_to_complete(ranks):
    """Lists of null and inactive requests, and of none; and what is no list of requests."""
    ranks(1, program.nothing_to_complete)


@CALLS
@pytest.mark.parametrize("short", [False, True])
def test_failures_in_lists(ranks, call, short):
    """The statuses say which request has failed; those that have not stay."""
    ranks(1, program.failures_in_lists, call, short)


def test_requests_twice_in_a_list(ranks):
    ranks(1, program.requests_twice_in_a_list)


@pytest.mark.parametrize(
    "call", ["Waitall", "Testall", "Waitsome", "Testsome", "waitall", "testall", "waitsome", "testsome"]
)
def test_wrong_statuses_complete_no_request(ranks, call):
    ranks(1, program.wrong_statuses_complete_no_request, call)


@pytest.mark.parametrize("call", ["Waitany", "Waitsome"])
def test_interrupted_wait_for_any_is_repeated(ranks, call):
    ranks(2, program.interrupted_wait_for_any_is_repeated, call)


@pytest.mark.parametrize("call", ["Waitall", "Waitany", "Waitsome"])
def test_lists_that_change_meanwhile(ranks, call):
    ranks(1, program.lists_that_change_meanwhile, call)
