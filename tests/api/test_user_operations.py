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
