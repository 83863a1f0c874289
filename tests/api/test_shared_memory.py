"""Memory that other ranks can map: shared_empty, shared_zeros, Alloc_mem."""

from textwrap import dedent

import pytest
from support.programs import beside

look = beside(__file__, "look")
program = beside(__file__)


# What the memory of a process has, and how many pages of the arena are in use.
LOOK = """
import gc, os
import numpy as np
import gormapy

def arena():
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "gormapy-arena" in os.readlink(f"/proc/self/fd/{fd}"):
                return int(fd)
        except OSError:  # the folder's own
            pass
    return None

def used():
    return os.stat(arena()).st_blocks * 512

def mapped():
    with open("/proc/self/maps") as file:
        return sum("gormapy-arena" in line for line in file)
"""


def looking(program):
    """Return a program for the ranks, with what looks at the memory before it."""
    return LOOK + dedent(program)


def test_arrays_are_what_was_asked_for(mpirun):
    mpirun(
        1,
        look.arrays_are_what_was_asked_for,
    )


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


@pytest.mark.parametrize("mpi", ["", "from gormapy import MPI"], ids=["without MPI", "with MPI"])
def test_what_is_refused(mpirun, mpi):
    mpirun(
        1,
        looking(
            f"""
    {mpi}
    for arguments, kind, text in {list(REFUSED.values())!r}:
        for make in ("shared_empty", "shared_zeros"):
            try:
                eval(f"gormapy.{{make}}({{arguments}})")
            except (TypeError, ValueError, MemoryError) as error:
                assert type(error).__name__ == kind and text in str(error), (arguments, error)
                assert kind == "TypeError" and "nonsense" in text or str(error).startswith(make), error
            else:
                assert not arguments, "nothing was raised"
    assert gormapy.shared_zeros(3).sum() == 0
            """
        ),
    )


def test_memory_lives_as_long_as_its_last_view(mpirun):
    mpirun(
        1,
        look.memory_lives_as_long_as_its_last_view,
    )


def test_memory_outlives_a_window_over_it_and_a_window_keeps_its_memory(mpirun):
    mpirun(
        2,
        look.memory_outlives_a_window_over_it_and_a_window_keeps_its_memory,
    )


@pytest.mark.shm("windows over shared memory are direct")
def test_windows_recognise_it(mpirun):
    mpirun(
        2,
        look.windows_recognise_it,
    )


@pytest.mark.parametrize("nbytes", [64, 3000, 100_000])
def test_cycles_leave_nothing_behind(mpirun, nbytes):
    mpirun(
        1,
        looking(
            f"""
        from gormapy import MPI
        def cycle():
            array = gormapy.shared_empty({nbytes}, "u1")
            array[:] = 255
            memory = MPI.Alloc_mem({nbytes})
            memory[-1:] = b"x"
            MPI.Free_mem(memory)
            kept = gormapy.shared_zeros({nbytes}, "u1")
            assert not kept.any()
        cycle()
        fds = len(os.listdir("/proc/self/fd"))
        before = mapped(), used(), os.stat(arena()).st_size
        for _ in range(3000):
            cycle()
        after = mapped(), used(), os.stat(arena()).st_size
        assert len(os.listdir("/proc/self/fd")) <= fds + 10, (fds, os.listdir("/proc/self/fd"))
        assert after == before, (before, after)
            """
        ),
    )


def test_a_hundred_thousand_small_ones(mpirun):
    mpirun(
        1,
        look.a_hundred_thousand_small_ones,
    )


def test_memory_is_there_when_it_is_touched(mpirun):
    mpirun(
        1,
        look.memory_is_there_when_it_is_touched,
    )


def test_forked_children_see_the_same_memory(mpirun):
    mpirun(
        2,
        look.forked_children_see_the_same_memory,
    )


def test_where_there_can_be_no_memfd_memory_is_private_and_info_says_so(mpirun):
    result = mpirun(
        1,
        look.where_there_can_be_no_memfd_memory_is_private_and_info_says_so,
    )
    assert "ordinary memory: create shared segment arena: too many open files" in result.stdout


def test_alignment_as_the_hint_says(ranks):
    ranks(
        1,
        program.alignment_as_the_hint_says,
    )


def test_arrays_travel_as_copies(ranks):
    ranks(
        2,
        program.arrays_travel_as_copies,
    )
