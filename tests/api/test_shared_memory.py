"""Memory that other ranks can map: shared_empty, shared_zeros, Alloc_mem."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_arrays_are_what_was_asked_for(mpirun):
    mpirun(1, program.arrays_are_what_was_asked_for)


REFUSED = {
    "negative": ("-1", "ValueError", "can't be negative"),
    "negative axis": ("(2, -3)", "ValueError", "can't be negative"),
    "text": ("'x'", "TypeError", "expecting integers, got str"),
    "fraction": ("(2, 2.5)", "TypeError", "expecting integers, got float"),
    "none": ("None", "TypeError", "expecting integers, got NoneType"),
    "objects": ("3, object", "TypeError", "has Python objects in it"),
    "objects inside": ("3, [('a', object)]", "TypeError", "has Python objects in it"),
    "type": ("3, 'nonsense'", "TypeError", "nonsense"),
    "order": ("3, 'd', 'K'", "ValueError", "order is 'K'; it must be 'C' or 'F'"),
    "too many": ("1 << 60", "MemoryError", "1152921504606846976 elements of 8 bytes"),
    "far too many": ("(1 << 40, 1 << 40)", "MemoryError", "elements of 8 bytes"),
    "more than addresses": ("1 << 44", "MemoryError", "Alloc_mem of 140737488355328 bytes"),
}


@pytest.mark.parametrize("mpi", [False, True], ids=["without MPI", "with MPI"])
def test_what_is_refused(mpirun, mpi):
    mpirun(1, program.what_is_refused, mpi, list(REFUSED.values()))


def test_memory_lives_as_long_as_its_last_view(mpirun):
    mpirun(1, program.memory_lives_as_long_as_its_last_view)


def test_memory_outlives_a_window_over_it_and_a_window_keeps_its_memory(mpirun):
    mpirun(2, program.memory_outlives_a_window_over_it_and_a_window_keeps_its_memory)


@pytest.mark.shm("windows over shared memory are direct")
def test_windows_recognise_it(ranks):
    ranks(2, program.windows_recognise_it)


@pytest.mark.parametrize("nbytes", [64, 3000, 100_000])
def test_cycles_leave_nothing_behind(mpirun, nbytes):
    mpirun(1, program.cycles_leave_nothing_behind, nbytes)


def test_a_hundred_thousand_small_ones(mpirun):
    mpirun(1, program.a_hundred_thousand_small_ones)


def test_memory_is_there_when_it_is_touched(mpirun):
    mpirun(1, program.memory_is_there_when_it_is_touched)


def test_forked_children_see_the_same_memory(mpirun):
    mpirun(2, program.forked_children_see_the_same_memory)


def test_where_there_can_be_no_memfd_memory_is_private_and_info_says_so(mpirun):
    result = mpirun(1, program.where_there_can_be_no_memfd_memory_is_private_and_info_says_so)
    assert "ordinary memory: create shared segment arena: too many open files" in result.stdout


def test_alignment_as_the_hint_says(ranks):
    ranks(1, program.alignment_as_the_hint_says)


def test_arrays_travel_as_copies(ranks):
    ranks(2, program.arrays_travel_as_copies)
