"""Neighbours that exchange the edges of their cells by notified puts, without a message and without a fence.

    mpiexec -n 4 python -m gormapy.examples.notified_halo [CELLS [STEPS]]

Heat flows along a ring of CELLS cells (default 1000), which are divided among the ranks, for STEPS (default 500) steps.
In each step a rank puts its outer cells into the windows of its neighbours, and waits until theirs have come: the slot
of a notification says from which side. No rank waits for more than its two neighbours.

A neighbour can be one step ahead, and then puts its cell of the next step before this rank has read the one before. So
there are two places for each side, used in turn. It can't be two steps ahead, because it waits for this rank's cell.
"""

import sys

import numpy as np

from gormapy import MPI, notify

from ._cells import advanced, by_one_process, part, start

LEFT, RIGHT = 0, 1  # sides, and the slots of their notifications


def solve(comm, cells, steps):
    """Return this rank's cells after the last step."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    win = MPI.Win.Allocate(4 * 8, 8, comm=comm)
    places = np.frombuffer(win, dtype=float).reshape(2, 2)  # by turn and side
    win.Lock_all()
    comm.Barrier()
    padded = np.empty(len(cells) + 2)
    for step in range(steps):
        turn = step % 2
        padded[1:-1] = cells
        notify.put_notify(win, cells[:1], left, 2 * turn + RIGHT, RIGHT)
        notify.put_notify(win, cells[-1:], right, 2 * turn + LEFT, LEFT)
        notify.win_notified(win, LEFT)
        notify.win_notified(win, RIGHT)
        win.Sync()
        padded[0], padded[-1] = places[turn]
        cells = advanced(padded)
    comm.Barrier()  # the window stays until the neighbours have put their last cells
    win.Unlock_all()
    del places
    win.Free()
    return cells


def main(n=1000, steps=500):
    """Run the program."""
    comm = MPI.COMM_WORLD
    if n < comm.size:
        sys.exit(f"{n} cells can't be divided among {comm.size} ranks")
    mine = start(n)[slice(*part(n, comm))]
    begun = MPI.Wtime()
    cells = comm.gather(solve(comm, mine, steps))
    if comm.rank == 0:
        seconds = MPI.Wtime() - begun
        equal = np.array_equal(np.concatenate(cells), by_one_process(n, steps))
        print(f"{steps} steps on {comm.size} ranks in {seconds:.3f} s; as with one process: {equal}")
        assert equal


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except ValueError:
        sys.exit(__doc__)
