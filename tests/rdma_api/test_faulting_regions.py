"""Memory that faults at its n-th page, on either side of every operation, is the operation's error."""

import ctypes
import mmap
from contextlib import contextmanager

import numpy as np
import pytest
from support.rxe import SLOW

from gormapy import rdma

pytestmark = pytest.mark.exhaustive

TIMEOUT = 20 * SLOW
PAGE = mmap.PAGESIZE
PAGES = 64


@pytest.fixture
def soft(backend):
    """Only back ends in software: a device has no pages of its own that can be taken away."""
    if backend not in ("tcp", "shm"):
        pytest.skip("a device pins the memory that is registered")


@contextmanager
def faulting(array, page):
    """Have accesses to the pages of an array from one on fault."""
    libc = ctypes.CDLL(None, use_errno=True)
    at, n = ctypes.c_void_p(array.ctypes.data + page * PAGE), ctypes.c_size_t(array.nbytes - page * PAGE)
    assert libc.mprotect(at, n, 0) == 0
    try:
        yield
    finally:
        assert libc.mprotect(at, n, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def pages():
    return np.frombuffer(mmap.mmap(-1, PAGES * PAGE), np.uint8)


OPERATIONS = {
    "write": lambda a, mine, theirs: a.qp.post_write(mine, theirs.remote),
    "read": lambda a, mine, theirs: a.qp.post_read(mine, theirs.remote),
    "send": lambda a, mine, theirs: a.qp.post_send(mine),
}


def succeeded(cq):
    """Report whether the next work request of a queue did what it was to do."""
    try:
        cq.wait(TIMEOUT)
    except rdma.Error:
        return False
    return True


@pytest.mark.parametrize("page", (0, 3, PAGES - 1))
@pytest.mark.parametrize("side", ("local", "remote"))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(soft, linked, operation, side, page):
    a, b = linked()
    other, another = linked()
    mine, theirs = pages(), pages()
    local, remote = a.pd.register(mine), b.pd.register(theirs)
    if operation == "send":
        b.qp.post_recv(remote)
    with faulting(mine if side == "local" else theirs, page):
        try:
            OPERATIONS[operation](a, local, remote)
        except (rdma.Error, OSError):
            pass  # it was found before anything moved
        else:
            done = succeeded(a.cq)
            # What the receiver of a send has is its own affair.
            assert not done or (operation == "send" and side == "remote" and not succeeded(b.recv_cq))
    # Other connections of the same process work.
    other.array[:] = 7
    other.qp.post_write(other.mr, another.mr.remote)
    (done,) = other.cq.wait(TIMEOUT)
    assert done.ok and (another.array == 7).all()
