"""The memory that the cells are in: two arrays, one for the values of an iteration and one for those of the next."""

import numpy as np

from gormapy import MPI


class Fields:
    """Two arrays of a rank's cells with their halo: `fields[0]` and `fields[1]`.

    They are one block of memory, so that one window holds both. `memory` is "window" or "shared" for the memory of an
    MPI window, which the other ranks on the host map, else that of an ordinary array. `win` is the window, or None.
    """

    def __init__(self, grid, memory):
        self.win = None
        shape = (2, *grid.shape)
        size = 8 * shape[0] * shape[1] * shape[2]
        if memory == "window":
            self.win = MPI.Win.Allocate(size, disp_unit=8, comm=grid.comm)
        elif memory == "shared":
            self.win = MPI.Win.Allocate_shared(size, disp_unit=8, comm=grid.comm)
        if self.win is None:
            self.block = np.zeros(shape)
        else:
            self.block = np.ndarray(shape, "d", self.win.tomemory())
            self.block.fill(0.0)
        self.flat = self.block.reshape(-1)

    def __getitem__(self, k):
        return self.block[k]

    def place(self, grid, rank, k, row, column):
        """Return the index of a cell in the block of another rank."""
        rows, length = grid.shape_of(rank)
        return (k * rows + row) * length + column

    def of(self, grid, rank):
        """Return the fields of another rank, in shared memory."""
        memory, _ = self.win.Shared_query(rank)
        return np.ndarray((2, *grid.shape_of(rank)), "d", memory)

    def free(self):
        """Free the window, if there is one; the arrays are not used any more."""
        if self.win is not None:
            self.block = self.flat = None
            self.win.Free()
