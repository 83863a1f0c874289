"""Memory that faults when it is touched, and what is expected then: for programs that tests run as ranks."""

import ctypes
import mmap
import os
import tempfile

import numpy as np
from rankside import one_node

from gormapy import MPI

PAGE = mmap.PAGESIZE
NETWORK = os.environ.get("GORMAPY_FABRIC", "shm") != "shm" or not one_node  # of some ranks


def truncated(pages=1):
    """Return an array that maps a file which has become empty: SIGBUS."""
    with tempfile.TemporaryFile() as file:
        file.truncate(pages * PAGE)
        memory = mmap.mmap(file.fileno(), pages * PAGE)
        file.truncate(0)
    return np.frombuffer(memory, "i8")


def protected(pages=1):
    """Return an array that may be neither read nor written: SIGSEGV."""
    array = np.frombuffer(mmap.mmap(-1, pages * PAGE), "i8")
    protect(array)
    return array


def protect(array, on=True):
    """Let the pages of an array fault from now on, or not any more."""
    libc = ctypes.CDLL(None, use_errno=True)
    allowed = 0 if on else mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mprotect(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), allowed):
        raise OSError(ctypes.get_errno(), "mprotect")


def faults(call, *args, flush=None):
    """Expect that a call says that the memory can't be accessed.

    flush: a function that completes the call where a network may carry it. There the result of a one-sided call comes
    later; in shared memory the call itself says it.
    """
    try:
        call(*args)
        if flush is not None and NETWORK:
            flush()
    except MPI.Exception as e:
        # The latter is what the kernel says of memory that it copies.
        assert "can't be read or written" in str(e) or "bad address" in str(e), e
    else:
        raise AssertionError(f"{call.__name__} did not fail")
