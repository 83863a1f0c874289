"""A progress engine that has nothing to do costs nothing."""

import pytest
from support.programs import beside

pytestmark = [pytest.mark.slow, pytest.mark.alone]

program = beside(__file__)


@pytest.mark.parametrize("one_copy", ["1", "0"])
def test_idle_engine_neither_wakes_nor_computes(mpirun, one_copy):
    result = mpirun(
        2,
        program.idle_engine_neither_wakes_nor_computes,
        env={"GORMAPY_ONE_COPY": one_copy},
    )
    assert len(result.lines) == 2, f"each rank says what it has found\n{result}"


def test_wake_ups_are_counted_where_there_is_traffic(mpirun):
    mpirun(
        2,
        program.wake_ups_are_counted_where_there_is_traffic,
        env={"GORMAPY_ONE_COPY": "0"},
    )
