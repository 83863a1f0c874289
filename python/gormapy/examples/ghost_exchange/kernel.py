"""The stencil: each cell becomes the mean of itself and its four neighbours.

Both kernels add in the order of the original (cell, left, right, below, above) and divide at the end, so their results
are equal to the last bit. Neither may use fused multiply-add or another order.
"""

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

BLOCK = 32768  # cells; an operand of NumPy's loops stays in the cache until the next of them needs it


def numpy_kernel(x, xnew, width):
    """Set the interior of `xnew` to the means of `x`, arrays of rows and columns with a halo of `width` cells.

    All rows are one run of cells here, with the halo at their ends: long loops over contiguous cells are twice as fast
    as a loop for each row. It leaves values without meaning in the halo columns, which every iteration fills anew.
    """
    rows, length = x.shape
    old, new = x.reshape(-1), xnew.reshape(-1)
    begin, end = width * length + width, (rows - width) * length - width
    for low in range(begin, end, BLOCK):
        high = min(low + BLOCK, end)
        mean = new[low:high]
        np.add(old[low:high], old[low - 1 : high - 1], out=mean)
        np.add(mean, old[low + 1 : high + 1], out=mean)
        np.add(mean, old[low - length : high - length], out=mean)
        np.add(mean, old[low + length : high + length], out=mean)
        np.divide(mean, 5.0, out=mean)


def numpy_part(x, xnew, top, bottom, left, right):
    """Set rows top to bottom and columns left to right of `xnew`, and nothing else, to the means of `x`."""
    step = max(1, BLOCK // max(1, right - left))
    for low in range(top, bottom, step):
        high = min(low + step, bottom)
        mean = xnew[low:high, left:right]
        np.add(x[low:high, left:right], x[low:high, left - 1 : right - 1], out=mean)
        np.add(mean, x[low:high, left + 1 : right + 1], out=mean)
        np.add(mean, x[low - 1 : high - 1, left:right], out=mean)
        np.add(mean, x[low + 1 : high + 1, left:right], out=mean)
        np.divide(mean, 5.0, out=mean)


def numba_part():
    """Return the loops of the original, compiled, as a function like `numpy_part`; ImportError without Numba."""
    import numba

    # No fastmath: that would reorder.
    @numba.njit("void(float64[:, ::1], float64[:, ::1], int64, int64, int64, int64)", nogil=True)
    def means(x, xnew, top, bottom, left, right):
        for j in range(top, bottom):
            for i in range(left, right):
                xnew[j, i] = (x[j, i] + x[j, i - 1] + x[j, i + 1] + x[j - 1, i] + x[j + 1, i]) / 5.0

    return means


class Kernel(NamedTuple):
    """The stencil on all cells of a rank, and on some: see `numpy_kernel` and `numpy_part`."""

    whole: Callable
    part: Callable


KERNELS = ("numpy", "numba")


def compiled():
    """Tell whether Numba is installed here."""
    return importlib.util.find_spec("numba") is not None


@cache
def load(name):
    """Return a kernel by name; ImportError if what it needs isn't installed."""
    if name == "numpy":
        return Kernel(numpy_kernel, numpy_part)
    part = numba_part()

    def whole(x, xnew, width):
        part(x, xnew, width, x.shape[0] - width, width, x.shape[1] - width)

    return Kernel(whole, part)
