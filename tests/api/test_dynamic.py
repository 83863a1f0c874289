"""Processes that start others, and jobs that connect."""

import os
import time

import pytest
from support import leftovers
from support.programs import beside

program = beside(__file__)
pytestmark = [
    pytest.mark.shm("jobs are connected through shared memory"),
    pytest.mark.one_node("jobs are connected through the memory of one node"),
]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_two_jobs(ranks, n):
    ranks(n, program.two_jobs, 3 if n == 2 else 2)


def test_a_singleton_spawns(mpirun):
    mpirun.alone(program.two_jobs, 2)


@pytest.mark.parametrize("n", [1, 3])
def test_spawns_of_each_rank(ranks, n):
    ranks(n, program.of_each_rank)


def test_spawns_of_a_part(ranks):
    ranks(4, program.of_a_part)


def test_what_children_get(ranks):
    ranks(1, program.what_children_get)


@pytest.mark.parametrize("n", [1, 2])
def test_several_programs(ranks, n):
    ranks(n, program.several_programs)


@pytest.mark.parametrize("n", [1, 2])
def test_generations(ranks, n):
    ranks(n, program.generations)


def test_last_words(ranks):
    ranks(1, program.last_words)


def test_a_put_does_not_wait(ranks):
    ranks(1, program.busy_target)


@pytest.mark.parametrize("n", [2, 4, 7])
def test_ports(ranks, n):
    ranks(n, program.ports)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3)])
def test_two_launchers(mpirun, a, b):
    name = f"gormapy-test-{os.getpid()}-{a}"
    one = mpirun.start(a, program.accepts, name)
    mpirun(b, program.connects, name)
    one.finish()


@pytest.mark.parametrize("n", [2, 5])
def test_join(ranks, n):
    ranks(n, program.join)


def test_errors(mpirun):
    mpirun.alone(program.errors)


def test_an_error_of_the_root(ranks):
    ranks(3, program.error_of_the_root)


@pytest.mark.parametrize("how", ["killed", "raising"])
@pytest.mark.parametrize("n", [1, 2])
def test_a_child_fails(mpirun, n, how):
    mpirun(n, program.child_fails, how)


@pytest.mark.parametrize("how", ["killed", "raises", "aborts", "status", "returns"])
@pytest.mark.parametrize("launched", [True, False])
def test_a_parent_ends(mpirun, how, launched):
    """Its children end, too."""
    status = {"killed": 137 if launched else -9, "raises": 1, "aborts": 5, "status": 6, "returns": 0}[how]
    if launched:
        result = mpirun(2, program.parent_ends, how, expect=status)
    else:
        result = mpirun.alone(program.parent_ends, how, expect=status)
    for pid in result.lines[0].split():
        assert not leftovers.runs(pid)


def test_ctrl_c_in_accept(mpirun):
    mpirun.alone(program.interrupted)


def test_nothing_is_left(mpirun):
    mpirun.alone(program.nothing_is_left, 12)


@pytest.mark.exhaustive
def test_synchronous_send_to_one_that_computes(mpirun):
    mpirun(1, program.synchronous_send_to_one_that_computes, 6)


@pytest.mark.exhaustive
def test_nothing_is_left_by_a_hundred(mpirun):
    mpirun.alone(program.nothing_is_left, 100, timeout=180)


@pytest.mark.parametrize("env", [{"GORMAPY_JOB_NODES": "2"}, {"GORMAPY_FABRIC": "tcp"}])
def test_jobs_that_cannot_be_connected(mpirun, env):
    mpirun(2, program.cannot_be_connected, env=env)


@pytest.mark.parametrize("kind", ["matched", "message", "both ways"])
def test_what_is_left_of_the_dead(mpirun, kind):
    mpirun.alone(program.stays_of_the_dead, kind)


def test_memory_of_the_dead(mpirun):
    mpirun.alone(program.memory_of_the_dead)


def test_failed_disconnects_leave_nothing(mpirun):
    mpirun.alone(program.failed_disconnects, 10)


def test_the_socket_after_join(ranks):
    ranks(2, program.socket_after_join)


def test_wrong_port_at_the_root(ranks):
    ranks(3, program.wrong_port_at_the_root)


def test_a_client_that_gave_up(mpirun):
    mpirun.alone(program.a_client_that_gave_up)


def test_a_root_that_has_forked_is_killed(mpirun):
    begun = time.monotonic()
    result = mpirun.alone(program.forks_and_dies, expect=-9, clean=False)
    while any(leftovers.runs(pid) for pid in result.lines[0].split()):
        assert time.monotonic() - begun < 20
        time.sleep(0.05)


def test_a_forked_process_ends_well(mpirun):
    source = "import multiprocessing as m; from gormapy import MPI; p = m.get_context('fork').Process(target=abs, args=(1,)); p.start(); p.join(); assert p.exitcode == 0"
    mpirun.alone(source)
