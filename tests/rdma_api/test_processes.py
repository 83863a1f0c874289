"""Peers in other processes: ranks of a job, programs that know nothing of each other, forks, deaths."""

import pytest
from support.programs import beside
from support.rxe import SLOW

program = beside(__file__)


@pytest.fixture
def software(backend):
    """A back end that is software, whose sockets are the core's own."""
    if backend not in ("tcp", "shm"):
        pytest.skip(f"{backend}: what a fork shares of a device is its driver's")
    return backend


@pytest.mark.parametrize("n", (1, 2, 3))
def test_ranks_connect_by_their_communicator(mpirun, backend, n):
    result = mpirun(n, program.ranks_connect_by_their_communicator, backend, timeout=30 * SLOW)
    assert result.lines == [f"fine {rank}" for rank in range(n)]


def test_programs_that_exchange_their_infos(mpirun, backend):
    result = mpirun.alone(program.programs_that_exchange_their_infos, backend, timeout=30 * SLOW)
    assert result.stdout == "passive side is fine\n"


@pytest.mark.parametrize("op", ("write", "read"))
def test_a_peer_that_is_killed(mpirun, backend, op):
    line = mpirun.alone(program.a_peer_that_ends, backend, op, "kill", timeout=60 * SLOW).stdout.split()
    assert line in (["post_" + op, "IBV_WC_WR_FLUSH_ERR", str(8 << 20)], [op, "IBV_WC_RETRY_EXC_ERR", str(8 << 20)])


def test_a_peer_that_ends_while_its_forked_child_lives(mpirun, software):
    mpirun.alone(program.a_peer_that_ends, software, "write", "fork", timeout=60 * SLOW)


def test_a_forked_child_is_told_and_does_no_harm(mpirun, backend):
    result = mpirun.alone(program.a_forked_child_is_told_and_does_no_harm, backend, timeout=30 * SLOW)
    assert result.lines == ["child: True", "parent: True"]
    assert result.stderr == ""


def test_a_forked_child_keeps_what_is_the_programs(mpirun, software):
    mpirun.alone(program.a_forked_child_keeps_what_is_the_programs, software)


def test_connections_after_forks_that_signals_end(mpirun, software):
    assert mpirun.alone(program.connections_after_forks_that_signals_end, software, timeout=60).stdout == "fine\n"


def test_a_program_may_end_with_everything_open(mpirun, backend):
    result = mpirun.alone(program.a_program_may_end_with_everything_open, backend, timeout=30 * SLOW)
    assert (result.stdout, result.stderr) == ("end\n", "")
