"""Reductions with a function of the program, in every call: on the thread that completes the call."""

from support.programs import beside

program = beside(__file__)


def test_in_every_call(ranks, n):
    ranks(
        n,
        program.in_every_call,
        timeout=90,
    )


def test_functions_run_where_the_program_waits(mpirun):
    mpirun(
        3,
        program.functions_run_where_the_program_waits,
    )


def test_an_exception_of_the_function_is_the_callers(ranks):
    ranks(
        2,
        program.an_exception_of_the_function_is_the_callers,
    )


def test_blocks_of_different_sizes(ranks, n):
    ranks(
        n,
        program.blocks_of_different_sizes,
    )


def test_derived_types(ranks):
    ranks(
        3,
        program.derived_types,
    )


def test_ways_of_one_call_mix(ranks, n):
    ranks(
        n,
        program.ways_of_one_call_mix,
    )


def test_what_a_function_gets_and_does(ranks):
    ranks(
        3,
        program.what_a_function_gets_and_does,
    )


def test_different_amounts_are_told(mpirun):
    mpirun(
        3,
        program.different_amounts_are_told,
    )


def test_threads_reduce_at_once(ranks):
    ranks(
        2,
        program.threads_reduce_at_once,
    )
