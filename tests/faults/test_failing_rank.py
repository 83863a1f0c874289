"""A rank that fails ends the job at once, with its status, wherever the others wait."""

import re

import pytest

# What the victim does, the status of the job, and what the launcher's line says of it.
ENDS = {
    "exit": ("sys.exit(3)", 3, r"ended with exit status 3"),
    "exception": ("raise ValueError('nothing left to compute')", 1, r"ended with exit status 1"),
    "os-exit": ("os._exit(3)", 3, r"ended with exit status 3"),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", 137, r"was killed by signal 9 \(SIGKILL\)"),
    "segv": ("ctypes.string_at(8)", 139, r"was killed by signal 11 \(SIGSEGV\)"),
    "abort": ("world.Abort(5)", 5, r"called Abort\(5\)"),
}

WAITS = {
    "recv": "world.Recv(np.zeros(1), source=VICTIM)",
    "barrier": "world.Barrier()",
    "fence": "win.Fence()",
    "lock": "win.Lock(0)",
    "bcast": "world.Bcast(np.zeros(4), root=VICTIM)",
    "allreduce": "world.allreduce(1)",
    "pickled": "world.recv(source=MPI.ANY_SOURCE)",
}

PROGRAM = """
    import ctypes, os, signal, sys, time
    import numpy as np
    from rankside import *

    VICTIM = 1
    win = MPI.Win.Allocate(8, 1, comm=world)
    hello()

    def fail():
        {end}

    def wait():
        {wait}

    if rank == VICTIM:
        if {holds}:
            win.Lock(0)
        time.sleep(0.3)
        stamp("failing")
        fail()
        time.sleep(30)
    else:
        {first}
        wait()
"""


def run(mpirun, end, wait, n=4):
    statement, status, text = ENDS[end]
    holds = wait == "lock"
    first = "time.sleep(0.15)" if holds else "pass"
    program = PROGRAM.format(end=statement, wait=WAITS[wait], holds=holds, first=first)
    result = mpirun(n, program, expect=status)
    pids = dict(re.findall(r"^pid (\d+) (\d+)$", result.stdout, re.MULTILINE))
    assert result.since("failing") < 3, result
    line = rf"mpiexec: rank 1 \(pid {pids['1']}\) {text}"
    assert len(re.findall(line, result.stderr)) == 1, f"{line}\n{result}"
    return result


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_whatever_the_others_wait_in(mpirun, end, wait):
    result = run(mpirun, end, wait)
    assert "Traceback" not in result.stderr, result


@pytest.mark.parametrize("wait", ["recv", "barrier"])
@pytest.mark.parametrize("end", ["os-exit", "segv", "abort"])
def test_however_it_ends(mpirun, end, wait):
    run(mpirun, end, wait)


@pytest.mark.parametrize("wait", ["recv", "barrier", "lock"])
def test_exception_is_shown_once_with_its_rank(mpirun, wait):
    result = run(mpirun, "exception", wait)
    assert result.stderr.count("Traceback (most recent call last)") == 1, result
    assert result.stderr.count("ValueError: nothing left to compute") == 1, result
    assert re.search(r"^rank 1:\nTraceback", result.stderr, re.MULTILINE), result
    assert "in fail" in result.stderr, result


def test_same_exception_on_all_ranks_is_shown_in_full_once(mpirun):
    result = mpirun(4, "from rankside import *\ndef everywhere():\n    1 / 0\neverywhere()\n", expect=1)
    assert result.stderr.count("Traceback (most recent call last)") == 1, result


def test_failure_before_mpi_is_imported(mpirun):
    result = mpirun(
        2,
        """
        import os
        if os.environ["GORMAPY_JOB_RANK"] == "1":
            raise SystemExit(3)
        from gormapy import MPI
        MPI.COMM_WORLD.Barrier()
        """,
        expect=3,
    )
    assert "rank 1 (pid" in result.stderr
    assert result.duration < 5


def test_failure_with_two_ranks(mpirun):
    run(mpirun, "exit", "recv", n=2)


def test_exit_statuses(mpirun):
    for statement, status in [("sys.exit('sorry')", 1), ("sys.exit(255)", 255), ("os.abort()", 134)]:
        source = f"import os, sys\nfrom rankside import *\nif rank: {statement}\nworld.Barrier()\n"
        result = mpirun(2, source, expect=status)
        if "sorry" in statement:
            assert "sorry" in result.stderr


def test_exception_in_a_singleton(mpirun):
    result = mpirun.alone("from rankside import *\nraise KeyError('lonely')\n", expect=1)
    assert result.stderr.count("Traceback") == 1
    assert "rank" not in result.stderr.splitlines()[0]


def test_abort_ends_a_rank_that_computes(mpirun):
    result = mpirun(
        3,
        """
        from rankside import *
        world.Barrier()
        if rank == 2:
            stamp("failing")
            world.Abort(7)
        while True:
            sum(range(1000))
        """,
        expect=7,
    )
    assert result.since("failing") < 3
