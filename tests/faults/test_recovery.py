"""Ranks are killed, and the others go on: Revoke, Agree, Shrink and acknowledged failures, with `mpiexec --enable-recovery`."""

import re

import pytest
from support.programs import beside

program = beside(__file__)

RECOVERY = ["--enable-recovery"]
KILLED = re.compile(
    r"mpiexec: rank 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\); the other (\d ranks go|rank goes) on"
)


@pytest.mark.parametrize("state", program.keys_of("STATES"))
def test_others_go_on(mpirun, state):
    result = mpirun(4, program.others_go_on, state, launcher=RECOVERY)
    assert result.stdout.splitlines() == ["went on"] * 3, str(result)
    assert KILLED.search(result.stderr), str(result)


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("state", ["Barrier", "recv from any", "Allreduce", "Agree", "Shrink"])
def test_others_go_on_in_jobs_of_any_size(mpirun, n, state):
    result = mpirun(n, program.others_go_on, state, launcher=RECOVERY)
    assert result.stdout.splitlines() == ["went on"] * (n - 1), str(result)


@pytest.mark.parametrize("call", program.keys_of("OF_ALL"))
@pytest.mark.parametrize("fabric", [None, "tcp"])
def test_others_do_not_wait_for_one_that_has_given_up(mpirun, fabric, call):
    """A living rank that does not call it any more holds nobody up, once a rank has failed."""
    mpirun(4, program.one_has_given_up, call, launcher=RECOVERY, env={"GORMAPY_FABRIC": fabric} if fabric else {})


PLACES = [{}, {"GORMAPY_FABRIC": "tcp"}, {"GORMAPY_JOB_NODES": "2"}]


@pytest.mark.parametrize(("n", "in_flight"), [(2, 3), (4, 3), (4, 40), (7, 3)])
@pytest.mark.parametrize("env", PLACES)
def test_all_learn_of_the_end(mpirun, env, n, in_flight):
    mpirun(n, program.all_learn_of_the_end, in_flight, launcher=RECOVERY, env=env)


@pytest.mark.parametrize("n", [4, 7])
@pytest.mark.parametrize("env", PLACES)
def test_others_learn_in_other_calls(mpirun, env, n):
    mpirun(n, program.others_learn_in_other_calls, launcher=RECOVERY, env=env)


@pytest.mark.shm("there a root does not wait for its peers to leave earlier calls")
@pytest.mark.parametrize("call", program.keys_of("AHEAD"))
def test_one_is_ahead(mpirun, call):
    mpirun(4, program.one_is_ahead, call, launcher=RECOVERY)


@pytest.mark.parametrize("call", program.keys_of("TO_ROOT"))
@pytest.mark.parametrize("fabric", [None, "tcp"])
def test_the_end_of_a_rank_that_has_contributed_is_no_error(mpirun, fabric, call):
    """The root waits for a late rank, although another one has failed after it had sent."""
    mpirun(3, program.one_has_contributed, call, launcher=RECOVERY, env={"GORMAPY_FABRIC": fabric} if fabric else {})


@pytest.mark.parametrize("n", [3, 5])
def test_any_source_after_an_acknowledgement(mpirun, n):
    mpirun(n, program.any_source_after_an_acknowledgement, launcher=RECOVERY)


@pytest.mark.parametrize("n", [2, 4, 7])
@pytest.mark.parametrize("seed", range(3))
def test_agreements_while_ranks_die(mpirun, n, seed):
    result = mpirun(n, program.agreements_while_ranks_die, seed, launcher=RECOVERY)
    assert len(result.stdout.splitlines()) == 1, str(result)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3, 60))
def test_more_agreements_while_ranks_die(mpirun, seed):
    mpirun(2 + seed % 6, program.agreements_while_ranks_die, seed, launcher=RECOVERY)


def test_survivors_use_the_window(mpirun):
    mpirun(4, program.survivors_use_the_window, launcher=RECOVERY)


def test_revoked_early(ranks, n):
    ranks(n, program.revoked_early)


def test_calls_that_do_not_match(ranks, n):
    if n > 1:
        ranks(n, program.calls_that_do_not_match)


def test_partitioned_when_revoked(ranks, n):
    ranks(n, program.partitioned_when_revoked)


@pytest.mark.one_node("ports are on one host")
@pytest.mark.shm("ports are on one host")
@pytest.mark.parametrize("n", [1, 3])
def test_meeting_when_revoked(mpirun, n):
    mpirun(n, program.meeting_when_revoked)


def test_agreements_when_freed(ranks, n):
    ranks(n, program.agreements_when_freed)


@pytest.mark.parametrize("n", [2, 4, 5])
@pytest.mark.parametrize("seed", range(2))
def test_agreements_when_freed_and_ranks_die(mpirun, n, seed):
    mpirun(n, program.agreements_when_freed_and_ranks_die, seed, launcher=RECOVERY)


@pytest.mark.one_node("the jobs are on one host")
@pytest.mark.shm("the jobs are on one host")
@pytest.mark.parametrize("who", ["parent", "child", "both"])
def test_spawned_go_on(mpirun, who):
    result = mpirun(3, program.spawned_go_on, who, launcher=RECOVERY)
    assert result.stdout.splitlines() == ["went on"] * (4 if who == "both" else 5), str(result)


def test_ranks_on_several_nodes_go_on(mpirun):
    result = mpirun(4, program.others_go_on, "Allreduce", launcher=RECOVERY, env={"GORMAPY_JOB_NODES": "2"})
    assert result.stdout.splitlines() == ["went on"] * 3, str(result)


@pytest.mark.parametrize(
    "how, status, said",
    [
        ("abort", 5, "called Abort(5); stopping"),
        ("exit", 3, "ended with exit status 3; the other 2 ranks go on"),
        ("kill", 0, "was killed by signal 9 (SIGKILL); the other 2 ranks go on"),
    ],
)
def test_status_of_the_job(mpirun, how, status, said):
    result = mpirun(3, program.failures_beyond_recovery, how, launcher=RECOVERY, expect=status)
    assert said in result.stderr, str(result)


def test_status_of_a_job_of_which_nothing_is_left(mpirun):
    result = mpirun(1, program.kill, launcher=RECOVERY, expect=137)
    assert "rank 0" in result.stderr, str(result)


@pytest.mark.parametrize("options", [["--with-ft", "ulfm"], ["-disable-auto-cleanup"]])
def test_names_of_other_launchers(mpirun, options):
    mpirun(3, program.failures_beyond_recovery, "kill", launcher=options)
