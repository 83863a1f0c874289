"""Errors of intercommunicators, which name ranks of the local and the remote group."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("case", program.keys_of("MISMATCHES"))
def test_calls_that_do_not_match(ranks, case):
    ranks(4, program.calls_that_do_not_match, case)


def test_another_root_than_the_root(ranks):
    ranks(4, program.another_root_than_the_root)


@pytest.mark.parametrize("call", program.keys_of("OBJECTS"))
def test_objects_with_another_root(mpirun, call):
    mpirun(4, program.objects_with_another_root, call)


@pytest.mark.parametrize("call", program.keys_of("OPERATIONS"))
def test_operations_of_the_program(mpirun, call):
    mpirun(5, program.operations_of_the_program, call)


def test_amounts_that_do_not_fit(ranks):
    ranks(4, program.amounts_that_do_not_fit)


@pytest.mark.parametrize("wait", program.keys_of("WAITS"))
def test_rank_that_has_ended(mpirun, wait):
    result = mpirun(4, program.rank_that_has_ended, wait)
    odd = ["told 1"] if wait in ("Allreduce", "Barrier", "Dup") else []
    assert sorted(result.lines) == sorted(["told 0", *odd, "told 2"]), str(result)


def test_nobody_is_left_in_the_other_group(mpirun):
    result = mpirun(3, program.nobody_is_left_in_the_other_group)
    assert sorted(result.lines) == ["told 0", "told 2"], str(result)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_wrong_arguments(ranks, n):
    ranks(n, program.wrong_arguments)


def test_amounts_of_a_reduction(ranks):
    ranks(3, program.amounts_of_a_reduction)


@pytest.mark.parametrize("call", program.keys_of("SLOW"))
def test_what_a_rank_waits_for(ranks, call):
    ranks(3, program.what_a_rank_waits_for, call)
