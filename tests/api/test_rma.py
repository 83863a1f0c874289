"""Windows and one-sided communication."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_windows_over_any_memory(ranks, n):
    ranks(
        n,
        program.windows_over_any_memory,
    )


def test_fence_and_targets(ranks, n):
    ranks(
        n,
        program.fence_and_targets,
    )


def test_passive_target(ranks, n):
    ranks(
        n,
        program.passive_target,
    )


def test_errors_say_what_there_is(ranks):
    ranks(
        2,
        program.errors_say_what_there_is,
    )


@pytest.mark.parametrize("one_copy", ["0", "1"])
def test_a_window_that_is_dropped_keeps_its_memory(mpirun, one_copy):
    mpirun(
        2,
        program.a_window_that_is_dropped_keeps_its_memory,
        env={"GORMAPY_ONE_COPY": one_copy},
    )
