"""How fast one core of this machine copies and reads: what data that is moved is to be compared with."""

import ctypes
from time import perf_counter

import numpy as np

SIZES = {"64 KiB": 64 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
LEAST = 0.02  # seconds for each


def _gigabytes(size, call):
    """Return how many gigabytes of `size` bytes a call a second moves, in the best of a few calls."""
    call()  # new memory costs page faults
    best = spent = 0.0
    while spent < LEAST:
        begin = perf_counter()
        call()
        took = perf_counter() - begin
        best, spent = max(best, size / took), spent + took
    return 1e-9 * best


def speeds():
    """Return GB/s by what is done and by size: copies and reads by the C library and by NumPy.

    A copy counts the bytes that are copied. The C library reads in search of a byte that is not there.
    """
    library = ctypes.CDLL(None)
    library.memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    library.memchr.restype = ctypes.c_void_p
    most = max(SIZES.values())
    source, target = np.ones(most, "B"), np.zeros(most, "B")
    here, there = source.ctypes.data, target.ctypes.data
    found = {}
    for label, size in SIZES.items():
        part, to = source[:size], target[:size]
        calls = {
            "memmove": lambda size=size: ctypes.memmove(there, here, size),
            "NumPy copy": lambda part=part, to=to: np.copyto(to, part),
            "memchr": lambda size=size: library.memchr(here, 2, size),
            "NumPy max": part.max,
        }
        for name, call in calls.items():
            found.setdefault(name, {})[label] = _gigabytes(size, call)
    return found


def line(found):
    """Return the speeds as a line of text."""
    return (
        "one core here, GB/s for "
        + ", ".join(SIZES)
        + ": "
        + "; ".join(
            f"{name} {' / '.join(f'{by_size[label]:.1f}' for label in SIZES)}" for name, by_size in found.items()
        )
    )
