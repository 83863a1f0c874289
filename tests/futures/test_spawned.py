"""Executors that spawn their workers, in programs without a launcher and in ranks."""

from pathlib import Path

import pytest
from support import leftovers
from support.mpirun import ANY
from support.programs import Programs

FOLDER = Path(__file__).parent / "programs"
program, own = Programs(FOLDER / "executors.py"), Programs(FOLDER / "spawned.py")
pytestmark = [
    pytest.mark.shm("spawned processes communicate through shared memory"),
    pytest.mark.one_node("spawned processes communicate through the memory of one node"),
]
TWO = {"GORMAPY_FUTURES_MAX_WORKERS": "2"}


def alone(mpirun, which, *more, **options):
    return mpirun.alone(which.file, which.function, *more, env=TWO, **options)


@pytest.mark.parametrize(
    "functions",
    [
        ("calls", "lazy_results", "timeouts", "exceptions", "callbacks", "dropped"),
        ("cancelled", "shutdowns"),
        ("several_threads",),
        ("initializers", "failing_initializers"),
        ("parallel_tasks", "nested"),
        ("many_tasks", "long_arguments"),
        ("unpicklable",),
    ],
    ids=lambda functions: functions[0],
)
def test_executors(mpirun, functions):
    alone(mpirun, getattr(program, functions[0]), *functions[1:], timeout=60)


def test_in_ranks(mpirun):
    """Each rank has an executor of its own."""
    mpirun(3, own.in_ranks.file, "in_ranks", timeout=60)


def test_pending_tasks_are_done_before_the_end(mpirun):
    assert alone(mpirun, program.pending_at_exit).lines == [f"task {k}" for k in range(10)]


def test_a_worker_is_killed(mpirun):
    """Its executor is broken, another one can be made, and nothing is left."""
    result = alone(mpirun, own.worker_killed)
    assert "was killed by signal 9" in result.stderr


def test_a_manager_that_ends_while_it_is_woken(mpirun):
    alone(mpirun, own.manager_that_ends_while_it_is_woken)


@pytest.mark.parametrize("how", ["killed", "raises"])
def test_the_program_fails(mpirun, how):
    result = alone(mpirun, own.program_fails, how, expect=ANY)
    assert result.status == {"killed": -9, "raises": 1}[how]
    for pid in result.lines[0].split():
        assert not leftovers.runs(pid)


def test_options_of_python(mpirun):
    alone(mpirun, own.options_of_python)


def test_over_a_network_it_says_why_not(mpirun):
    mpirun(1, own.over_a_network.file, "over_a_network", env={"GORMAPY_FABRIC": "tcp"})
