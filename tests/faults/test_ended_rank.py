"""A rank that ends cleanly while others wait for it gives them MPI_ERR_PROC_FAILED."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("wait", program.keys_of("WAITS"))
def test_others_get_an_error(mpirun, wait):
    result = mpirun(3, program.others_get_an_error, wait)
    texts = [line for line in result.lines if line.startswith("text ")]
    assert len(texts) == 2, str(result)
    assert all("rank 1" in text for text in texts), str(result)
    left = result.since("leaving")
    for r in (0, 2):
        assert left - result.since(f"rank{r}") < 20, str(result)


@pytest.mark.alone
def test_others_are_told_soon(mpirun):
    """By the launcher, before they have waited for its word as long as they do. The best of three jobs counts."""
    seconds = []
    while len(seconds) < 3 and not any(s < 3 for s in seconds):
        result = mpirun(3, program.others_get_an_error, "recv")
        seconds.append(result.since("leaving") - min(result.since(f"rank{r}") for r in (0, 2)))
    assert min(seconds) < 3, seconds


def test_messages_of_an_ended_rank_can_still_be_received(mpirun):
    mpirun(
        2,
        program.messages_of_an_ended_rank_can_still_be_received,
    )


@pytest.mark.parametrize("call", ["recv", "wait", "sendrecv", "short", "long"])
def test_the_status_says_that_a_receive_has_failed(mpirun, call):
    mpirun(2, program.the_status_says_that_a_receive_has_failed, call)


def test_uninvolved_ranks_go_on(mpirun):
    mpirun(
        3,
        program.uninvolved_ranks_go_on,
    )


def test_any_source_when_nobody_is_left(mpirun):
    mpirun(
        3,
        program.any_source_when_nobody_is_left,
    )


def test_lock_held_by_an_ended_rank(mpirun):
    # one of those who wait is told that the holder's updates may be incomplete; nobody hangs
    result = mpirun(
        3,
        program.lock_held_by_an_ended_rank,
    )
    told = [line for line in result.lines if line.startswith("told")]
    assert len(told) == 1, str(result)
    assert "rank 1" in told[0], str(result)


def test_end_without_finalisation(mpirun):
    mpirun(
        2,
        program.end_without_finalisation,
    )


def test_rank_that_ends_without_ever_joining(mpirun):
    mpirun(
        3,
        program.rank_that_ends_without_ever_joining,
    )


def test_put_to_an_ended_rank(mpirun):
    mpirun(
        3,
        program.put_to_an_ended_rank,
    )


def test_lock_at_an_ended_rank_that_a_living_one_holds(mpirun):
    mpirun(
        3,
        program.lock_at_an_ended_rank_that_a_living_one_holds,
    )
