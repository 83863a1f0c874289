"""Solve the heat equation on a plate cut into blocks of rows, and check it against NumPy alone.

    mpiexec -n 4 python -m gormapy.examples.heat --size 512 512 --steps 200 --by persistent

In every step a cell becomes warmer or colder by what it exchanges with its four neighbours. Ranks own blocks of
rows and keep a copy of the row above and of the row below (the halo), which comes from the neighbouring ranks by
messages, by persistent requests, or by one-sided puts between fences. The edge of the plate keeps its temperature.
The result is the same, to the last bit, on any number of ranks.
"""

import argparse
import sys

import numpy as np

from gormapy import MPI


def plate(nx, ny):
    """Return a cold plate with one hot edge and a hot spot."""
    cells = np.zeros((nx, ny))
    cells[0] = 100.0
    cells[nx // 2, ny // 3 : 2 * ny // 3 + 1] = 500.0
    return cells


def step(old, new, alpha):
    """Set the interior of `new` to the temperatures one step after `old`."""
    new[1:-1, 1:-1] = old[1:-1, 1:-1] + alpha * (
        old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] - 4.0 * old[1:-1, 1:-1]
    )


def serial(cells, steps, alpha):
    """Return the temperatures after some steps, computed without MPI."""
    old, new = cells.copy(), cells.copy()
    for _ in range(steps):
        step(old, new, alpha)
        old, new = new, old
    return old


class ByMessages:
    """Exchange rows by Sendrecv."""

    def __init__(self, comm, up, down, arrays):
        self.comm, self.up, self.down, self.arrays = comm, up, down, arrays

    def update(self, k):
        """Fill the halo of the k-th array."""
        u = self.arrays[k]
        self.comm.Sendrecv(u[1], dest=self.up, sendtag=0, recvbuf=u[-1], source=self.down, recvtag=0)
        self.comm.Sendrecv(u[-2], dest=self.down, sendtag=1, recvbuf=u[0], source=self.up, recvtag=1)

    def free(self):
        """Have nothing to free."""


class ByPersistent:
    """Exchange rows by requests that are made once and started in every step."""

    def __init__(self, comm, up, down, arrays):
        self.requests = [
            [
                comm.Recv_init(u[-1], source=down, tag=0),
                comm.Recv_init(u[0], source=up, tag=1),
                comm.Send_init(u[1], dest=up, tag=0),
                comm.Send_init(u[-2], dest=down, tag=1),
            ]
            for u in arrays
        ]

    def update(self, k):
        """Fill the halo of the k-th array."""
        MPI.Prequest.Startall(self.requests[k])
        MPI.Request.Waitall(self.requests[k])

    def free(self):
        """Free the requests."""
        for requests in self.requests:
            for request in requests:
                request.Free()


class ByFence:
    """Put rows into the neighbours' halos, between fences."""

    def __init__(self, comm, up, down, arrays):
        self.up, self.down, self.arrays = up, down, arrays
        rows = len(arrays[0])
        above = comm.sendrecv(rows, dest=down, source=up)
        # where the rows go: the last one of the rank above, the first one of the rank below
        self.last_above = (above - 1) * arrays[0].shape[1] if up != MPI.PROC_NULL else 0
        self.windows = [MPI.Win.Create(u, disp_unit=u.itemsize, comm=comm) for u in arrays]

    def update(self, k):
        """Fill the neighbours' halos of the k-th array."""
        u, win = self.arrays[k], self.windows[k]
        win.Fence()
        win.Put(u[1], self.up, self.last_above)
        win.Put(u[-2], self.down, 0)
        win.Fence()

    def free(self):
        """Free the windows."""
        for win in self.windows:
            win.Free()


WAYS = {"messages": ByMessages, "persistent": ByPersistent, "fence": ByFence}


def blocks(rows, size):
    """Return how many rows each rank owns, and the first one of each."""
    counts = np.array([rows // size + (rank < rows % size) for rank in range(size)])
    return counts, np.cumsum(counts) - counts


def solve(comm, cells, steps, alpha, way):
    """Return the temperatures after some steps on rank 0, and how long the steps took.

    `cells` is significant on rank 0, where it is a plate of more rows than there are ranks.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    nx, ny = comm.bcast(None if cells is None else cells.shape, root=0)
    up = rank - 1 if rank > 0 else MPI.PROC_NULL
    down = rank + 1 if rank < size - 1 else MPI.PROC_NULL

    # The first and the last row never change: they are the halo of the first and of the last rank.
    counts, first = blocks(nx - 2, size)
    arrays = [np.zeros((counts[rank] + 2, ny)) for _ in range(2)]
    mpi_type = MPI._typedict[arrays[0].dtype.char]
    sent = counts.copy()
    sent[0] += 1
    sent[-1] += 1
    begin = 0 if rank == 0 else 1
    whole = None if cells is None else [cells, sent * ny, (np.cumsum(sent) - sent) * ny, mpi_type]
    comm.Scatterv(whole, arrays[0][begin : begin + sent[rank]], root=0)
    arrays[1][:] = arrays[0]

    exchange = WAYS[way](comm, up, down, arrays)
    comm.Barrier()
    begin = MPI.Wtime()
    for n in range(steps):
        k = n % 2
        exchange.update(k)
        step(arrays[k], arrays[1 - k], alpha)
    seconds = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    exchange.free()

    result = None if cells is None else cells.copy()
    whole = None if cells is None else [result, counts * ny, (first + 1) * ny, mpi_type]
    comm.Gatherv(arrays[steps % 2][1:-1], whole, root=0)
    return result, seconds


def options(comm, args):
    """Read the command line on rank 0 and give the options to all ranks; exit everywhere if they are wrong."""
    parser = argparse.ArgumentParser(prog="python -m gormapy.examples.heat", description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, nargs=2, default=(512, 512), metavar=("NX", "NY"), help="rows and columns")
    parser.add_argument("--steps", type=int, default=200, help="steps (default: %(default)s)")
    parser.add_argument("--alpha", type=float, default=0.24, help="how fast heat flows (default: %(default)s)")
    parser.add_argument("--by", choices=list(WAYS), default="messages", help="how rows move (default: %(default)s)")
    parser.add_argument("--no-check", action="store_true", help="do not compute it without MPI as well")
    found = None
    if comm.Get_rank() == 0:
        try:
            found = parser.parse_args(args)
            least = comm.Get_size() + 2
            if found.size[0] < least or found.size[1] < 3:
                parser.error(f"on {comm.Get_size()} ranks a plate has at least {least} rows, and 3 columns")
            if found.steps < 0:
                parser.error("the number of steps is not negative")
        except SystemExit as end:
            found = end.code
    found = comm.bcast(found)
    if not isinstance(found, argparse.Namespace):
        sys.exit(found)
    return found


def main(args=None):
    """Solve the equation, compare and print the time."""
    comm = MPI.COMM_WORLD
    opt = options(comm, args)
    cells = plate(*opt.size) if comm.Get_rank() == 0 else None
    result, seconds = solve(comm, cells, opt.steps, opt.alpha, opt.by)
    wrong = 0
    if comm.Get_rank() == 0:
        nx, ny = opt.size
        print(f"{nx} x {ny} cells on {comm.Get_size()} ranks, {opt.steps} steps, by {opt.by}: {seconds:.6f} s")
        print(f"mean {result.mean():.12f} hottest {result[1:-1, 1:-1].max():.12f}")
        if not opt.no_check:
            wrong = int(np.count_nonzero(result != serial(cells, opt.steps, opt.alpha)))
            print(f"cells that differ from those of one process: {wrong}", flush=True)
    if comm.bcast(wrong):
        sys.exit(1)


if __name__ == "__main__":
    main()
