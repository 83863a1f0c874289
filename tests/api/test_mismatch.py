"""Collectives that the ranks call differently: an error that says so, on the ranks that can see it, and no hang."""

import pytest
from support.programs import beside

program = beside(__file__)


# what rank 0 calls, what the others call, and words of the error
CASES = {
    "another collective": (
        "comm.Allreduce(np.ones(3), np.zeros(3))",
        "comm.Bcast(np.ones(3), root=1)",
        ["Allreduce of 24 bytes of float64", "Bcast of 24 bytes", "root 1"],
    ),
    "a barrier": ("comm.Barrier()", "comm.Allreduce(np.ones(3), np.zeros(3))", ["Barrier", "Allreduce"]),
    "another root": ("comm.Bcast(np.ones(3), root=1)", "comm.Bcast(np.ones(3), root=0)", ["root 0", "root 1"]),
    "another size": ("comm.Bcast(np.ones(3))", "comm.Bcast(np.ones(5))", ["24 bytes", "40 bytes", "TRUNCATE"]),
    "another size, long": (
        "comm.Bcast(np.ones(300_000))",
        "comm.Bcast(np.ones(5))",
        ["2400000 bytes", "40 bytes", "TRUNCATE"],
    ),
    "another type": (
        "comm.Bcast(np.arange(3))",
        "comm.Bcast(np.empty(3))",
        ["int64", "float64", "MPI_ERR_TYPE"],
    ),
    "another operation": (
        "comm.Allreduce(np.ones(3), np.zeros(3), MPI.MAX)",
        "comm.Allreduce(np.ones(3), np.zeros(3), MPI.MIN)",
        ["MAX", "MIN", "MPI_ERR_OP"],
    ),
    "nonblocking and blocking": (
        "comm.Iallreduce(np.ones(3), np.zeros(3)).Wait()",
        "comm.Allreduce(np.ones(3), np.zeros(3))",
        ["Iallreduce", "Allreduce"],
    ),
    "a communicator": ("comm.Dup()", "comm.Allreduce(np.ones(3), np.zeros(3))", ["communicator", "Allreduce"]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_mismatch(mpirun, case, n):
    """The job ends with an error that names both calls."""
    mine, theirs, words = CASES[case]
    result = mpirun(n, program.mismatch, mine, theirs, expect=1)
    for word in words:
        assert word in result.stderr


@pytest.mark.shm("is about copies from rank to rank")
@pytest.mark.parametrize("n", [2, 4, 7])
def test_each_waits_for_the_other(mpirun, n):
    """Ranks that take each other for the root, and so publish nothing, see that also if they copy from rank to rank."""
    mpirun(n, program.each_waits_for_the_other)


@pytest.mark.shm("is about copies from rank to rank")
@pytest.mark.parametrize("n", [3, 4, 7])
def test_all_hear_of_it(mpirun, n):
    """A rank that ends for that reason does not hide its call from the others, which still wait."""
    mpirun(n, program.all_hear_of_it)


# Ranks that share memory may have to reset communication after such an error.
OVER_A_NETWORK = {"GORMAPY_FABRIC": "tcp"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_communicator_remains_usable(mpirun, case, n):
    """Each pattern many times: every call ends, and the next ones work."""
    mine, theirs, _ = CASES[case]
    mpirun(n, program.patterns, mine, theirs, 50, env=OVER_A_NETWORK)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_anything_ends(mpirun, n):
    """Whatever the ranks call, all calls end and the communicator works afterwards."""
    mpirun(n, program.anything, n, 50, env=OVER_A_NETWORK)


def test_lenient(ranks):
    """Bytes, and another sign, are taken for what the other side has."""
    ranks(
        4,
        program.lenient,
    )


@pytest.mark.parametrize("call", ["gather", "scatter"])
def test_objects_with_another_root(mpirun, call):
    mpirun(4, program.objects_with_another_root, call)
