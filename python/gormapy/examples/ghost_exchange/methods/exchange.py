"""The base class of all methods."""

import numpy as np

from gormapy import MPI

from ..strips import phases


class Exchange:
    """A way to fill halos with the neighbours' cells.

    `update(k)` fills that of `fields[k]`. It is collective: all ranks call it, with the same k. A method that overlaps
    has it in two steps: `start(k)` and `finish(k)`. In between the cells that neighbours need must not change, and
    neither may those of the halo be accessed.
    """

    MEMORIES: tuple[str, ...] = ()  # those that the method can use; the first is the default
    OVERLAPS = False

    def __init__(self, grid, fields, corners, memory):
        self.grid, self.fields, self.memory = grid, fields, memory
        self.corners = corners
        self.phases = phases(grid, corners)
        # Without corners no phase needs what an earlier one has brought.
        self.first, self.later = (self.phases[:1], self.phases[1:]) if corners else (self.phases, [])
        self.strips = [strip for phase in self.phases for strip in phase]
        # For each of the fields, the cells that a strip gives and those that it fills.
        self.cells = [{strip: (fields[k][strip.out], fields[k][strip.into]) for strip in self.strips} for k in range(2)]
        self._types = []

    def update(self, k):
        """Fill the halo of fields[k]."""
        raise NotImplementedError

    def sync(self):
        """Synchronize memory that neighbours read: before and after they have told that they have read it."""

    def free(self):
        """Free what the method has made; collective."""
        for datatype in self._types:
            datatype.Free()

    def block_type(self, shape, row_length):
        """Return a datatype for a block of cells in an array whose rows have so many."""
        datatype = MPI.DOUBLE.Create_vector(*shape, row_length).Commit()
        self._types.append(datatype)
        return datatype

    def index(self, k, cells):
        """Return the index in fields.flat of the first cell of a block."""
        return self.fields.place(self.grid, self.grid.comm.Get_rank(), k, cells[0].start, cells[1].start)


def copy(to, cells):
    """Copy a block of cells to another of the same shape.

    A row of the block is one element for NumPy here. Its loop for a copy is slow for each row of a two-dimensional
    block, and those of a column of halo cells have as few cells as the halo is wide.
    """
    row = np.dtype(("V", cells.shape[1] * cells.itemsize))
    np.copyto(to.view(row), cells.view(row))
