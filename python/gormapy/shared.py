"""NumPy arrays that the other ranks on the host can map.

A window over such an array, or over a part of it, is reached by loads and stores, as one that `Win.Allocate`
made: ``field = gormapy.shared_zeros(1000)``, then ``win = MPI.Win.Create(field, comm=MPI.COMM_WORLD)``. Long messages
from such arrays and long collectives on them are copied once, without the kernel. `shared_arrays` has NumPy make all
larger arrays in such memory.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from ._ext import core, fast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import DTypeLike

__all__ = ["shared_arrays", "shared_empty", "shared_zeros"]


@contextmanager
def shared_arrays(on: bool = True) -> Iterator[None]:
    """Have NumPy make the arrays of a block in memory that the other ranks on the host can map.

    ``with gormapy.shared_arrays(): a = np.ones(1 << 20)``. Every array of 32 KiB or more (or of
    ``GORMAPY_SHARED_ARRAYS_FROM`` bytes) that NumPy allocates in the block is in such memory as long as it lives, also
    after the block: windows over it, messages and collectives need no copies by the kernel. Other arrays are
    unchanged. With `on` false the block's arrays are ordinary ones. It is a decorator, too.

    It applies to the calling thread, or task of asyncio, and to the tasks that it makes, not to other threads:
    NumPy's allocation handler is a context variable. ``mpiexec --shared-arrays`` and ``GORMAPY_SHARED_ARRAYS=1`` apply
    to all threads. Where there is no shared memory left, arrays are ordinary ones.

    A forked child gets a copy of the arrays as they are when it is forked. Unlike other memory they are copied at once,
    so that `os.fork` and ``multiprocessing`` with "fork" take time and memory for all of them; `subprocess` does not,
    unless it is given what makes it fork (``preexec_fn``, ``user``).

    Errors: ImportError if NumPy is older than 1.22.
    """
    handlers = fast.switch_arrays(bool(on))
    try:
        yield
    finally:
        fast.restore_arrays(handlers)


def shared_empty(
    shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike = float, order: Literal["C", "F"] = "C"
) -> np.ndarray[Any, Any]:
    """Return a new array, not set to anything, in memory that the other ranks on the host can map.

    `shape` is a number of elements or a tuple of numbers, `dtype` any type but one with Python objects in it,
    `order` "C" or "F" as in `numpy.empty`. The kernel allocates the memory page by page (usually 4096 bytes)
    when it is first touched, and takes it back when the last array that shows it is gone. Unlike other memory
    it is not copied for a forked child: parent and child see the same.

    Errors: MemoryError if there is no such amount of memory; TypeError for a type with Python objects;
    ValueError for a negative number of elements or an unknown order. Where the system allows no shared
    memory the array is an ordinary one, and ``python -m gormapy info`` says why.
    """
    return _array("shared_empty", shape, dtype, order)


def shared_zeros(
    shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike = float, order: Literal["C", "F"] = "C"
) -> np.ndarray[Any, Any]:
    """Return a new array of zeros in memory that the other ranks on the host can map.

    The arguments, the memory and the errors are those of `shared_empty`. The zeros are the kernel's: what is
    not written takes no memory until it is read.
    """
    return _array("shared_zeros", shape, dtype, order)  # what the core allocates is zero


def _array(call, shape, dtype, order):
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"{call}: {dtype} has Python objects in it, which are of no use to other processes")
    if order not in ("C", "F"):
        raise ValueError(f"{call}: order is {order!r}; it must be 'C' or 'F'")
    shape, count = _shape(call, shape)
    try:
        memory = fast.alloc_mem(count * dtype.itemsize, dtype.alignment)
    except OverflowError:
        raise MemoryError(f"{call}: there are no {count} elements of {dtype.itemsize} bytes") from None
    except RuntimeError as error:
        if not isinstance(error.args[0], int):  # a forked child, which can't
            raise
        raise MemoryError(f"{call}: {core.ErrorText(error.args[0])}") from None  # MPI may not be imported
    return np.ndarray(shape, dtype, memory, order=order)


def _shape(call, shape):
    """Return a shape as a tuple, and its number of elements."""
    count = 1
    sizes = []
    for size in shape if hasattr(shape, "__iter__") else (shape,):
        try:
            sizes.append(size.__index__())
        except (AttributeError, TypeError):
            text = f"{call}: shape, a number of elements or several: expecting integers, got {type(size).__name__}"
            raise TypeError(text) from None
        if sizes[-1] < 0:
            raise ValueError(f"{call}: shape is {shape}; a number of elements can't be negative")
        count *= sizes[-1]
    return tuple(sizes), count
