"""Which cells are sent to which neighbour, and their place there.

The exchange has two phases, columns before rows. With corners, rows include the halo columns, which the first phase
has just filled: so corners arrive from the diagonal neighbour in two steps, without messages to it.
"""

from dataclasses import dataclass

from gormapy import MPI

LEFT, RIGHT, BOTTOM, TOP = range(4)
OPPOSITE = {LEFT: RIGHT, RIGHT: LEFT, BOTTOM: TOP, TOP: BOTTOM}


@dataclass(frozen=True, eq=False)  # a strip is itself, and a key
class Strip:
    """The cells that this rank and one neighbour exchange: blocks of equal size, as slices [rows, columns]."""

    side: int
    neighbour: int
    out: tuple[slice, slice]  # cells of this rank that the neighbour needs
    into: tuple[slice, slice]  # cells of this rank's halo that the neighbour has
    there: tuple[int, int]  # row and column at which `out` begins in the neighbour's array

    @property
    def tag_out(self):
        """The tag of a message to the neighbour: the original's 1001 to the left and down, 1002 to the right and up."""
        return 1001 if self.side in (LEFT, BOTTOM) else 1002

    @property
    def tag_in(self):
        """The tag of a message from the neighbour."""
        return 1002 if self.side in (LEFT, BOTTOM) else 1001

    @property
    def shape(self):
        """Rows and columns of the block."""
        rows, columns = self.out
        return rows.stop - rows.start, columns.stop - columns.start


def phases(grid, corners):
    """Return the strips of both phases, as lists.

    A phase in which no rank of the grid has a neighbour is left out, on all ranks: phases may hold collective calls.
    """
    w, isize, jsize = grid.width, grid.isize, grid.jsize
    low, high = w, w + jsize
    if corners:  # halo rows at the edge of the grid belong to the columns, so that corners there come along too
        low -= w if grid.bottom == MPI.PROC_NULL else 0
        high += w if grid.top == MPI.PROC_NULL else 0
    rows = slice(low, high)
    columns = slice(0, isize + 2 * w) if corners else slice(w, w + isize)

    def strip(side, neighbour, out, into):
        there = grid.seen_from(neighbour, out[0].start, out[1].start)
        return Strip(side, neighbour, out, into, there)

    across, along = [], []
    if grid.left != MPI.PROC_NULL:
        across.append(strip(LEFT, grid.left, (rows, slice(w, 2 * w)), (rows, slice(0, w))))
    if grid.right != MPI.PROC_NULL:
        out, into = slice(isize, isize + w), slice(isize + w, isize + 2 * w)
        across.append(strip(RIGHT, grid.right, (rows, out), (rows, into)))
    if grid.bottom != MPI.PROC_NULL:
        along.append(strip(BOTTOM, grid.bottom, (slice(w, 2 * w), columns), (slice(0, w), columns)))
    if grid.top != MPI.PROC_NULL:
        out, into = slice(jsize, jsize + w), slice(jsize + w, jsize + 2 * w)
        along.append(strip(TOP, grid.top, (out, columns), (into, columns)))
    return ([across] if grid.nx > 1 else []) + ([along] if grid.ny > 1 else [])
