"""Collective operations on buffers.

Each operation is prepared by a function that parses the buffers for this rank's part and hands it to
the core, in the way of a blocking or of a nonblocking call: the two never match each other.
"""

from gormapy._ext import fast

from .constants import PROC_NULL
from .msgbuffer import NOTHING, acquire, message, reduction, vector
from .op import SUM, is_user_defined
from .request import Request, finish
from .sentinel import is_in_place
from .userop import fold

IN_PLACE = (fast.IN_PLACE, 0, NOTHING[2], None)


class _Blocking:
    """How a blocking call uses the core: it has completed when these return."""

    coll = fast.coll_blocking

    @staticmethod
    def collv(*args):
        finish(fast.collv_blocking(*args))


class _Nonblocking:
    """How a nonblocking call does: these return what they have started."""

    coll = fast.coll
    collv = fast.collv


def _start(how, kind, comm, send, recv, op, root):
    """Start a collective operation of the core."""
    return how.coll(
        kind, comm._h, send[0], send[1], send[2]._h, recv[0], recv[1], recv[2]._h, op, root, (send[3], recv[3])
    )


def _barrier(how, comm):
    return _start(how, fast.IBARRIER, comm, NOTHING, NOTHING, 0, 0)


def _bcast(how, comm, buf, root):
    return _start(how, fast.BCAST, comm, NOTHING, message(buf, comm.rank == root, 0, 0), 0, root)


def _gather(how, comm, sendbuf, recvbuf, root):
    if comm.rank == root:
        recv = message(recvbuf, False, 0, comm.size)
        send = IN_PLACE if is_in_place(sendbuf) else message(sendbuf, True, 0, 0)
    else:
        recv, send = NOTHING, message(sendbuf, True, 0, 0)
    return _start(how, fast.GATHER, comm, send, recv, 0, root)


def _scatter(how, comm, sendbuf, recvbuf, root):
    if comm.rank == root:
        send = message(sendbuf, True, 0, comm.size)
        recv = IN_PLACE if is_in_place(recvbuf) else message(recvbuf, False, 0, 0)
    else:
        send, recv = NOTHING, message(recvbuf, False, 0, 0)
    return _start(how, fast.SCATTER, comm, send, recv, 0, root)


def _allgather(how, comm, sendbuf, recvbuf):
    recv = message(recvbuf, False, 0, comm.size)
    send = IN_PLACE if is_in_place(sendbuf) else message(sendbuf, True, 0, 0)
    return _start(how, fast.ALLGATHER, comm, send, recv, 0, 0)


def _alltoall(how, comm, sendbuf, recvbuf):
    size = comm.size
    recv = message(recvbuf, False, 0, size)
    send = IN_PLACE if is_in_place(sendbuf) else message(sendbuf, True, 0, size)
    return _start(how, fast.ALLTOALL, comm, send, recv, 0, 0)


# Different amounts for each rank
# -------------------------------

_IN_PLACE_V = (fast.IN_PLACE, None, None, NOTHING[2], None)


def _one(parsed):
    """Return a plain message in the form of a vector."""
    address, count, datatype, holder = parsed
    return address, [count], None, datatype, holder


def _startv(how, kind, comm, send, recv, root):
    return how.collv(
        kind,
        comm._h,
        send[0],
        send[1],
        send[2],
        send[3]._h,
        recv[0],
        recv[1],
        recv[2],
        recv[3]._h,
        root,
        (send[4], recv[4]),
    )


def _gatherv(how, comm, sendbuf, recvbuf, root):
    if comm.rank == root:
        recv = vector(recvbuf, False, 0, comm.size)
        send = _IN_PLACE_V if is_in_place(sendbuf) else _one(message(sendbuf, True, 0, 0))
    else:
        recv, send = vector(None, False, PROC_NULL, 0), _one(message(sendbuf, True, 0, 0))
    return _startv(how, fast.GATHERV, comm, send, recv, root)


def _scatterv(how, comm, sendbuf, recvbuf, root):
    if comm.rank == root:
        send = vector(sendbuf, True, 0, comm.size)
        recv = _IN_PLACE_V if is_in_place(recvbuf) else _one(message(recvbuf, False, 0, 0))
    else:
        send, recv = vector(None, True, PROC_NULL, 0), _one(message(recvbuf, False, 0, 0))
    return _startv(how, fast.SCATTERV, comm, send, recv, root)


def _allgatherv(how, comm, sendbuf, recvbuf):
    recv = vector(recvbuf, False, 0, comm.size)
    send = _IN_PLACE_V if is_in_place(sendbuf) else _one(message(sendbuf, True, 0, 0))
    return _startv(how, fast.ALLGATHERV, comm, send, recv, 0)


def _alltoallv(how, comm, sendbuf, recvbuf):
    size = comm.size
    recv = vector(recvbuf, False, 0, size)
    send = _IN_PLACE_V if is_in_place(sendbuf) else vector(sendbuf, True, 0, size)
    return _startv(how, fast.ALLTOALLV, comm, send, recv, 0)


# Reductions
# ----------


def _operands(sendbuf, recvbuf):
    recv = message(recvbuf, False, 0, 0)
    if is_in_place(sendbuf):
        return IN_PLACE, recv
    send = message(sendbuf, True, 0, 0)
    reduction(send, recv)
    return send, recv


def _reduce(how, comm, sendbuf, recvbuf, op, root):
    if comm.rank == root:
        send, recv = _operands(sendbuf, recvbuf)
    else:
        send = message(sendbuf, True, 0, 0)
        recv = (0, send[1], send[2], None)
    return _start(how, fast.REDUCE, comm, send, recv, op._h, root)


def _allreduce(how, comm, sendbuf, recvbuf, op):
    return _start(how, fast.ALLREDUCE, comm, *_operands(sendbuf, recvbuf), op._h, 0)


def _reduce_scatter_block(how, comm, sendbuf, recvbuf, op):
    size = comm.size
    if is_in_place(sendbuf):
        send, recv = IN_PLACE, message(recvbuf, False, 0, size)
    else:
        recv = message(recvbuf, False, 0, 0)
        send = message(sendbuf, True, 0, size)
        reduction(send, recv)
        send = (send[0], send[1] * size, send[2], send[3])
    return _start(how, fast.REDUCE_SCATTER_BLOCK, comm, send, recv, op._h, 0)


def _scan(how, kind, comm, sendbuf, recvbuf, op):
    return _start(how, kind, comm, *_operands(sendbuf, recvbuf), op._h, 0)


def _by_program(op, call):
    """Refuse a function of the program where the core would have to call it later."""
    if is_user_defined(op):
        raise NotImplementedError(f"MPI.{call} with a user-defined operation is not implemented in gormapy 0.1")


class Collectives:
    """Mix-in with the upper-case collective operations of a communicator."""

    __slots__ = ()

    def Barrier(self):
        """Barrier synchronization."""
        fast.barrier(self._h)

    def Bcast(self, buf, root=0):
        """Broadcast data from one process to all other processes."""
        _bcast(_Blocking, self, buf, root)

    def Gather(self, sendbuf, recvbuf, root=0):
        """Gather data to one process from all other processes."""
        _gather(_Blocking, self, sendbuf, recvbuf, root)

    def Gatherv(self, sendbuf, recvbuf, root=0):
        """Gather different amounts of data to one process from all other processes."""
        _gatherv(_Blocking, self, sendbuf, recvbuf, root)

    def Scatter(self, sendbuf, recvbuf, root=0):
        """Scatter data from one process to all other processes."""
        _scatter(_Blocking, self, sendbuf, recvbuf, root)

    def Scatterv(self, sendbuf, recvbuf, root=0):
        """Scatter different amounts of data from one process to all other processes."""
        _scatterv(_Blocking, self, sendbuf, recvbuf, root)

    def Allgather(self, sendbuf, recvbuf):
        """Gather data from all processes and give it to all of them."""
        _allgather(_Blocking, self, sendbuf, recvbuf)

    def Allgatherv(self, sendbuf, recvbuf):
        """Gather different amounts of data from all processes and give it to all of them."""
        _allgatherv(_Blocking, self, sendbuf, recvbuf)

    def Alltoall(self, sendbuf, recvbuf):
        """Send data from all to all processes."""
        _alltoall(_Blocking, self, sendbuf, recvbuf)

    def Alltoallv(self, sendbuf, recvbuf):
        """Send different amounts of data from all to all processes."""
        _alltoallv(_Blocking, self, sendbuf, recvbuf)

    def Reduce(self, sendbuf, recvbuf, op=SUM, root=0):
        """Reduce to one process."""
        if is_user_defined(op):
            if self.rank != root:
                fold(self, message(sendbuf, True, 0, 0), None, op, root)
            else:
                fold(self, *_operands(sendbuf, recvbuf), op, root)
            return
        _reduce(_Blocking, self, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf, recvbuf, op=SUM):
        """Reduce to all processes."""
        if is_user_defined(op):
            fold(self, *_operands(sendbuf, recvbuf), op, None)
            return
        _allreduce(_Blocking, self, sendbuf, recvbuf, op)

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=SUM):
        """Reduce and scatter blocks of the same size."""
        _by_program(op, "Comm.Reduce_scatter_block")
        _reduce_scatter_block(_Blocking, self, sendbuf, recvbuf, op)

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=SUM):
        """Reduce and scatter blocks of different size."""
        _by_program(op, "Comm.Reduce_scatter")
        _reduce_scatter(self, sendbuf, recvbuf, recvcounts, op)

    # Nonblocking
    # -----------

    def Ibarrier(self):
        """Nonblocking barrier."""
        return Request._started(_barrier(_Nonblocking, self))

    def Ibcast(self, buf, root=0):
        """Nonblocking broadcast."""
        return Request._started(_bcast(_Nonblocking, self, buf, root))

    def Igather(self, sendbuf, recvbuf, root=0):
        """Nonblocking gather."""
        return Request._started(_gather(_Nonblocking, self, sendbuf, recvbuf, root))

    def Igatherv(self, sendbuf, recvbuf, root=0):
        """Nonblocking gather of different amounts."""
        return Request._started(_gatherv(_Nonblocking, self, sendbuf, recvbuf, root))

    def Iscatter(self, sendbuf, recvbuf, root=0):
        """Nonblocking scatter."""
        return Request._started(_scatter(_Nonblocking, self, sendbuf, recvbuf, root))

    def Iscatterv(self, sendbuf, recvbuf, root=0):
        """Nonblocking scatter of different amounts."""
        return Request._started(_scatterv(_Nonblocking, self, sendbuf, recvbuf, root))

    def Iallgather(self, sendbuf, recvbuf):
        """Nonblocking gather to all."""
        return Request._started(_allgather(_Nonblocking, self, sendbuf, recvbuf))

    def Iallgatherv(self, sendbuf, recvbuf):
        """Nonblocking gather to all of different amounts."""
        return Request._started(_allgatherv(_Nonblocking, self, sendbuf, recvbuf))

    def Ialltoall(self, sendbuf, recvbuf):
        """Nonblocking all to all."""
        return Request._started(_alltoall(_Nonblocking, self, sendbuf, recvbuf))

    def Ialltoallv(self, sendbuf, recvbuf):
        """Nonblocking all to all of different amounts."""
        return Request._started(_alltoallv(_Nonblocking, self, sendbuf, recvbuf))

    def Ireduce(self, sendbuf, recvbuf, op=SUM, root=0):
        """Nonblocking reduce to one process."""
        _by_program(op, "Comm.Ireduce")
        return Request._started(_reduce(_Nonblocking, self, sendbuf, recvbuf, op, root))

    def Iallreduce(self, sendbuf, recvbuf, op=SUM):
        """Nonblocking reduce to all processes."""
        _by_program(op, "Comm.Iallreduce")
        return Request._started(_allreduce(_Nonblocking, self, sendbuf, recvbuf, op))

    def Ireduce_scatter_block(self, sendbuf, recvbuf, op=SUM):
        """Nonblocking reduce and scatter of blocks."""
        _by_program(op, "Comm.Ireduce_scatter_block")
        return Request._started(_reduce_scatter_block(_Nonblocking, self, sendbuf, recvbuf, op))


class Scans:
    """Mix-in with the scans of an intracommunicator."""

    __slots__ = ()

    def Scan(self, sendbuf, recvbuf, op=SUM):
        """Inclusive scan."""
        _by_program(op, "Intracomm.Scan")
        _scan(_Blocking, fast.SCAN, self, sendbuf, recvbuf, op)

    def Exscan(self, sendbuf, recvbuf, op=SUM):
        """Exclusive scan."""
        _by_program(op, "Intracomm.Exscan")
        _scan(_Blocking, fast.EXSCAN, self, sendbuf, recvbuf, op)

    def Iscan(self, sendbuf, recvbuf, op=SUM):
        """Nonblocking inclusive scan."""
        _by_program(op, "Intracomm.Iscan")
        return Request._started(_scan(_Nonblocking, fast.SCAN, self, sendbuf, recvbuf, op))

    def Iexscan(self, sendbuf, recvbuf, op=SUM):
        """Nonblocking exclusive scan."""
        _by_program(op, "Intracomm.Iexscan")
        return Request._started(_scan(_Nonblocking, fast.EXSCAN, self, sendbuf, recvbuf, op))


def _reduce_scatter(comm, sendbuf, recvbuf, recvcounts, op):
    """Reduce all to rank 0, which scatters the blocks."""
    size, rank = comm.size, comm.rank
    recv = message(recvbuf, False, 0, 0)
    in_place = is_in_place(sendbuf)
    send = recv if in_place else message(sendbuf, True, 0, 0)
    datatype = recv[2]
    if recvcounts is None:
        if in_place:
            raise ValueError("Reduce_scatter: in place, the counts have to be given")
        recvcounts = comm.allgather(recv[1])
    recvcounts = list(recvcounts)
    if len(recvcounts) != size:
        raise ValueError(f"Reduce_scatter: expecting {size} counts, got {len(recvcounts)}")
    total = sum(recvcounts)
    if send[2]._h != datatype._h:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if in_place and recv[1] != total:
        raise ValueError(f"mismatch in receive count {recv[1]} and sum(counts) {total}")
    if not in_place and send[1] != total:
        raise ValueError(f"mismatch in send count {send[1]} and sum(counts) {total}")
    if not in_place and recv[1] != recvcounts[rank]:
        raise ValueError(f"mismatch in receive count {recv[1]} and counts[{rank}] {recvcounts[rank]}")
    whole = NOTHING
    if rank == 0:
        address, _, _, _, _, holder = acquire(bytearray(max(total * datatype._extent, 1)), False)
        whole = (address, total, datatype, holder)
    _start(_Blocking, fast.REDUCE, comm, send, whole if rank == 0 else (0, total, datatype, None), op._h, 0)
    parts = vector(None, True, PROC_NULL, 0)
    if rank == 0:
        displs = [sum(recvcounts[:i]) for i in range(size)]
        parts = (whole[0], recvcounts, displs, datatype, whole[3])
    mine = (recv[0], recvcounts[rank], datatype, recv[3])
    _startv(_Blocking, fast.SCATTERV, comm, parts, _one(mine), 0)
