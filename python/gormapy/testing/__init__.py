"""Tests on ranks: ``pytest --mpi -n 4``, a plugin of pytest; docs/testing.md is its user's guide.

Parts: `plugin` (options, marks and fixtures; it imports neither NumPy nor MPI), `marks` (on how many ranks a test
runs), `controller` (jobs whose ranks stay, in the process of pytest), `testrun` (one test on a job), `merge` (one
report of the reports of all ranks), `rank` (the process of a rank).

Processes. The controller is the process that the user has started, or a worker of pytest-xdist. It collects the tests
and decides the order; of a test that is on ranks it runs nothing itself, not even fixtures. For each number of ranks it
keeps a *team*, a `gormapy._resident.Session`. Every rank of a team runs pytest with the arguments of the controller,
but collects nothing: it waits for the ids of tests. It then collects the file of the test, unless it has, and runs the
test as pytest does, with all its fixtures and hooks. So a fixture of a module or a session lives in the ranks, once in
each.

    controller                              each rank
    configure {arguments}           ->      pytest starts, conftest.py is imported
                                    <-      configured
    run {test, next}                ->      setup, call, teardown
                                    <-      report {phase}, as often as there are phases
                                    <-      done
    where, stacks                   ->      answered by another thread at any time
    reset, after a failure          ->      the collective reset
                                    <-      reset
    exit                            ->      the rest of the fixtures ends, pytest and MPI end

No rank gets a test before all have done the one before, so they stay in step.

Failures. A rank that fails goes on with its teardown. When others can't go on without it, they are interrupted: SIGINT
becomes an exception there, in each phase anew, that pytest takes as a failure (`rank.Interrupted`). What they waited
for is a line in the report, and not another failure. Then communication is reset, and the ranks and their
fixtures stay. Deadlocks and time-outs end in the same way, with the table of `gormapy._resident.diagnosis` and the
stacks. A team that has lost a rank, or in which a rank does not react, is ended, and the next test gets another one.

Ends. The ranks end when the controller does, however that is: see `gormapy._resident`.
"""

from __future__ import annotations


def parallel_assert(assertion: bool, msg: str = "", *, participating: bool = True) -> None:
    """Raise AssertionError on all ranks of ``COMM_WORLD`` if an assertion is false on one; all ranks call it.

    Parameters
    ----------
    assertion : bool
        What has to be true on this rank.
    msg : str
        What to say if it is false on any.
    participating : bool
        Whether the assertion of this rank counts.
    """
    from gormapy import MPI

    results = MPI.COMM_WORLD.allgather(not participating or bool(assertion))
    if not all(results):
        false = [rank for rank, result in enumerate(results) if not result]
        raise AssertionError(f"the assertion is false on ranks {false}" + (f": {msg}" if msg else ""))


__all__ = ["parallel_assert"]
