"""Mistakes are errors before anything has moved, whatever becomes of errors."""

import re

import pytest
from support.mpirun import ANY
from support.programs import beside
from support.windows import PROGRAMS

fatal = beside(__file__, "fatal")


def test_mistakes(onesided):
    onesided("errors")


@pytest.mark.slow
def test_mistakes_are_heard_by_a_function_of_the_program(mpirun):
    mpirun(3, PROGRAMS / "errors.py", "wrong", env={"HANDLER": "function"})


# What its line says.
ENDS = {
    "outside of an epoch": "Win.Put on halo: MPI_ERR_RMA_SYNC",
    "outside of the window": "Win.Get on halo: MPI_ERR_RMA_RANGE",
    "no such rank": "Win.Accumulate on halo: MPI_ERR_RANK",
    "op": "Win.Fetch_and_op on halo: MPI_ERR_OP",
    "type": "Win.Compare_and_swap on halo: MPI_ERR_TYPE",
    "second lock": "Win.Lock on halo: MPI_ERR_RMA_SYNC",
    "unlock": "Win.Unlock on halo: MPI_ERR_RMA_SYNC",
    "flush": "Win.Flush on halo: MPI_ERR_RMA_SYNC",
    "request": "Win.Rput on halo: MPI_ERR_RMA_SYNC",
    "fence": "Win.Fence on halo: MPI_ERR_RMA_SYNC",
    "free": "Win.Free on halo: MPI_ERR_RMA_SYNC",
    "start in start": "Win.Start on halo: MPI_ERR_RMA_SYNC",
    "complete": "Win.Complete on halo: MPI_ERR_RMA_SYNC",
    "wait": "Win.Wait on halo: MPI_ERR_RMA_SYNC",
    "assertion": "Win.Lock on halo: MPI_ERR_ASSERT",
    "lock type": "Win.Lock on halo: MPI_ERR_LOCKTYPE",
    "detach": "Win.Detach on halo: MPI_ERR_RMA_",
}


# Every mistake under one of the handlers: both do the same where there is one communicator.
FATAL = [(mistake, ("ERRORS_ARE_FATAL", "ERRORS_ABORT")[i % 2]) for i, mistake in enumerate(ENDS)]


@pytest.mark.parametrize(("mistake", "handler"), FATAL)
def test_the_job_ends(mpirun, mistake, handler):
    result = mpirun(2, fatal.job_ends, mistake, handler, expect=ANY)
    assert result.status not in (0, None), str(result)
    assert "went on" not in result.stdout
    assert result.stderr.count(ENDS[mistake]) == 1, str(result)
    assert len(re.findall("^mpiexec: rank 0 ", result.stderr, re.MULTILINE)) == 1, str(result)
    assert "Traceback" not in result.stderr or "ERRORS" in result.stderr, str(result)
    assert result.duration < 25
