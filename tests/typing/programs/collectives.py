"""Collective operations: blocking, nonblocking, persistent, of buffers and of objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gormapy import MPI
from gormapy.typing import Buffer, BufSpec


def buffers(comm: MPI.Intracomm) -> None:
    rank, size = comm.Get_rank(), comm.Get_size()
    values = np.full(3, rank, "i")
    everything = np.empty((size, 3), "i")
    comm.Barrier()
    comm.Bcast(values, root=0)
    comm.Bcast([values, MPI.INT])
    comm.Gather(values, everything if rank == 0 else None, root=0)
    comm.Scatter([everything, 3, MPI.INT] if rank == 0 else None, values, root=0)
    comm.Scatter(everything if rank == 0 else None, MPI.IN_PLACE if rank == 0 else values)
    comm.Allgather((values, 3, MPI.INT), [everything, 3, MPI.INT])
    comm.Allgather(MPI.IN_PLACE, everything)
    comm.Alltoall(np.zeros(size), np.zeros(size))
    comm.Allreduce(MPI.IN_PLACE, values, op=MPI.MAX)
    comm.Allreduce([values, MPI.INT], [np.empty(3, "i"), MPI.INT])
    total = np.zeros(3, "i") if rank == 0 else None
    comm.Reduce(values, total, MPI.SUM, root=0)
    comm.Scan(values, np.empty(3, "i"))
    comm.Exscan(values, np.empty(3, "i"), MPI.PROD)
    comm.Reduce_scatter_block(np.zeros(size), np.zeros(1))
    comm.Reduce_scatter(np.zeros(size), np.zeros(1), [1] * size, MPI.SUM)


def vectors(comm: MPI.Intracomm) -> None:
    """Other numbers of elements at each rank."""
    rank, size = comm.Get_rank(), comm.Get_size()
    counts = [k + 1 for k in range(size)]
    displacements: Sequence[int] = np.cumsum([0, *counts[:-1]]).tolist()
    mine = np.full(rank + 1, float(rank))
    everything = np.zeros(sum(counts))
    comm.Gatherv(mine, [everything, counts] if rank == 0 else None)
    comm.Gatherv(mine, (everything, (counts, displacements)), root=0)
    comm.Scatterv((everything, counts, displacements, MPI.DOUBLE), mine)
    comm.Allgatherv([mine, mine.size], [everything, counts, displacements, MPI.DOUBLE])
    comm.Allgatherv(mine, (everything, counts))
    ones, zeros = [1] * size, [0] * size
    comm.Alltoallv((np.zeros(size), ones), (np.zeros(size), (ones, list(range(size)))))
    types = [MPI.DOUBLE] * size
    comm.Alltoallw((np.zeros(size), (ones, zeros), types), [np.zeros(size), (ones, zeros), types])


def nonblocking(comm: MPI.Intracomm) -> None:
    size = comm.Get_size()
    values, everything = np.zeros(2), np.zeros((size, 2))
    requests: list[MPI.Request] = [
        comm.Ibarrier(),
        comm.Ibcast(values, 0),
        comm.Iallgather(values, everything),
        comm.Iallreduce(MPI.IN_PLACE, np.zeros(2), MPI.SUM),
        comm.Igather(values, everything, root=0),
        comm.Iscatter(everything, np.zeros(2)),
        comm.Ialltoall(np.zeros(size), np.zeros(size)),
        comm.Ireduce(np.zeros(2), np.zeros(2), op=MPI.MIN, root=0),
        comm.Iscan(np.zeros(2), np.zeros(2)),
    ]
    MPI.Request.Waitall(requests)


def persistent(comm: MPI.Intracomm) -> None:
    values = np.zeros(2)
    request: MPI.Prequest = comm.Allreduce_init(MPI.IN_PLACE, values, MPI.SUM, MPI.INFO_NULL)
    barrier = comm.Barrier_init()
    for one in (request, barrier):
        one.Start()
        one.Wait()
        one.Free()


def operations(comm: MPI.Intracomm) -> Any:
    """Reduce by functions of the program."""

    def larger(inbuf: Buffer, inoutbuf: Buffer, datatype: MPI.Datatype) -> None:
        assert datatype == MPI.DOUBLE
        found = np.frombuffer(memoryview(inoutbuf), "d")  # type: ignore[arg-type]
        np.maximum(np.frombuffer(memoryview(inbuf), "d"), found, out=found)  # type: ignore[arg-type]

    def joined(a: str, b: str) -> str:
        return f"{a}{b}"

    op = MPI.Op.Create(larger, commute=True)
    values = np.full(2, float(comm.rank))
    comm.Allreduce(MPI.IN_PLACE, values, op)
    assert op.Is_commutative() and not op.is_predefined and values[0] == comm.size - 1
    op.Free()
    combine: Callable[[str, str], str] = joined
    text: str = comm.allreduce(str(comm.rank), op=combine)
    assert text == "".join(map(str, range(comm.size)))
    comm.reduce((float(comm.rank), comm.rank), op=MPI.MAXLOC, root=0)
    comm.scan(comm.rank, MPI.SUM)
    comm.exscan([1], joined)
    return comm.reduce(comm.rank, lambda a, b: a * b)


def objects(comm: MPI.Intracomm) -> list[Any]:
    settings: dict[str, int] = comm.bcast({"n": 3} if comm.rank == 0 else None, root=0)
    gathered = comm.gather(settings["n"])
    if gathered is not None:
        assert sum(gathered) == 3 * comm.size
    mine: int = comm.scatter(list(range(comm.size)) if comm.rank == 0 else None)
    assert mine == comm.rank
    comm.barrier()
    return comm.alltoall(comm.allgather(comm.rank))


def local(op: MPI.Op, a: BufSpec, b: BufSpec) -> None:
    op.Reduce_local(a, b)


def main() -> None:
    comm = MPI.COMM_WORLD
    for part in (buffers, vectors, nonblocking, persistent, operations):
        part(comm)
    assert objects(comm) == [comm.rank] * comm.size
    local(MPI.SUM, np.ones(2), np.ones(2))


if __name__ == "__main__":
    main()
