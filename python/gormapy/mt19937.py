"""The generator of C++'s std::mt19937_64, for programs that share their data with C++ ones.

NumPy only has the Mersenne twister of 32 bits, which gives other numbers.
"""

import threading

import numpy as np

from ._ext import core
from .rdma.buffer import locate

_PIECE = 64 << 20  # bytes that are filled in one call, for which Ctrl-C has to wait


class MT19937_64:
    """Mersenne twister of 64 bits, the generator of C++'s std::mt19937_64, seeded with a number from 0 to 2**64 - 1.

    Threads may share one; each call has numbers of its own.

    Errors: ValueError for another seed.

    >>> MT19937_64(5489).next()
    14514284786278117030
    """

    def __init__(self, seed):
        if not 0 <= seed < 2**64:
            raise ValueError(f"a seed is a number from 0 to 2**64 - 1, not {seed}")
        self._words = np.zeros(core.MtSize() // 8, np.uint64)
        self._state = self._words.ctypes.data
        self._lock = threading.Lock()
        core.MtSeed(self._state, _signed(seed))

    def fill(self, buffer):
        """Fill memory with numbers of 8 bytes, little endian, and return it.

        `buffer` is contiguous memory that can be written, such as a NumPy array. Other threads run meanwhile.

        Errors: ValueError for a number of bytes that is no multiple of 8.
        """
        address, nbytes, holder = locate(buffer, True, "fill")
        if nbytes % 8:
            raise ValueError(f"fill: {nbytes} bytes are no whole number of 8-byte numbers")
        with self._lock:
            for at in range(0, nbytes, _PIECE):
                core.MtFill(self._state, address + at, min(_PIECE, nbytes - at))
        del holder
        return buffer

    def next(self):
        """Return the next number, from 0 to 2**64 - 1."""
        return int(self.fill(np.empty(1, np.uint64))[0])

    def sample(self, population, n):
        """Return `n` of the numbers from 0 to `population` - 1 in ascending order, as std::sample of libstdc++ does.

        The result is an array of uint32. The C++ standard does not define the selection; other libraries select other
        numbers.

        Errors: ValueError for numbers that are negative or too large.
        """
        if not (0 <= population < 2**32 and 0 <= n < 2**31):
            raise ValueError(f"sample: {n} of {population}; both are numbers of 32 bits")
        chosen = np.empty(min(n, population), np.uint32)
        if len(chosen):
            with self._lock:
                core.MtSample(self._state, population, len(chosen), chosen.ctypes.data)
        return chosen


def random_bytes(seed, nbytes):
    """Return an array of `nbytes` bytes (uint8) of numbers from a new generator.

    Errors: ValueError for a number of bytes that is no multiple of 8, or a wrong seed.
    """
    return MT19937_64(seed).fill(np.empty(nbytes, np.uint8))


def _signed(word):
    return word - 2**64 if word >= 2**63 else word
