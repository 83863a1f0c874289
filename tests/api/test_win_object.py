"""Windows as Python objects: memory, attributes, names, pickling, and what is left of them after Free."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_memory_and_attributes(ranks):
    ranks(
        2,
        program.memory_and_attributes,
    )


def test_pickling(ranks):
    ranks(
        1,
        program.pickling,
    )


def test_attributes_of_the_program_and_names(ranks):
    ranks(
        2,
        program.attributes_of_the_program_and_names,
    )


def test_what_is_left_of_a_freed_window(ranks):
    ranks(
        2,
        program.what_is_left_of_a_freed_window,
    )


@pytest.mark.parametrize("n", [1, 2, 4])
def test_windows_made_again(ranks, n):
    ranks(n, program.windows_made_again)


@pytest.mark.parametrize("n", [1, 3])
def test_memory_that_is_shown_is_not_used_again(ranks, n):
    ranks(n, program.memory_that_is_shown_is_not_used_again)


@pytest.mark.one_node("the window is of shared memory")
@pytest.mark.parametrize("n", [2, 3])
def test_a_child_keeps_the_old_window(mpirun, n):
    mpirun(n, program.a_child_keeps_the_old_window)


def test_windows_of_many_threads(ranks):
    ranks(2, program.windows_of_many_threads)
