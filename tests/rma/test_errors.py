"""Mistakes are errors before anything has moved, whatever becomes of errors."""

import re

import pytest
from support.mpirun import ANY
from support.windows import PROGRAMS


def test_mistakes(onesided):
    onesided("errors")


@pytest.mark.slow
def test_mistakes_are_heard_by_a_function_of_the_program(mpirun):
    mpirun(3, PROGRAMS / "errors.py", "wrong", env={"HANDLER": "function"})


# call, and what its line says
ENDS = {
    "outside of an epoch": ("win.Put(one, 1)", "Win.Put on halo: MPI_ERR_RMA_SYNC"),
    "outside of the window": ("win.Lock(1); win.Get(one, 1, 77)", "Win.Get on halo: MPI_ERR_RMA_RANGE"),
    "no such rank": ("win.Lock_all(); win.Accumulate(one, 9)", "Win.Accumulate on halo: MPI_ERR_RANK"),
    "op": ("win.Lock_all(); win.Fetch_and_op(one, one, 1, 0, MPI.BAND)", "Win.Fetch_and_op on halo: MPI_ERR_OP"),
    "type": ("win.Lock_all(); win.Compare_and_swap(one, one, one, 1)", "Win.Compare_and_swap on halo: MPI_ERR_TYPE"),
    "second lock": ("win.Lock(1); win.Lock(1)", "Win.Lock on halo: MPI_ERR_RMA_SYNC"),
    "unlock": ("win.Unlock(1)", "Win.Unlock on halo: MPI_ERR_RMA_SYNC"),
    "flush": ("win.Flush(0)", "Win.Flush on halo: MPI_ERR_RMA_SYNC"),
    "request": ("win.Rput(one, 1)", "Win.Rput on halo: MPI_ERR_RMA_SYNC"),
    "fence": ("win.Lock(0); win.Fence()", "Win.Fence on halo: MPI_ERR_RMA_SYNC"),
    "free": ("win.Lock(1); win.Free()", "Win.Free on halo: MPI_ERR_RMA_SYNC"),
    "start in start": (
        "win.Start(MPI.GROUP_EMPTY); win.Start(MPI.GROUP_EMPTY)",
        "Win.Start on halo: MPI_ERR_RMA_SYNC",
    ),
    "complete": ("win.Complete()", "Win.Complete on halo: MPI_ERR_RMA_SYNC"),
    "wait": ("win.Wait()", "Win.Wait on halo: MPI_ERR_RMA_SYNC"),
    "assertion": ("win.Lock(1, MPI.LOCK_SHARED, 3)", "Win.Lock on halo: MPI_ERR_ASSERT"),
    "lock type": ("win.Lock(1, 99)", "Win.Lock on halo: MPI_ERR_LOCKTYPE"),
    "detach": ("win.Detach(one)", "Win.Detach on halo: MPI_ERR_RMA_"),
}


# Every mistake under one of the handlers: both do the same where there is one communicator.
FATAL = [(mistake, ("ERRORS_ARE_FATAL", "ERRORS_ABORT")[i % 2]) for i, mistake in enumerate(ENDS)]


@pytest.mark.parametrize(("mistake", "handler"), FATAL)
def test_the_job_ends(mpirun, mistake, handler):
    call, said = ENDS[mistake]
    flavour = "Create_dynamic(comm=world)" if mistake == "detach" else "Allocate(64, 8, comm=world)"
    result = mpirun(
        2,
        f"""
        import numpy as np
        from rankside import *
        win = MPI.Win.{flavour}
        win.name = "halo"
        one = np.ones(1)
        win.Set_errhandler(MPI.{handler})
        world.Barrier()
        if rank == 0:
            {call}
            print("went on")
        else:
            world.recv()
        """,
        expect=ANY,
    )
    assert result.status not in (0, None), str(result)
    assert "went on" not in result.stdout
    assert result.stderr.count(said) == 1, str(result)
    assert len(re.findall("^mpiexec: rank 0 ", result.stderr, re.MULTILINE)) == 1, str(result)
    assert "Traceback" not in result.stderr or "ERRORS" in result.stderr, str(result)
    assert result.duration < 10
