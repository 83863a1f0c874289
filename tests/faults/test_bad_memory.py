"""Memory that faults when it is communicated: an MPI error, and nothing else is hurt."""

import signal

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)
handlers = beside(__file__, "handlers")


@pytest.mark.parametrize("kind", ["allocated", "created"])
@pytest.mark.parametrize("memory", ["truncated", "protected"])
@pytest.mark.parametrize("enabled", ["never", "before", "after"])
def test_one_sided_calls(mpirun, kind, memory, enabled):
    mpirun(2, handlers.one_sided_calls, kind, memory, enabled)


def test_what_is_applied_is_not_applied_again(ranks):
    ranks(
        2,
        program.what_is_applied_is_not_applied_again,
    )


def test_copies_of_any_length(ranks):
    """The guard is around the copy of the C library, in all its forms."""
    ranks(1, program.copies_of_any_length)


def test_threads_fault_at_once(ranks):
    ranks(
        1,
        program.threads_fault_at_once,
    )


def test_tokens_of_channels(ranks):
    ranks(
        1,
        program.tokens_of_channels,
    )


def test_calls_that_only_copy(ranks):
    ranks(
        1,
        program.calls_that_only_copy,
    )


def test_addresses_where_no_memory_lies(ranks):
    ranks(
        1,
        program.addresses_where_no_memory_lies,
    )


@pytest.mark.parametrize("n", [1, 2])
def test_messages_longer_than_any_memory(ranks, n):
    ranks(n, program.messages_longer_than_any_memory)


@pytest.mark.parametrize("call", program.keys_of("OF_ALL"))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_collectives_longer_than_any_memory(ranks, n, call):
    """A count that can't be right is an error, and the ranks stay in step."""
    ranks(n, program.collectives_longer_than_any_memory, call)


@pytest.mark.parametrize("enabled", ["never", "before", "after", "taken back"])
@pytest.mark.parametrize("what", handlers.keys_of("FATAL"))
def test_other_faults_are_as_fatal_as_ever(mpirun, enabled, what):
    result = mpirun.alone(handlers.other_faults_are_as_fatal_as_ever, enabled, what, expect=ANY)
    assert result.status == -signal.SIGSEGV, result
    if enabled in ("before", "after"):
        assert "Fatal Python error: Segmentation fault" in result.stderr, result


@pytest.mark.parametrize("call", program.keys_of("SEVERAL"))
@pytest.mark.parametrize("both", [False, True])
def test_one_of_several_requests(ranks, call, both):
    """A call says once that the memory of one of them faulted; the others are received."""
    ranks(2, program.one_of_several_requests, call, both)


@pytest.mark.parametrize("way", ["", "I", "_init"])
@pytest.mark.parametrize("call", program.keys_of("GENERAL"))
def test_collectives_with_functions_and_types(ranks, call, way):
    """No rank waits for the one whose memory faults; those that need its data hear of it, and the next call works."""
    ranks(3, program.collectives_with_functions_and_types, call, way)


@pytest.mark.parametrize("call", program.keys_of("LONG"))
@pytest.mark.parametrize("n", [2, 3, 4])
def test_long_collectives(ranks, n, call):
    """The rank whose memory faults is told, though others copy from there, and so is one that needs its data."""
    ranks(n, program.long_collectives, call)


def test_memory_that_comes_and_goes(ranks):
    ranks(2, program.memory_that_comes_and_goes, env={"GORMAPY_FABRIC": "tcp"})
