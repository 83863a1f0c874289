"""A solver that goes on with fewer ranks when some of them fail.

    mpiexec --enable-recovery -n 4 python -m gormapy.examples.recovery [CELLS [STEPS [RANK ...]]]

Heat flows along a ring of CELLS cells (default 64), which are divided among the ranks, for STEPS (default 200) steps.
The given ranks (default: 1, if there are two or more) kill themselves, one after the other, on the way. The others

1. get ERR_PROC_FAILED or ERR_REVOKED from the call that they are in, and revoke the communicator, so that all do;
2. agree on the communicator of those that are left (Shrink);
3. go back to the last step of which all cells are still in memory, divide them anew, and go on.

Each rank keeps a copy of the cells of its left neighbour for that, so two neighbours must not fail at once. The result
is compared with that of one process: the cells have the same values whoever has failed.
"""

import os
import signal
import sys

import numpy as np

from gormapy import MPI

from ._cells import advanced, by_one_process, part, start

EVERY = 10  # steps between two copies
FAILURES = (MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED)


class NeighboursFailed(Exception):
    """A rank and the one that had the copy of its cells have failed."""


def step(comm, cells):
    """Return the cells after a step, with those of the neighbours."""
    size, rank = comm.size, comm.rank
    left, right = (rank - 1) % size, (rank + 1) % size
    padded = np.empty(len(cells) + 2)
    padded[1:-1] = cells
    comm.Sendrecv(cells[-1:], right, 0, padded[:1], left, 0)
    comm.Sendrecv(cells[:1], left, 1, padded[-1:], right, 1)
    return advanced(padded)


def copied(comm, number, first, cells):
    """Return [(step, first cell, cells)] of this rank and of its left neighbour: enough to rebuild all if one fails."""
    mine = (number, first, cells.copy())
    theirs = comm.sendrecv(mine, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
    # A rank can fail between the copies of two ranks. So nobody drops its older copies before all have made these.
    comm.Barrier()
    return [mine, theirs]


def restored(comm, n, older, newer):
    """Return the last step of which all cells are there, and this rank's cells of it."""
    known = [copy for copies in comm.allgather(older + newer) for copy in copies]
    for number in sorted({number for number, _, _ in known}, reverse=True):
        whole = np.full(n, np.nan)
        for _, first, cells in (copy for copy in known if copy[0] == number):
            whole[first : first + len(cells)] = cells
        if not np.isnan(whole).any():
            first, behind = part(n, comm)
            return number, whole[first:behind]
    raise NeighboursFailed


def solve(comm, n, steps, victims):
    """Return the communicator of the ranks that are left, and all cells after the last step, at each of them."""
    older, newer = [], []
    number, (first, behind) = 0, part(n, comm)
    cells = start(n)[first:behind]
    fails_at = {rank: steps * (k + 1) // (len(victims) + 1) + 1 for k, rank in enumerate(victims)}.get(comm.rank)
    while True:
        try:
            if not newer:
                newer = copied(comm, number, first, cells)
            while number < steps:
                cells, number = step(comm, cells), number + 1
                if number == fails_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                if number % EVERY == 0:
                    copies = copied(comm, number, first, cells)
                    older, newer = newer, copies
            whole = np.concatenate(comm.allgather(cells))
            comm.Barrier()  # nobody ends before all have the result
            return comm, whole
        except MPI.Exception as error:
            if error.Get_error_class() not in FAILURES:
                raise
        older, newer = older + newer, []  # they stay until there are new ones: others may be in shrunk again
        comm, number, cells, first = shrunk(comm, n, older, newer)


def shrunk(comm, n, older, newer):
    """Return a communicator of the ranks that are left, and the step and the cells that they go on with."""
    while True:
        comm.Revoke()
        failed = comm.Get_failed().size
        smaller = comm.Shrink()
        comm.Free()
        comm = smaller
        try:
            number, cells = restored(comm, n, older, newer)
            comm.Barrier()
        except MPI.Exception as error:  # one more has failed meanwhile
            if error.Get_error_class() not in FAILURES:
                raise
            continue
        if comm.rank == 0:
            print(f"{failed} of {comm.size + failed} ranks failed; the others go on from step {number}", flush=True)
        return comm, number, cells, part(n, comm)[0]


def main(n=64, steps=200, *victims):
    """Run the program."""
    comm = MPI.COMM_WORLD.Dup()
    if n < comm.size:
        sys.exit(f"{n} cells can't be divided among {comm.size} ranks")
    comm, cells = solve(comm, n, steps, victims or ((1,) if comm.size > 1 else ()))
    if comm.rank == 0:
        equal = np.array_equal(cells, by_one_process(n, steps))
        print(f"{steps} steps, at the end on {comm.size} ranks; as with one process: {equal}")
        assert equal


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except ValueError:
        sys.exit(__doc__)
