"""Free and Disconnect while operations are under way: MPI lets them complete."""

import pytest
from support.mpirun import COLLECT_OFTEN
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("end", ["Free", "Disconnect"])
@pytest.mark.parametrize("kind", ["intra", "inter"])
@pytest.mark.parametrize("what", program.keys_of("UNDER_WAY"))
def test_operations_under_way_complete(ranks, what, kind, end):
    ranks(4, program.operations_under_way_complete, what, kind, end)


@pytest.mark.parametrize("end", ["Free", "Disconnect"])
@pytest.mark.parametrize("over", ["shm", "tcp"])
def test_messages_to_oneself(ranks, over, end):
    ranks(1, program.messages_to_oneself, end, env={"GORMAPY_FABRIC": "tcp"} if over == "tcp" else {})


def test_disconnect_does_not_wait_for_the_dead(mpirun):
    mpirun(3, program.disconnect_does_not_wait_for_the_dead)


def test_disconnect_that_is_interrupted(ranks):
    ranks(2, program.disconnect_that_is_interrupted)


def test_nothing_is_left(ranks):
    ranks(2, program.nothing_is_left)


@pytest.mark.parametrize("kind", ["messages", "partitions"])
def test_persistent_messages_can_be_started(ranks, kind):
    ranks(2, program.persistent_messages, kind)


def test_freed_by_two_threads(mpirun):
    mpirun(2, program.freed_by_two_threads)


def test_many_with_receives(ranks):
    ranks(2, program.many_with_receives)


def test_offers_that_nobody_receives(mpirun):
    mpirun(2, program.offers_that_nobody_receives, env=COLLECT_OFTEN)
