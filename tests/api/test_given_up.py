"""Calls that a rank gives up, because it was interrupted or others have failed: what its peers get, and what is left."""

import pytest
from support.programs import beside

program = beside(__file__)
NETWORK = {"GORMAPY_FABRIC": "tcp"}
RECOVERING = ["--enable-recovery"]

pytestmark = pytest.mark.one_node("looks at what a rank of the node waits in")


def went_on(result, ranks):
    assert result.stdout.splitlines() == ["went on"] * ranks, result


@pytest.mark.shm("others read the pickle where it lies")
def test_a_revoked_call_keeps_its_pickle(mpirun):
    mpirun(3, program.a_revoked_call_keeps_its_pickle, launcher=RECOVERING)


@pytest.mark.shm("others read the pickle where it lies")
def test_a_pickle_is_released_when_it_has_been_read(mpirun):
    went_on(mpirun(3, program.a_pickle_is_released_when_it_has_been_read, launcher=RECOVERING), 2)


@pytest.mark.parametrize("env", [{}, NETWORK])
@pytest.mark.parametrize("what", ["send", "Send"])
def test_finalize_does_not_wait(mpirun, what, env):
    mpirun(2, program.finalize_does_not_wait, what, env=env)


@pytest.mark.parametrize("env", [{}, NETWORK])
@pytest.mark.parametrize("what", program.keys_of("SENDING"))
def test_nothing_is_left_of_sends_to_the_dead(mpirun, what, env):
    went_on(mpirun(2, program.nothing_is_left_of_sends_to_the_dead, what, launcher=RECOVERING, env=env), 1)


@pytest.mark.parametrize("env", [{}, NETWORK])
def test_sends_given_up_before_the_death(mpirun, env):
    went_on(mpirun(2, program.sends_given_up_before_the_death, launcher=RECOVERING, env=env), 1)


@pytest.mark.parametrize("what", program.keys_of("CALLS"))
def test_more_calls_than_slots(mpirun, what):
    mpirun(2, program.more_calls_than_slots, what)


@pytest.mark.parametrize("times", [1, 16])
@pytest.mark.parametrize("env", [{}, NETWORK])
def test_the_root_is_interrupted_as_it_waits_for_room(mpirun, times, env):
    mpirun(2, program.the_root_is_interrupted_as_it_waits_for_room, times, env=env)


@pytest.mark.parametrize("env", [{}, NETWORK])
def test_nothing_is_left_of_what_was_refused(mpirun, env):
    mpirun(2, program.nothing_is_left_of_what_was_refused, env=env)


def test_another_rank_has_refused(mpirun):
    mpirun(3, program.another_rank_has_refused, env={"GORMAPY_JOB_NODES": "2"})


def test_the_error_names_the_death(mpirun):
    went_on(mpirun(3, program.the_error_names_the_death, launcher=RECOVERING), 2)
