"""Files used by several ranks, threads and operations at once."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.slow
def test_atomic_mode(mpirun):
    """Whole blocks of one writer, whoever reads meanwhile; without atomic mode there would be mixtures."""
    mpirun(
        3,
        program.atomic_mode,
    )


def test_nonblocking_collectives_keep_their_order(mpirun):
    mpirun(
        4,
        program.nonblocking_collectives_keep_their_order,
    )


def test_threads(mpirun):
    """Threads that read and write by one file, each its own part."""
    mpirun(
        2,
        program.threads,
    )


def test_shared_pointer(mpirun):
    """Every record of every rank is there once, whole; and a rank that ends does not hold the pointer."""
    mpirun(
        4,
        program.shared_pointer,
    )


def test_long_access_is_interrupted(mpirun):
    """Ctrl-C in a long write of one rank, of which the rest is not written; the file goes on working."""
    mpirun(
        1,
        program.long_access_is_interrupted,
    )


def test_fork(mpirun):
    """A child that drops the file leaves it alone."""
    mpirun(
        2,
        program.fork,
    )
