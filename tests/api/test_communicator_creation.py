"""What ranks that share memory exchange to make communicators, windows and files: gocore/mpi/derive.go."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_splits(ranks, n):
    ranks(n, program.splits, n, 20)


@pytest.mark.parametrize("n", [2, 3])
def test_more_than_there_are_blocks(ranks, n):
    ranks(n, program.more_than_there_are_blocks)


@pytest.mark.shm("a rank that has sent its part by messages can't take it back")
@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("what", program.keys_of("MAKING"))
def test_given_up(ranks, what, who):
    ranks(3, program.given_up, what, who)


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("what", program.keys_of("MAKING"))
def test_exception_between(ranks, what, who):
    ranks(2, program.exception_between, what, who)


@pytest.mark.parametrize("what", program.keys_of("WAITS"))
def test_ended_by_reset(ranks, what):
    ranks(2, program.ended_by_reset, what)


@pytest.mark.parametrize("flavor", ["Allocate", "Create"])
def test_free_given_up(ranks, flavor):
    ranks(2, program.free_given_up, flavor)


@pytest.mark.shm("over a network the calls exchange messages")
def test_different_calls(ranks):
    ranks(2, program.different_calls)


@pytest.mark.exhaustive
@pytest.mark.shm("a rank that has sent its part by messages can't take it back")
@pytest.mark.parametrize("what", ["Dup", "Split", "Allocate", "Win.Free"])
@pytest.mark.on_ranks(3)
def test_stopped(mpirun, what):
    mpirun(3, program.stopped, what, 150)


@pytest.mark.shm("over a network Dup and Idup exchange the same messages")
@pytest.mark.on_ranks(2)
def test_blocking_and_not(mpirun):
    mpirun(2, program.blocking_and_not)


@pytest.mark.parametrize("n", [2, 4])
def test_in_several_threads(ranks, n):
    ranks(n, program.in_several_threads)
