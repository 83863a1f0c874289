"""A process that has no descriptors left takes nobody for dead, and does not end itself."""

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive


def test_peer_that_comes_while_no_descriptors_are_left(mpirun):
    # Longer than a rank waits for the launcher's word on a peer whose end it has seen.
    mpirun(2, program.peer_that_comes_while_no_descriptors_are_left)


def test_end_of_a_peer_is_noticed_once_there_are_descriptors(mpirun):
    result = mpirun(2, program.end_of_a_peer_is_noticed_once_there_are_descriptors)
    assert result.since("noticed") < 20, str(result)


@pytest.mark.parametrize("ranks", [1, 2])
def test_start_with_few_descriptors(mpirun, ranks):
    """Init with none, one, two, … descriptors to spare works, or says what it could not make."""
    ends = []
    for spare in range(16):
        result = mpirun(ranks, program.start_with_few_descriptors, spare, expect=ANY)
        refused = result.status == 3 and "too many open files" in result.stdout
        assert refused or result.status == 0, f"with {spare} descriptors to spare: {result}"
        ends.append(result.status)
    assert 0 in ends, ends
    assert ends == sorted(ends, reverse=True), ends


@pytest.mark.parametrize("instead", ["nothing", "readable"])
def test_descriptors_that_somebody_else_closes(mpirun, instead):
    """A program that closes what is not its own, as daemons do, loses no peer, and hears of the end of one."""
    result = mpirun(3, program.descriptors_that_somebody_else_closes, instead)
    assert result.stderr == "", str(result)
