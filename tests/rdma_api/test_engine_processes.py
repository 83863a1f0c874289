"""The transfer engine between processes: ranks of a job, programs that exchange bytes, and what becomes of their deaths."""

import pytest
from support.programs import beside
from support.rxe import SLOW

program = beside(__file__)


@pytest.mark.parametrize("n", (1, 3))
def test_ranks_exchange_descriptors_by_allgather(mpirun, backend, n):
    result = mpirun(n, program.ranks_exchange_descriptors_by_allgather, backend, timeout=30 * SLOW)
    assert result.lines == [f"fine {rank}" for rank in range(n)]


def test_the_target_computes_meanwhile(mpirun, backend):
    assert mpirun.alone(program.the_target_computes_meanwhile, backend).stdout == "passive side is fine\n"


@pytest.mark.parametrize("how", ("kill", "fork"))
def test_a_peer_that_dies(mpirun, backend, how):
    assert mpirun.alone(program.a_peer_that_dies, backend, how).stdout == "told\n"


def test_a_peer_that_is_stopped(mpirun, backend):
    if backend not in ("tcp", "shm"):
        pytest.skip("a device answers for a process that is stopped")
    assert mpirun.alone(program.a_peer_that_is_stopped, backend).stdout == "timed out\nwent on\n"


def test_ctrl_c_ends_waiting(mpirun, backend):
    assert mpirun.alone(program.ctrl_c_ends_waiting, backend).stdout == "interrupted\n" * 3
