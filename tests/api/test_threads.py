"""Several threads of a rank communicate at once."""

import pytest
from support.programs import beside

program = beside(__file__)
eight = beside(__file__, "eight")


def test_threads_on_different_communicators(ranks):
    ranks(
        2,
        program.threads_on_different_communicators,
    )


def test_threads_on_one_communicator_by_tag(ranks):
    ranks(
        2,
        program.threads_on_one_communicator_by_tag,
    )


def test_threads_on_different_windows(ranks):
    ranks(
        2,
        program.threads_on_different_windows,
    )


def test_a_thread_that_sends_all_the_time_lets_another_one_receive(ranks):
    ranks(1, program.a_thread_that_sends_all_the_time_lets_another_one_receive)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_sends_of_the_only_thread(mpirun, n):
    """Not on ranks that stay: these have other threads, and then a short Send gives the interpreter's lock up."""
    mpirun(n, program.sends_of_the_only_thread)


@pytest.mark.parametrize("n", [2, 4])
def test_eight_threads_in_different_calls_at_once(ranks, n):
    ranks(
        n,
        eight.eight_threads_in_different_calls_at_once,
        timeout=60,
    )


def test_threads_that_wait_block_no_others(mpirun):
    # six threads of rank 0 wait, each in another call, for what rank 1 does only after all work is done
    mpirun(
        2,
        eight.threads_that_wait_block_no_others,
        timeout=60,
    )


def test_thread_that_waits_leaves_the_others_the_interpreter(ranks):
    ranks(
        2,
        program.thread_that_waits_leaves_the_others_the_interpreter,
    )


def test_first_use_from_another_thread(ranks):
    ranks(
        2,
        program.first_use_from_another_thread,
    )


@pytest.mark.parametrize("case", program.keys_of("EXITS"))
def test_thread_in_a_call_does_not_hang_the_exit(mpirun, case):
    result = mpirun(2, program.thread_in_a_call_does_not_hang_the_exit, case, timeout=40)
    assert result.since("leaving0") < 20, str(result)
    assert "Traceback" not in result.stderr, str(result)
