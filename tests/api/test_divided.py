"""Copies that are so long that several threads of a rank share them: gocore/workers."""

import pytest
from support.programs import beside

program = beside(__file__)
pytestmark = pytest.mark.shm("only copies within a node are divided")


@pytest.mark.on_ranks(2)
@pytest.mark.parametrize(
    "what", [program.faults_of_messages, program.faults_of_windows], ids=lambda what: what.function
)
def test_faults(mpirun, what):
    mpirun(2, what)


@pytest.mark.parametrize("size", [2, 4])
def test_faults_of_gather(mpirun, size):
    mpirun(size, program.faults_of_gather)


@pytest.mark.on_ranks(2)
def test_faults_of_reduce(mpirun):
    mpirun(2, program.faults_of_reduce)


@pytest.mark.on_ranks(2)
def test_interrupt(mpirun):
    mpirun(2, program.interrupted)


@pytest.mark.on_ranks(2)
def test_threads(mpirun):
    mpirun(2, program.threads)


@pytest.mark.on_ranks(2)
def test_sender_that_is_killed(mpirun):
    result = mpirun(2, program.killed, launcher=["--enable-recovery"])
    assert "told" in result.stdout, str(result)
