"""Collective operations on Python objects between the two groups of an intercommunicator.

Each is two operations of the core, of the sizes of the pickles and of the pickles, whatever the sizes are: the other
members of the root's group, and the other group, which do not learn the sizes, take part in as many.

A rank whose first step fails takes the second step, too, with what it has: the others may be in it, and the next call
has to have the same number at all ranks. An argument that is wrong by itself, as a root that does not exist, fails in
both steps alike and takes no number.
"""

from __future__ import annotations

from array import array

from gormapy._ext import fast

from .commlock import _comm_lock
from .constants import PROC_NULL, ROOT
from .exception import Exception
from .msgbuffer import acquire, byte
from .serialize import loaded, pickle

_NO_OPERATION = 0  # in place of the operation of a reduction


def _memory(nbytes):
    """Return memory for objects that arrive, with its address and holder."""
    memory = bytearray(nbytes)
    address, _, _, _, _, holder = acquire(memory, False)
    return memory, address, holder


def _coll(kind, comm, send, recv, root, *memory):
    """Run a collective operation on bytes; send and recv are (address, count, type handle)."""
    fast.coll_blocking(kind, comm._h, *send, *recv, _NO_OPERATION, root, memory)


def _collv(kind, comm, send, recv, root, *memory):
    """Run a collective operation with counts on bytes; send and recv are (address, counts, displs, type handle)."""
    fast.collv_blocking(kind, comm._h, *send, *recv, root, memory)


def _tried(step, *args):
    """Take a step; return the error that it ended with, or None."""
    try:
        step(*args)
    except Exception as failure:
        return failure
    return None


def _settle(*failures):
    """Raise the first error of the steps of an operation, if there is one."""
    for failure in failures:
        if failure is not None:
            raise failure


def _known(sizes, failed):
    """Return the sizes that the first step has told; zeros if it failed, since nobody can tell what it left there."""
    return [0] * len(sizes) if failed else sizes.tolist()


def _displs(counts):
    displs, end = [], 0
    for count in counts:
        displs.append(end)
        end += count
    return displs, end


def _loads(memory, counts, displs):
    view = memoryview(memory)
    return [loaded(view[d : d + n]) for n, d in zip(counts, displs)]


def _joined(pickles):
    """Return pickles as bytes, sizes and displacements."""
    views = [memoryview(data) for data in pickles]
    sizes = array("q", [view.nbytes for view in views])
    return b"".join(views), sizes, _displs(sizes)[0]


def bcast(comm, obj, root):
    """Broadcast from a root to the other group."""
    octet, nothing = byte()._h, (0, 0, byte()._h)
    data = pickle.dumps(obj) if root == ROOT else b""
    address, nbytes, _, _, _, holder = acquire(data, True)
    size = array("q", [nbytes])
    with _comm_lock(comm, "bcast"):
        failed = _tried(_coll, fast.BCAST, comm, nothing, (size.buffer_info()[0], 8, octet), root, size)
        if root != ROOT:
            (nbytes,) = _known(size, failed)
            data, address, holder = _memory(nbytes)
        _settle(failed, _tried(_coll, fast.BCAST, comm, nothing, (address, nbytes, octet), root, holder))
    return None if root in (ROOT, PROC_NULL) else loaded(data)


def gather(comm, sendobj, root):
    """Gather the objects of the other group at a root."""
    octet = byte()._h
    address, nbytes, _, _, _, holder = acquire(pickle.dumps(None if root in (ROOT, PROC_NULL) else sendobj), True)
    mine, sizes = array("q", [nbytes]), array("q", bytes(8 * comm._peers) if root == ROOT else b"")
    send, recv = (mine.buffer_info()[0], 8, octet), (sizes.buffer_info()[0], 8, octet)
    with _comm_lock(comm, "gather"):
        failed = _tried(_coll, fast.GATHER, comm, send, recv, root, mine, sizes)
        send = (address, [nbytes], None, octet)
        if root != ROOT:
            _settle(failed, _tried(_collv, fast.GATHERV, comm, send, (0, None, None, octet), root, holder))
            return None
        counts = _known(sizes, failed)
        displs, total = _displs(counts)
        memory, where, hold_memory = _memory(total)
        recv = (where, counts, displs, octet)
        _settle(failed, _tried(_collv, fast.GATHERV, comm, send, recv, root, holder, hold_memory))
    return _loads(memory, counts, displs)


def scatter(comm, pickles, root):
    """Scatter pickles, which only a root has, to the other group."""
    octet = byte()._h
    mine, sizes, holder = array("q", [0]), array("q"), None
    parts = (0, None, None, octet)
    if root == ROOT:
        data, sizes, displs = _joined(pickles)
        address, _, _, _, _, holder = acquire(data, True)
        parts = (address, sizes.tolist(), displs, octet)
    send, recv = (sizes.buffer_info()[0], 8, octet), (mine.buffer_info()[0], 8, octet)
    with _comm_lock(comm, "scatter"):
        failed = _tried(_coll, fast.SCATTER, comm, send, recv, root, mine, sizes)
        (size,) = _known(mine, failed)
        memory, where, hold_memory = _memory(size)
        recv = (where, [size], None, octet)
        _settle(failed, _tried(_collv, fast.SCATTERV, comm, parts, recv, root, holder, hold_memory))
    return None if root in (ROOT, PROC_NULL) else loaded(memory)


def allgather(comm, sendobj):
    """Gather the objects of the other group."""
    octet = byte()._h
    address, nbytes, _, _, _, holder = acquire(pickle.dumps(sendobj), True)
    mine, sizes = array("q", [nbytes]), array("q", bytes(8 * comm._peers))
    send, recv = (mine.buffer_info()[0], 8, octet), (sizes.buffer_info()[0], 8, octet)
    with _comm_lock(comm, "allgather"):
        failed = _tried(_coll, fast.ALLGATHER, comm, send, recv, 0, mine, sizes)
        counts = _known(sizes, failed)
        displs, total = _displs(counts)
        memory, where, hold_memory = _memory(total)
        send, recv = (address, [nbytes], None, octet), (where, counts, displs, octet)
        _settle(failed, _tried(_collv, fast.ALLGATHERV, comm, send, recv, 0, holder, hold_memory))
    return _loads(memory, counts, displs)


def alltoall(comm, pickles):
    """Exchange pickles with the other group."""
    octet = byte()._h
    data, sizes, displs = _joined(pickles)
    address, _, _, _, _, holder = acquire(data, True)
    arriving = array("q", bytes(8 * comm._peers))
    send, recv = (sizes.buffer_info()[0], 8, octet), (arriving.buffer_info()[0], 8, octet)
    with _comm_lock(comm, "alltoall"):
        failed = _tried(_coll, fast.ALLTOALL, comm, send, recv, 0, sizes, arriving)
        counts = _known(arriving, failed)
        r_displs, total = _displs(counts)
        memory, where, hold_memory = _memory(total)
        send, recv = (address, sizes.tolist(), displs, octet), (where, counts, r_displs, octet)
        _settle(failed, _tried(_collv, fast.ALLTOALLV, comm, send, recv, 0, holder, hold_memory))
    return _loads(memory, counts, r_displs)
