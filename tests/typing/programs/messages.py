"""Messages between two ranks: buffers in all forms, objects, requests, statuses, probes."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from gormapy import MPI

Vector = npt.NDArray[np.float64]


def exchange(comm: MPI.Intracomm, mine: Vector) -> Vector:
    other = 1 - comm.Get_rank()
    found = np.empty_like(mine)
    comm.Sendrecv(mine, dest=other, sendtag=3, recvbuf=found, source=other, recvtag=3)
    comm.Sendrecv_replace([found, found.size, MPI.DOUBLE], other, source=other)
    comm.Sendrecv_replace(found, other, 0, other, 0)
    return found


def specifications(comm: MPI.Intracomm) -> int:
    """Send one message in each form of a buffer."""
    values = np.arange(6, dtype="i")
    text = bytearray(6)
    sent: list[tuple[MPI.Request, int]] = []
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    status = MPI.Status()
    requests = [
        comm.Isend(values, right, 0),
        comm.Isend((values, MPI.INT), right, 1),
        comm.Isend((values, 6), right, 2),
        comm.Isend((values, 6, "i"), right, 3),
        comm.Isend([values, MPI.INT], dest=right, tag=4),
        comm.Isend([values, (3, 3), MPI.INT], right, 5),
        comm.Isend(b"abcdef", right, 6),
        comm.Isend((array("i", range(6)), 6, MPI.INT), right, 7),
        comm.Isend(memoryview(bytearray(24)), right, 8),
    ]
    total = 0
    for tag in range(len(requests)):
        into = np.zeros(6, "i")
        if tag == 6:
            comm.Recv(text, left, tag, status)
            count = status.Get_count(MPI.BYTE)
        else:
            comm.Recv([into, MPI.INT], source=left, tag=tag, status=status)
            count = status.Get_count(MPI.INT)
        assert status.Get_source() == left and status.tag == tag and status.error == MPI.SUCCESS
        total += count
    assert MPI.Request.Waitall(requests)
    sent.extend((request, request.handle) for request in requests)
    return total


def completion(comm: MPI.Intracomm) -> list[int]:
    """Complete requests in all ways."""
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    into = np.zeros((4, 3))
    requests: list[MPI.Request] = [comm.Irecv(into[k], left, k) for k in range(4)]
    sends = [comm.Issend(np.full(3, float(rank)), right, k) for k in range(4)]
    status = MPI.Status()
    index: int = MPI.Request.Waitany(requests, status)
    index, done = MPI.Request.Testany(requests)
    some = MPI.Request.Waitsome(requests)
    order: list[int] = [] if some is None else list(some)
    flag: bool = requests[0].Test(status)
    statuses: list[MPI.Status] = []
    MPI.Request.Waitall(requests, statuses)
    while not MPI.Request.Testall(sends):
        pass
    assert flag or done or index >= 0 or index == MPI.UNDEFINED
    return order


def persistent(comm: MPI.Intracomm) -> float:
    rank, size = comm.Get_rank(), comm.Get_size()
    values, found = np.zeros(2), np.zeros(2)
    send: MPI.Prequest = comm.Send_init(values, (rank + 1) % size)
    receive = comm.Recv_init((found, MPI.DOUBLE), (rank - 1) % size)
    for turn in range(3):
        values[:] = turn
        MPI.Prequest.Startall([receive, send])
        MPI.Request.Waitall([receive, send])
    send.Start()
    receive.Start()
    send.Wait()
    receive.Wait(None)
    send.Free()
    receive.Free()
    return float(found.sum())


def partitioned(comm: MPI.Intracomm) -> None:
    values = np.zeros((4, 2))
    if comm.rank == 0:
        request = comm.Psend_init(values, 4, dest=1, tag=7)
        request.Start()
        request.Pready(0)
        request.Pready_range(1, 2)
        request.Pready_list([3])
    elif comm.rank == 1:
        request = comm.Precv_init(values, 4, source=0, tag=7, info=MPI.INFO_NULL)
        request.Start()
        arrived: bool = request.Parrived(0)
        assert arrived in (True, False)
    else:
        return
    request.Wait()
    request.Free()


def matched(comm: MPI.Intracomm) -> Any:
    """Receive a buffer and an object by matched probes."""
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    sending = comm.Isend(np.arange(5.0), right, 1)
    status = MPI.Status()
    message: MPI.Message = comm.Mprobe(left, 1, status)
    into = np.empty(status.Get_count(MPI.DOUBLE))
    message.Recv([into, MPI.DOUBLE])
    sending.Wait()
    object_sending = comm.isend({"rank": rank}, right, 2)
    arrived: MPI.Message | None = None
    while arrived is None:
        arrived = comm.improbe(left, tag=2)
    found = arrived.recv()
    object_sending.wait()
    assert not comm.Iprobe(MPI.ANY_SOURCE, tag=99) and not comm.iprobe(tag=99)
    return found


def objects(comm: MPI.Intracomm) -> dict[str, int]:
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    request = comm.isend({"rank": rank}, dest=right, tag=11)
    found: dict[str, int] = comm.recv(source=left, tag=11)
    request.wait()
    receiving = comm.irecv(source=left, tag=12)
    comm.send(("a", 1), right, tag=12)
    letter, number = receiving.wait()
    assert (letter, number) == ("a", 1)
    back = comm.sendrecv([rank], right, 13, None, left, 13)
    done, values = MPI.Request.testall([comm.isend(None, MPI.PROC_NULL)])
    assert done and values == [None] and back == [left]
    return found


def buffered(comm: MPI.Intracomm) -> None:
    rank, size = comm.Get_rank(), comm.Get_size()
    MPI.Attach_buffer(bytearray(1000 + MPI.BSEND_OVERHEAD))
    comm.Bsend(np.arange(3), (rank + 1) % size, 21)
    comm.Recv(np.empty(3, int), (rank - 1) % size, 21)
    MPI.Detach_buffer()


def main() -> None:
    comm = MPI.COMM_WORLD
    if comm.size == 2:
        assert exchange(comm, np.full(4, float(comm.rank)))[0] == 1 - comm.rank
    assert specifications(comm) == 7 * 6 + 3 + 6
    completion(comm)
    assert persistent(comm) == 4.0
    partitioned(comm)
    assert matched(comm) == objects(comm)
    buffered(comm)


if __name__ == "__main__":
    main()
