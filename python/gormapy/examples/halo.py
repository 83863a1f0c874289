"""Smooth a field on a grid of ranks that exchange halos, by messages or by one-sided puts.

    mpiexec -n 4 python -m gormapy.examples.halo -x 2 -y 2 -i 2000 -j 2000 -w 2 -c -I 100 --by fence

Every step replaces each cell by the mean of itself and its four neighbours. A rank owns a part of the grid and
keeps a halo of copies around it: of its neighbours' cells, or, at the edge of the grid, of its own outermost
cells. The result does not depend on how many ranks there are or how they are arranged, and no step changes the
sum over the grid.
"""

import argparse
import sys
from math import inf

import numpy as np

from gormapy import MPI


class Grid:
    """A rank's part of the grid, and its neighbours."""

    def __init__(self, comm, nx, ny, imax, jmax, width):
        self.comm, self.imax, self.jmax, self.width = comm, imax, jmax, width
        self.nx, self.ny = nx, ny
        self.ycoord, self.xcoord = divmod(comm.Get_rank(), nx)
        self.ibegin, self.isize = self.part(imax, nx, self.xcoord)
        self.jbegin, self.jsize = self.part(jmax, ny, self.ycoord)
        self.left = self.neighbour(-1, 0)
        self.right = self.neighbour(+1, 0)
        self.bottom = self.neighbour(0, -1)
        self.top = self.neighbour(0, +1)

    @staticmethod
    def part(cells, ranks, coord):
        """Return the first cell of the coord-th rank in a direction, and how many cells it has."""
        begin = cells * coord // ranks
        return begin, cells * (coord + 1) // ranks - begin

    def neighbour(self, dx, dy):
        """Return the rank so many steps away in the process grid."""
        x, y = self.xcoord + dx, self.ycoord + dy
        inside = 0 <= x < self.nx and 0 <= y < self.ny
        return y * self.nx + x if inside else MPI.PROC_NULL

    def new(self):
        """Return an array for this part and its halo."""
        return np.zeros((self.jsize + 2 * self.width, self.isize + 2 * self.width))

    def interior(self, x):
        """Return the cells of an array that are this rank's own."""
        return x[self.width : -self.width, self.width : -self.width]

    def rows(self, corners):
        """Return the first and the last + 1 of the rows whose side cells are exchanged.

        They reach into the halo at the edge of the grid if corners matter.
        """
        low = 0 if corners and self.bottom == MPI.PROC_NULL else self.width
        high = self.width + self.jsize
        return low, high + (self.width if corners and self.top == MPI.PROC_NULL else 0)

    def enforce_boundary(self, x):
        """Fill the halo at the edge of the grid with the nearest cells: nothing flows across."""
        w = self.width
        if self.left == MPI.PROC_NULL:
            x[w:-w, :w] = x[w:-w, w : w + 1]
        if self.right == MPI.PROC_NULL:
            x[w:-w, -w:] = x[w:-w, -w - 1 : -w]
        if self.bottom == MPI.PROC_NULL:
            x[:w] = x[w]
        if self.top == MPI.PROC_NULL:
            x[-w:] = x[-w - 1]


class ByMessages:
    """Exchange halos by nonblocking messages."""

    def __init__(self, grid, arrays, corners):
        self.grid, self.arrays, self.corners = grid, arrays, corners
        low, high = grid.rows(corners)
        self.out_left, self.in_left, self.out_right, self.in_right = np.empty((4, high - low, grid.width))

    def update(self, k):
        """Fill the halo of the k-th array with the neighbours' cells: columns first, so that rows carry corners."""
        grid, x = self.grid, self.arrays[k]
        comm, w = grid.comm, grid.width
        low, high = grid.rows(self.corners)
        self.out_left[:] = x[low:high, w : 2 * w]
        self.out_right[:] = x[low:high, -2 * w : -w]
        MPI.Request.Waitall(
            [
                comm.Irecv(self.in_right, grid.right, 1001),
                comm.Isend(self.out_left, grid.left, 1001),
                comm.Irecv(self.in_left, grid.left, 1002),
                comm.Isend(self.out_right, grid.right, 1002),
            ]
        )
        if grid.left != MPI.PROC_NULL:
            x[low:high, :w] = self.in_left
        if grid.right != MPI.PROC_NULL:
            x[low:high, -w:] = self.in_right

        # Rows are contiguous: the whole strip with the corners, else each row by itself.
        first = [slice(0, w)] if self.corners else [slice(n, n + 1) for n in range(w)]
        columns = slice(None) if self.corners else slice(w, -w)
        top, last = grid.jsize + w, grid.jsize
        requests = []
        for n, rows in enumerate(first):

            def strip(at, rows=rows):
                return x[at + rows.start : at + rows.stop, columns]

            requests += [
                comm.Irecv(strip(top), grid.top, 1001 + 2 * n),
                comm.Isend(strip(w), grid.bottom, 1001 + 2 * n),
                comm.Irecv(strip(0), grid.bottom, 1002 + 2 * n),
                comm.Isend(strip(last), grid.top, 1002 + 2 * n),
            ]
        MPI.Request.Waitall(requests)


class ByFence:
    """Exchange halos by putting cells straight into the neighbours' halos, between fences."""

    def __init__(self, grid, arrays, corners):
        self.grid, self.arrays = grid, arrays
        self.windows = [MPI.Win.Create(x, disp_unit=x.itemsize, comm=grid.comm) for x in arrays]
        w, full = grid.width, grid.isize + 2 * grid.width
        low, high = grid.rows(corners)
        self.types = []

        def columns(row_length):
            return self.keep(MPI.DOUBLE.Create_vector(high - low, w, row_length))

        def place(x):  # of the neighbours in the same row of ranks: their rows have another length
            isize = grid.part(grid.imax, grid.nx, x)[1]
            return isize, isize + 2 * w

        # (neighbour, offset here, type here, offset there, type there), offsets in elements
        here = columns(full)
        self.across = []
        if grid.left != MPI.PROC_NULL:
            isize, length = place(grid.xcoord - 1)
            self.across.append((grid.left, low * full + w, here, low * length + w + isize, columns(length)))
        if grid.right != MPI.PROC_NULL:
            isize, length = place(grid.xcoord + 1)
            self.across.append((grid.right, low * full + grid.isize, here, low * length, columns(length)))

        begin, count = (0, full) if corners else (w, grid.isize)
        rows = self.keep(MPI.DOUBLE.Create_vector(w, count, full))
        self.along = []
        if grid.bottom != MPI.PROC_NULL:
            jsize = grid.part(grid.jmax, grid.ny, grid.ycoord - 1)[1]
            self.along.append((grid.bottom, w * full + begin, rows, (w + jsize) * full + begin, rows))
        if grid.top != MPI.PROC_NULL:
            self.along.append((grid.top, grid.jsize * full + begin, rows, begin, rows))

    def keep(self, datatype):
        """Commit a datatype and remember to free it."""
        self.types.append(datatype.Commit())
        return datatype

    def update(self, k):
        """Fill the halos of the neighbours' k-th arrays: columns first, so that rows carry corners."""
        win, cells = self.windows[k], self.arrays[k].reshape(-1)
        win.Fence(MPI.MODE_NOPRECEDE)
        for puts in (self.across, self.along):
            for rank, offset, origin_type, disp, target_type in puts:
                win.Put([cells[offset:], 1, origin_type], rank, [disp, 1, target_type])
            win.Fence()

    def free(self):
        """Free the windows and the datatypes."""
        for win in self.windows:
            win.Free()
        for datatype in self.types:
            datatype.Free()


WAYS = {"messages": ByMessages, "fence": ByFence}


def initial(grid):
    """Return a Gaussian hill in the middle of the grid."""
    i = np.arange(grid.ibegin, grid.ibegin + grid.isize) - grid.imax // 2
    j = np.arange(grid.jbegin, grid.jbegin + grid.jsize) - grid.jmax // 2
    sigma = 0.01 * grid.imax * grid.jmax
    return np.exp(-0.5 * (i[None, :] ** 2 + j[:, None] ** 2) / sigma**2)


def check(grid, exchange, corners):
    """Fill the first array with the numbers of the cells, exchange, and count the halo cells that are wrong."""
    w, x = grid.width, exchange.arrays[0]
    i = np.clip(np.arange(grid.ibegin - w, grid.ibegin + grid.isize + w), 0, grid.imax - 1)
    j = np.clip(np.arange(grid.jbegin - w, grid.jbegin + grid.jsize + w), 0, grid.jmax - 1)
    expected = j[:, None] * float(grid.imax) + i[None, :]
    x[...] = -1
    grid.interior(x)[...] = grid.interior(expected)
    grid.enforce_boundary(x)
    exchange.update(0)
    wrong = x != expected
    if not corners:
        for rows in (slice(None, w), slice(-w, None)):
            wrong[rows, :w] = wrong[rows, -w:] = False
    return grid.comm.allreduce(int(np.count_nonzero(wrong)))


def step(x, xnew, width):
    """Set the interior of `xnew` to the means of `x`."""
    w = width
    jend, iend = x.shape[0] - w, x.shape[1] - w
    xnew[w:jend, w:iend] = (
        x[w:jend, w:iend]
        + x[w:jend, w - 1 : iend - 1]
        + x[w:jend, w + 1 : iend + 1]
        + x[w - 1 : jend - 1, w:iend]
        + x[w + 1 : jend + 1, w:iend]
    ) / 5.0


def solve(grid, exchange, iterations):
    """Do the steps; return the array with the result and the seconds spent in each part."""
    arrays, spent, k = exchange.arrays, {"stencil": 0.0, "boundary": 0.0, "ghost": 0.0}, 0
    grid.interior(arrays[0])[...] = initial(grid)
    now = MPI.Wtime()

    def lap(part):
        nonlocal now
        before, now = now, MPI.Wtime()
        spent[part] += now - before

    for n in range(iterations + 1):
        grid.enforce_boundary(arrays[k])
        lap("boundary")
        exchange.update(k)
        lap("ghost")
        if n < iterations:
            step(arrays[k], arrays[1 - k], grid.width)
            k = 1 - k
            lap("stencil")
    return arrays[k], spent


def summary(grid, x):
    """Return the sum over the grid, the first cell and the one in the middle."""
    own = grid.interior(x)

    def cell(i, j):
        i, j = i - grid.ibegin, j - grid.jbegin
        inside = 0 <= i < grid.isize and 0 <= j < grid.jsize
        return float(own[j, i]) if inside else -inf

    total = grid.comm.allreduce(float(own.sum()), op=MPI.SUM)
    first = grid.comm.allreduce(cell(0, 0), op=MPI.MAX)
    return total, first, grid.comm.allreduce(cell(grid.imax // 2, grid.jmax // 2), op=MPI.MAX)


def options(comm, args):
    """Read the command line on rank 0 and give the options to all ranks; exit everywhere if they are wrong."""
    parser = argparse.ArgumentParser(prog="python -m gormapy.examples.halo", description=__doc__.split("\n")[0])
    parser.add_argument("-x", type=int, default=0, help="ranks in x direction (default: chosen)")
    parser.add_argument("-y", type=int, default=0, help="ranks in y direction (default: chosen)")
    parser.add_argument("-i", type=int, default=2000, help="cells in x direction (default: %(default)s)")
    parser.add_argument("-j", type=int, default=2000, help="cells in y direction (default: %(default)s)")
    parser.add_argument("-w", type=int, default=2, help="width of the halo (default: %(default)s)")
    parser.add_argument("-I", type=int, default=100, help="steps (default: %(default)s)")
    parser.add_argument("-c", action="store_true", help="exchange the corners of the halo too")
    parser.add_argument("--by", choices=sorted(WAYS), default="messages", help="how (default: %(default)s)")
    found = None
    if comm.Get_rank() == 0:
        try:
            found = parser.parse_args(args)
            size = comm.Get_size()
            if min(found.x, found.y) < 0 or found.I < 0 or min(found.i, found.j, found.w) < 1:
                parser.error("sizes are positive, and ranks and steps not negative")
            if not found.x and not found.y:
                found.y = next(n for n in range(int(size**0.5), 0, -1) if size % n == 0)
            if not found.x or not found.y:
                given = found.x or found.y
                if size % given:
                    parser.error(f"{given} does not divide the number of ranks, {size}")
                found.x, found.y = found.x or size // given, found.y or size // given
            if found.x * found.y != size:
                need = found.x * found.y
                parser.error(f"a process grid of {found.x} x {found.y} needs {need} ranks, there are {size}")
            smallest = min(found.i // found.x, found.j // found.y)
            if smallest < found.w:
                parser.error(f"the smallest part of the grid is {smallest} cells, less than the halo of {found.w} (-w)")
        except SystemExit as end:
            found = end.code
    found = comm.bcast(found)
    if not isinstance(found, argparse.Namespace):
        sys.exit(found)
    return found


def main(args=None):
    """Check the exchange, do the steps and print the result."""
    comm = MPI.COMM_WORLD
    opt = options(comm, args)
    grid = Grid(comm, opt.x, opt.y, opt.i, opt.j, opt.w)
    exchange = WAYS[opt.by](grid, [grid.new(), grid.new()], opt.c)
    wrong = check(grid, exchange, opt.c)
    comm.Barrier()
    begin = MPI.Wtime()
    x, spent = solve(grid, exchange, opt.I)
    spent["total"] = MPI.Wtime() - begin
    total, first, centre = summary(grid, x)
    if comm.Get_rank() == 0:
        print(f"{opt.i} x {opt.j} cells on {opt.x} x {opt.y} ranks, halo {opt.w}, {opt.I} steps, by {opt.by}")
        print(f"halo cells that are wrong: {wrong}")
        print(f"sum {total:.12f} x[0][0] {first:.12f} centre {centre:.12f}")
        print("seconds: " + " ".join(f"{part} {seconds:.6f}" for part, seconds in spent.items()), flush=True)
    if opt.by == "fence":
        exchange.free()
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
