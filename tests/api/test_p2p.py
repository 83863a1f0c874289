"""Messages between ranks, from buffers and as objects."""

from support.programs import beside

program = beside(__file__)


def test_ring_of_buffers(ranks, n):
    ranks(
        n,
        program.ring_of_buffers,
    )


def test_modes_and_specifications(ranks, n):
    ranks(
        n,
        program.modes_and_specifications,
    )


def test_wildcards_probe_and_order(ranks, n):
    ranks(
        n,
        program.wildcards_probe_and_order,
    )


def test_proc_null(ranks):
    ranks(
        2,
        program.proc_null,
    )


def test_persistent_requests(ranks, n):
    ranks(
        n,
        program.persistent_requests,
    )


def test_completion_of_many(ranks, n):
    ranks(
        n,
        program.completion_of_many,
    )


def test_objects(ranks, n):
    ranks(
        n,
        program.objects,
    )


def test_a_receive_that_was_started_first_gets_the_first_object(ranks):
    ranks(
        2,
        program.a_receive_that_was_started_first_gets_the_first_object,
    )


def test_wrong_arguments_are_said(ranks):
    ranks(
        1,
        program.wrong_arguments_are_said,
    )


def test_messages_that_wait_for_room_go_out_while_the_sender_computes(ranks):
    ranks(
        2,
        program.messages_that_wait_for_room_go_out_while_the_sender_computes,
    )


def test_messages_that_nobody_receives_do_not_fill_the_memory(ranks):
    ranks(2, program.messages_that_nobody_receives_do_not_fill_the_memory)
