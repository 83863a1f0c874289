"""Children of a rank: forked ones are told that they can't, spawned ones are singletons, and the job is unharmed."""

from pathlib import Path

from support.programs import beside

PROGRAMS = Path(__file__).parent / "programs"
program = beside(__file__)


def test_forked_child_gets_a_clear_error(mpirun):
    mpirun(
        2,
        program.forked_child_gets_a_clear_error,
    )


def test_end_of_forked_children_leaves_the_job_unharmed(mpirun):
    mpirun(
        2,
        program.end_of_forked_children_leaves_the_job_unharmed,
    )


def test_traceback_of_a_forked_child(mpirun):
    result = mpirun(
        2,
        program.traceback_of_a_forked_child,
    )
    assert result.stderr.count("ValueError: of the child") == 2, result.stderr
    assert "excepthook" not in result.stderr


def test_fork_while_another_thread_waits(mpirun):
    mpirun(
        2,
        program.fork_while_another_thread_waits,
    )


def test_subprocess_is_a_singleton(mpirun):
    result = mpirun(
        2,
        program.subprocess_is_a_singleton,
    )
    assert result.stdout == ""


def test_failing_subprocess_leaves_the_job_unharmed(mpirun):
    mpirun(
        2,
        program.failing_subprocess_leaves_the_job_unharmed,
    )


def test_multiprocessing_spawn(mpirun):
    mpirun(
        2,
        PROGRAMS / "children_spawn.py",
    )


def test_multiprocessing_spawn_with_mpi_in_the_main_module(mpirun):
    mpirun(
        2,
        PROGRAMS / "children_spawn_with_mpi.py",
    )


def test_multiprocessing_fork_without_mpi(mpirun):
    mpirun(
        2,
        program.multiprocessing_fork_without_mpi,
    )


def test_subprocess_that_outlives_its_rank_when_the_job_fails(mpirun):
    mpirun(
        2,
        program.subprocess_that_outlives_its_rank_when_the_job_fails,
        expect=3,
    )
