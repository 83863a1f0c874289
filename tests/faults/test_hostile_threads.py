"""Threads that do to requests and lists what they should not: an error at most, never a crash or other memory.

make test has them do it for a second, `make threads` for HOSTILE_SECONDS, with Python's checks of its memory.
"""

import os

import pytest
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "1.0"))


@pytest.mark.parametrize("call", program.keys_of("CALLS"))
def test_list_that_changes(mpirun, call):
    """The call is about what was in the list when it began."""
    mpirun(1, program.list_that_changes, call)


@pytest.mark.parametrize("call", [call for call in program.keys_of("CALLS") if "wait" in call.lower()])
def test_list_that_a_signal_handler_changes(mpirun, call):
    mpirun(1, program.list_that_a_signal_handler_changes, call)


@pytest.mark.parametrize("call", [*program.keys_of("CALLS"), "Startall"])
def test_what_is_no_request(ranks, call):
    """It is a TypeError, and nothing has been completed."""
    ranks(1, program.what_is_no_request, call)


@pytest.mark.parametrize("pair", program.keys_of("PAIRS"))
def test_two_threads_and_one_request(mpirun, pair):
    """One of them completes it, the other one as well or with an error; memory that comes after is not touched."""
    mpirun(1, program.two_threads_and_one_request, pair, SECONDS, timeout=SECONDS + 50)


def test_persistent_requests_in_several_threads(mpirun):
    """Start, Wait and Free of the same persistent request at the same time."""
    mpirun(1, program.persistent_requests_in_several_threads, SECONDS, timeout=SECONDS + 50)


def test_windows_that_are_freed_meanwhile(mpirun):
    """Put, Get, atomics and Free of a window by several threads of one process."""
    mpirun(1, program.windows_that_are_freed_meanwhile, SECONDS, timeout=SECONDS + 50)


def test_lists_that_their_items_change(mpirun):
    """Python code of an item runs while the list is read, and empties it."""
    mpirun.alone(program.lists_that_their_items_change)
