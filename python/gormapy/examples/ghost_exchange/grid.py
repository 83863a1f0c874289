"""Which rank has which cells."""

from gormapy import MPI


class Grid:
    """A rank's part of a grid of `imax` x `jmax` cells on `nx` x `ny` ranks, with a halo of `width` cells.

    Arrays are indexed [j, i], and ranks run along x first, as in the original. Cell (0, 0) is at the bottom left.
    """

    def __init__(self, comm, nx, ny, imax, jmax, width):
        self.comm, self.nx, self.ny = comm, nx, ny
        self.imax, self.jmax, self.width = imax, jmax, width
        self.ycoord, self.xcoord = divmod(comm.Get_rank(), nx)
        self.ibegin, self.isize = part(imax, nx, self.xcoord)
        self.jbegin, self.jsize = part(jmax, ny, self.ycoord)
        self.left = self.neighbour(-1, 0)
        self.right = self.neighbour(+1, 0)
        self.bottom = self.neighbour(0, -1)
        self.top = self.neighbour(0, +1)

    @property
    def shape(self):
        """The shape of this rank's part with its halo: rows, columns."""
        return self.jsize + 2 * self.width, self.isize + 2 * self.width

    def shape_of(self, rank):
        """Return the shape of another rank's part with its halo."""
        y, x = divmod(rank, self.nx)
        return part(self.jmax, self.ny, y)[1] + 2 * self.width, part(self.imax, self.nx, x)[1] + 2 * self.width

    def seen_from(self, rank, row, column):
        """Return the row and column at which another rank's array has a cell, or would have it."""
        y, x = divmod(rank, self.nx)
        return row + self.jbegin - part(self.jmax, self.ny, y)[0], column + self.ibegin - part(self.imax, self.nx, x)[0]

    def neighbour(self, dx, dy):
        """Return the rank so many steps away in the process grid, or `MPI.PROC_NULL` where the grid ends."""
        x, y = self.xcoord + dx, self.ycoord + dy
        inside = 0 <= x < self.nx and 0 <= y < self.ny
        return y * self.nx + x if inside else MPI.PROC_NULL

    def interior(self, x):
        """Return the cells of an array that are this rank's own."""
        return x[self.width : -self.width, self.width : -self.width]

    def enforce_boundary(self, x):
        """Fill the halo at the edge of the grid with the nearest cells: first at the sides, then whole rows."""
        w = self.width
        if self.left == MPI.PROC_NULL:
            x[w:-w, :w] = x[w:-w, w : w + 1]
        if self.right == MPI.PROC_NULL:
            x[w:-w, -w:] = x[w:-w, -w - 1 : -w]
        if self.bottom == MPI.PROC_NULL:
            x[:w] = x[w]
        if self.top == MPI.PROC_NULL:
            x[-w:] = x[-w - 1]


def part(cells, ranks, coord):
    """Return the first cell of the coord-th of the ranks in a direction, and how many cells it has."""
    begin = cells * coord // ranks
    return begin, cells * (coord + 1) // ranks - begin
