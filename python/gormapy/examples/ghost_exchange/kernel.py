"""The stencil: each cell becomes the mean of itself and its four neighbours.

Both kernels add in the order of the original (cell, left, right, below, above) and divide at the end, so their results
are equal to the last bit. Neither may use fused multiply-add or another order.
"""

from functools import cache

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


def numba_kernel():
    """Return the loops of the original, compiled, as a function like `numpy_kernel`; ImportError without Numba."""
    import numba

    @numba.njit("void(float64[:, ::1], float64[:, ::1], int64)", nogil=True)  # no fastmath: that would reorder
    def means(x, xnew, width):
        for j in range(width, x.shape[0] - width):
            for i in range(width, x.shape[1] - width):
                xnew[j, i] = (x[j, i] + x[j, i - 1] + x[j, i + 1] + x[j - 1, i] + x[j + 1, i]) / 5.0

    return means


KERNELS = ("numpy", "numba")


@cache
def load(name):
    """Return a kernel by name; ImportError if what it needs isn't installed."""
    return numba_kernel() if name == "numba" else numpy_kernel
