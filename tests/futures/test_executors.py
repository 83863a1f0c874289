"""Executors at rank 0 of ``python -m gormapy.futures``, whose workers are the other ranks."""

import os
import signal
import time

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


def test_calls(serve, n):
    serve(n, program.calls, "lazy_results", "timeouts", "exceptions", "callbacks", "dropped")


def test_cancels_and_ends(serve, n):
    serve(n, program.cancelled, "shutdowns")


def test_several_at_once(serve, n):
    serve(n, program.several_executors, "several_threads")


def test_initializers(serve, n):
    serve(n, program.initializers, "failing_initializers")


@pytest.mark.shm("its pools spawn processes, which communicate through shared memory")
def test_tasks_that_communicate(serve, n):
    serve(n, program.parallel_tasks, "nested")


def test_much(serve, n):
    serve(n, program.many_tasks, "long_arguments")


@pytest.mark.parametrize("n", [2, 4])
def test_unpicklable(serve, n):
    serve(n, program.unpicklable)


def test_pending_tasks_are_done_before_the_end(serve, n):
    result = serve(n, program.pending_at_exit)
    assert result.lines == [f"task {k}" for k in range(10)], result


def test_pending_tasks_are_done_before_an_exit_with_a_status(serve, n):
    result = serve(n, program.pending_at_exit_status, expect=3)
    assert result.lines == [f"task {k}" for k in range(10)], result


def test_script_that_fails_ends_the_job(serve, n):
    result = serve(n, program.fails_with_pending, expect=1)
    assert "LookupError: the script has failed" in result.stderr, result
    assert "gormapy/futures" not in result.stderr and "runpy" not in result.stderr, result


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("which", ["worker", "manager"])
def test_killed_rank_is_named(serve, n, which):
    job = serve.start(n, program.waits)
    pids = job.pids(n)
    rank = 0 if which == "manager" else n - 1
    sent = time.monotonic()
    os.kill(pids[rank], signal.SIGKILL)
    result = job.finish(expect=ANY)
    assert result.status != 0 and time.monotonic() - sent < 20, result
    assert f"rank {rank} (pid {pids[rank]})" in result.stderr, result


@pytest.mark.parametrize("n", [1, 2, 4])
def test_interrupt_ends_the_job(serve, n):
    job = serve.start(n, program.waits)
    job.expect(r"^pid \d+ \d+$", max(n, 2))
    time.sleep(0.1)
    sent = time.monotonic()
    job.signal(signal.SIGINT)
    result = job.finish(expect=130)
    assert time.monotonic() - sent < 20, result
    assert result.stderr.count("Traceback") <= 1, result


@pytest.mark.parametrize("n", [2, 4])
def test_worker_that_ends_without_failing_is_missed(serve, n):
    serve(n, program.worker_ends_quietly)


def test_finalize_waits_for_tasks(serve, n):
    serve(n, program.finalizes)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("n", [2])
def test_idle_ranks_take_no_processor_time(serve, n):
    serve(n, program.idle)
