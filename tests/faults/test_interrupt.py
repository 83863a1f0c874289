"""SIGINT to one rank raises KeyboardInterrupt in whatever call it waits, and leaves a usable process."""

import pytest
from support.programs import beside

calls = beside(__file__, "calls")
program = beside(__file__)
threads = beside(__file__, "threads")


@pytest.mark.parametrize("call", calls.keys_of("CALLS"))
def test_interrupted_while_the_others_stay(mpirun, call):
    mpirun(2, calls.interrupted_while_the_others_stay, call)


@pytest.mark.alone
def test_interrupts_are_seen_within_half_a_second(mpirun):
    mpirun(2, calls.interrupts_are_seen_within_half_a_second)


@pytest.mark.parametrize("call", calls.keys_of("CALLS"))
def test_reset_after_an_interrupt(ranks, call):
    ranks(3, calls.reset_after_an_interrupt, call)


def test_all_ranks_interrupted_in_different_calls(ranks):
    ranks(4, program.all_ranks_interrupted_in_different_calls)


def test_long_collectives_are_interrupted_and_put_back(ranks):
    # the first one on a communicator, in which the ranks find out how to copy, and later ones
    ranks(4, program.long_collectives_are_interrupted_and_put_back)


def test_whole_job_is_interrupted_and_put_back_again_and_again(ranks):
    # what a notebook does: Ctrl-C goes to all ranks, whatever they are in, and the next cell works
    ranks(3, program.whole_job_is_interrupted_and_put_back_again_and_again, timeout=60)


def test_handler_that_does_not_raise_lets_the_call_go_on(mpirun):
    mpirun(2, program.handler_that_does_not_raise_lets_the_call_go_on)


def test_handler_asks_for_what_its_call_waits_for(mpirun):
    mpirun(2, program.handler_asks_for_what_its_call_waits_for)


def test_signals_go_to_the_threads_of_python(mpirun):
    # a signal that Go's threads get is noted by Python, and before 3.12 not looked at by a rank that computes
    mpirun(2, threads.signals_go_to_the_threads_of_python)


def test_receive_that_was_interrupted_takes_no_later_message(ranks):
    ranks(2, program.receive_that_was_interrupted_takes_no_later_message)


def test_message_of_which_a_part_has_come_is_left_to_the_next_receive(mpirun):
    # in clear over tcp it is being received straight into the buffer
    env = {"GORMAPY_FABRIC": "tcp", "GORMAPY_JOB_NODES": None}
    mpirun(2, program.message_of_which_a_part_has_come_is_left_to_the_next_receive, env=env)


def test_interrupted_send_delivers_its_data_or_nothing(ranks):
    ranks(2, program.interrupted_send_delivers_its_data_or_nothing)


def test_singleton(mpirun):
    result = mpirun.alone(program.singleton)
    assert result.since("leaving") < 20, str(result)


def test_uncaught_interrupt_ends_the_job(mpirun):
    result = mpirun(3, program.uncaught_interrupt_ends_the_job, expect=130)
    assert result.stderr.count("KeyboardInterrupt") == 1, str(result)
    assert "rank 1" in result.stderr, str(result)


def test_a_fence_that_one_rank_gives_up_and_the_other_passes(ranks):
    ranks(2, program.a_fence_that_one_rank_gives_up_and_the_other_passes)


def test_requests_of_the_time_before_a_reset_end(mpirun):
    """A nonblocking collective that the reset met between two of its steps fails; it does not begin the next one."""
    mpirun(2, program.requests_of_the_time_before_a_reset_end)
