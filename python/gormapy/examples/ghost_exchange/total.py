"""Results that don't depend on how the cells are divided among ranks: an exact sum, and a checksum of all bits.

A sum of floating-point numbers depends on the order, and that on the grid of ranks. Integers don't have this problem: a
double is an integer of 53 bits times a power of two, so we add integers, a total for each power.
"""

from fractions import Fraction

import numpy as np

from gormapy import MPI

EXPONENTS = 2200  # np.frexp gives -1073 to 1024; their place in the list of totals is counted from the middle
MIDDLE = EXPONENTS // 2
HALF = 26  # bits: sums of halves of a mantissa stay exact
ROWS = 1 << 20  # cells at a time, or a row


def global_sum(grid, x):
    """Return the sum of all cells, rounded once; collective. inf and nan are summed as NumPy does."""
    own = grid.interior(x)
    finite = grid.comm.allreduce(bool(np.isfinite(own).all()), op=MPI.LAND)
    if not finite:
        return grid.comm.allreduce(float(own.sum()))
    totals = np.zeros((2, EXPONENTS), np.int64)
    for rows in blocks(own):
        mantissa, exponent = np.frexp(rows.ravel())
        scaled = np.ldexp(mantissa, 2 * HALF + 1)  # an integer now
        high = np.floor(np.ldexp(scaled, -HALF))
        low = scaled - np.ldexp(high, HALF)
        for n, half in enumerate((low, high)):
            totals[n] += np.bincount(exponent + MIDDLE, weights=half, minlength=EXPONENTS).astype(np.int64)
    everybody = np.empty_like(totals)
    grid.comm.Allreduce(totals, everybody)
    whole = Fraction(0)
    for place in np.flatnonzero(everybody.any(axis=0)):
        low, high = (int(total) for total in everybody[:, place])
        whole += ((high << HALF) + low) * Fraction(2) ** (int(place) - MIDDLE - 2 * HALF - 1)
    return float(whole)


def checksum(grid, x):
    """Return a number of 64 bits that depends on every bit of every cell and on where the cell is; collective."""
    own = grid.interior(x)
    mine = np.zeros(1, np.uint64)
    j = grid.jbegin
    columns = np.arange(grid.ibegin, grid.ibegin + grid.isize, dtype=np.uint64)
    for rows in blocks(own):
        places = (np.arange(j, j + len(rows), dtype=np.uint64) * np.uint64(grid.imax))[:, None] + columns
        bits = np.ascontiguousarray(rows).view(np.uint64)
        # The mixing steps of splitmix64: without them equal changes in two cells could cancel each other.
        mixed = bits + (places + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mine += (mixed ^ (mixed >> np.uint64(31))).sum(dtype=np.uint64)
        j += len(rows)
    total = np.empty_like(mine)
    grid.comm.Allreduce(mine, total)
    return int(total[0])


def blocks(own):
    """Yield an array's rows, some at a time, so that temporary arrays stay small."""
    step = max(1, ROWS // own.shape[1])
    for first in range(0, len(own), step):
        yield own[first : first + step]
