"""What all methods have in common."""

import numpy as np

from gormapy import MPI

from ..strips import phases


class Exchange:
    """A way to fill halos with the neighbours' cells.

    `update(k)` fills that of `fields[k]`. It is collective: all ranks call it, with the same k.
    """

    MEMORIES: tuple[str, ...] = ()  # those that the method can use; the first is the default

    def __init__(self, grid, fields, corners, memory):
        self.grid, self.fields, self.memory = grid, fields, memory
        self.corners = corners
        self.phases = phases(grid, corners)
        self.strips = [strip for phase in self.phases for strip in phase]
        self._types = []

    def update(self, k):
        """Fill the halo of fields[k]."""
        raise NotImplementedError

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


def buffer_for(strip):
    """Return a new buffer for the cells of a strip.

    It has them in the order of the longer side. NumPy's loop for a copy then runs along that, and not, for columns, two
    cells at a time.
    """
    rows, columns = strip.shape
    return np.empty((rows, columns) if columns >= rows else (columns, rows))


def as_buffer(strip, x, cells):
    """Return the view of cells in an array that has the shape of the strip's buffer."""
    rows, columns = strip.shape
    return x[cells] if columns >= rows else x[cells].T
