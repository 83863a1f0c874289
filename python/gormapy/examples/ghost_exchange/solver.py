"""The iterations and their timers."""

import numpy as np

from gormapy import MPI

from .fields import Fields
from .methods import METHODS


class Solver:
    """The field, its exchange, and the time that each part of an iteration has taken on this rank.

    Timers are at the same places as in the original: around the stencil, around the boundary condition, and around the
    update of the ghost cells. The last one shows more than the transfer of data: a rank that is early waits in it for
    its neighbours. With `barrier` the rank waits, and the wait is counted, before it.

    With `overlap` the cells that neighbours need are computed first, and travel while the others are computed.
    """

    def __init__(self, grid, method, memory, corners, kernel, barrier=False, overlap=False):
        self.grid, self.corners, self.kernel, self.barrier = grid, corners, kernel, barrier
        self.fields = Fields(grid, memory)
        self.exchange = METHODS[method](grid, self.fields, corners, memory)
        self.k = 0
        self.overlap = overlap
        self.frame, self.inner = divided(grid)
        self.seconds = {"stencil": 0.0, "boundary": 0.0, "ghost": 0.0, "wait": 0.0}

    @property
    def x(self):
        """The field as it is now, with its halo."""
        return self.fields[self.k]

    def update_halo(self):
        """Enforce the boundary condition and fetch the neighbours' cells."""
        self._ready()
        begin = MPI.Wtime()
        self._exchange()
        self.seconds["ghost"] += MPI.Wtime() - begin

    def _ready(self):
        """Enforce the boundary condition, and wait for the others if that is asked for."""
        begin = MPI.Wtime()
        self._boundary()
        boundary = MPI.Wtime()
        self.seconds["boundary"] += boundary - begin
        if self.barrier:
            self.grid.comm.Barrier()
        self.seconds["wait"] += MPI.Wtime() - boundary

    def advance(self):
        """Do an iteration."""
        if self.overlap:
            self._advance_overlapping()
            return
        begin = MPI.Wtime()
        self._stencil()
        self.k = 1 - self.k
        self.seconds["stencil"] += MPI.Wtime() - begin
        self.update_halo()

    def _advance_overlapping(self):
        old, new = self.fields[self.k], self.fields[1 - self.k]
        begin = MPI.Wtime()
        for part in self.frame:
            self.kernel.part(old, new, *part)
        self.k = 1 - self.k
        self.seconds["stencil"] += MPI.Wtime() - begin
        self._ready()
        begin = MPI.Wtime()
        self.exchange.start(self.k)
        started = MPI.Wtime()
        if self.inner:
            self.kernel.part(old, new, *self.inner)
        computed = MPI.Wtime()
        self.exchange.finish(self.k)
        self.seconds["stencil"] += computed - started
        self.seconds["ghost"] += MPI.Wtime() - computed + started - begin

    def _boundary(self):
        self.grid.enforce_boundary(self.x)

    def _exchange(self):
        self.exchange.update(self.k)

    def _stencil(self):
        self.kernel.whole(self.fields[self.k], self.fields[1 - self.k], self.grid.width)

    def start(self):
        """Set the field to a Gaussian hill in the middle of the grid."""
        grid = self.grid
        sigma = 0.01 * grid.imax * grid.jmax
        i = np.arange(grid.ibegin, grid.ibegin + grid.isize) - grid.imax / 2.0
        j = np.arange(grid.jbegin, grid.jbegin + grid.jsize) - grid.jmax / 2.0
        self.k = 0
        self.x.fill(0.0)
        hill = self.grid.interior(self.x)
        for row, distance in enumerate(j):  # a row at a time: temporary arrays as large as the field cost memory
            hill[row] = np.exp(-0.5 * (i * i / (sigma * sigma) + distance * distance / (sigma * sigma)))
        self.update_halo()

    def self_test(self):
        """Fill the field with rank*1000 + j*10 + i, exchange, and return how many halo cells are wrong on all ranks.

        i and j are a cell's column and row within its rank.
        """
        grid, w = self.grid, self.grid.width
        rows, columns = np.arange(-w, grid.jsize + w) + grid.jbegin, np.arange(-w, grid.isize + w) + grid.ibegin
        j, y = owners(np.clip(rows, 0, grid.jmax - 1), grid.jmax, grid.ny)
        i, x = owners(np.clip(columns, 0, grid.imax - 1), grid.imax, grid.nx)
        rank = y[:, None] * grid.nx + x
        expected = rank * 1000.0 + j[:, None] * 10.0 + i
        self.k = 0
        self.x.fill(-1.0)
        grid.interior(self.x)[...] = grid.interior(expected)
        self.update_halo()
        wrong = self.x != expected
        if not self.corners:
            for part in (slice(None, w), slice(-w, None)):
                wrong[part, :w] = wrong[part, -w:] = False
                self.x[part, :w] = self.x[part, -w:] = 0.0  # as printed by the original
        self.exchange.sync()
        count = grid.comm.allreduce(int(np.count_nonzero(wrong)))
        self.exchange.sync()  # the field is filled anew
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        return count

    def free(self):
        """Free windows, requests and datatypes; collective."""
        self.exchange.free()
        self.fields.free()


def divided(grid):
    """Return the cells of a rank that its neighbours need, or may need, and the others, or None.

    They are given as top, bottom, left, right: blocks of rows and columns.
    """
    w, bottom, right = grid.width, grid.jsize + grid.width, grid.isize + grid.width
    if grid.jsize <= 2 * w or grid.isize <= 2 * w:
        return [(w, bottom, w, right)], None
    inner = 2 * w, bottom - w, 2 * w, right - w
    frame = [
        (w, 2 * w, w, right),
        (bottom - w, bottom, w, right),
        (2 * w, bottom - w, w, 2 * w),
        (2 * w, bottom - w, right - w, right),
    ]
    return frame, inner


def owners(cells, total, ranks):
    """Return, for cells of one direction, their number within the rank that has them, and that rank's place."""
    begins = np.array([total * coord // ranks for coord in range(ranks)])
    coord = np.searchsorted(begins, cells, side="right") - 1
    return cells - begins[coord], coord
