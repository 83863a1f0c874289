"""Loads from the neighbours' fields, in a window of shared memory: nothing is sent and nothing is put."""

from gormapy import MPI

from .exchange import Exchange, copy
from .tokens import Tokens

READY = 1


class Shared(Exchange):
    """Exchange halos by reading the neighbours' cells where they are.

    One synchronisation with the neighbours is enough for an exchange. A rank that is ready has filled its field, and
    has read all it needs of the other field, which is written next. Corners are read from the diagonal neighbours, so
    there is one phase.
    """

    MEMORIES = ("shared",)

    def __init__(self, grid, fields, corners, memory):
        super().__init__(grid, fields, corners, memory)
        w, ends = grid.width, grid.shape

        def reach(step, end, at_low_edge, at_high_edge):
            """Return the rows, or columns, of the halo in a direction; for 0, all that no neighbour has."""
            if step:
                return slice(0, w) if step < 0 else slice(end - w, end)
            return slice(0 if corners and at_low_edge else w, end if corners and at_high_edge else end - w)

        none = MPI.PROC_NULL
        neighbours, self.copies = [], [[], []]
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                neighbour = grid.neighbour(dx, dy)
                if (dx, dy) == (0, 0) or neighbour == none or (dx and dy and not corners):
                    continue
                neighbours.append(neighbour)
                rows = reach(dy, ends[0], grid.bottom == none, grid.top == none)
                columns = reach(dx, ends[1], grid.left == none, grid.right == none)
                j, i = grid.seen_from(neighbour, rows.start, columns.start)
                there = slice(j, j + rows.stop - rows.start), slice(i, i + columns.stop - columns.start)
                theirs = fields.of(grid, neighbour)
                for k in range(2):
                    self.copies[k].append((fields[k][rows, columns], theirs[k][there]))
        self.ready = Tokens(grid.comm, neighbours, READY)
        fields.win.Lock_all(MPI.MODE_NOCHECK)  # loads and stores in the window need an epoch, too

    def update(self, k):
        """Fill the halo of fields[k]."""
        self.sync()
        self.ready.exchange()
        self.sync()
        for halo, cells in self.copies[k]:
            copy(halo, cells)

    def sync(self):
        """Synchronize the memory of the window."""
        self.fields.win.Sync()

    def free(self):
        """End the epoch, and free the requests; collective."""
        self.grid.comm.Barrier()  # no rank reads this memory any more
        self.copies = []
        self.fields.win.Unlock_all()
        self.ready.free()
        super().free()
