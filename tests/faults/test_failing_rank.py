"""A rank that fails ends the job and says why: what test_table has no row for."""

import re


def test_exception_is_shown_once_with_its_rank(mpirun):
    result = mpirun(
        4,
        """
        from rankside import *

        def fail():
            raise ValueError("nothing left to compute")

        if rank == 1:
            fail()
        world.Barrier()
        """,
        expect=1,
    )
    assert result.stderr.count("Traceback (most recent call last)") == 1, str(result)
    assert result.stderr.count("ValueError: nothing left to compute") == 1, str(result)
    assert re.search(r"^rank 1:\nTraceback", result.stderr, re.MULTILINE), str(result)
    assert "in fail" in result.stderr, str(result)


def test_same_exception_on_all_ranks_is_shown_in_full_once(mpirun):
    result = mpirun(4, "from rankside import *\ndef everywhere():\n    1 / 0\neverywhere()\n", expect=1)
    assert result.stderr.count("Traceback (most recent call last)") == 1, str(result)


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
