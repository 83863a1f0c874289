"""Wrong calls, on lines that end with a comment that says so: a type checker has to report these, and no others."""

from __future__ import annotations

import numpy as np

from gormapy import MPI
from gormapy.futures import MPIPoolExecutor
from gormapy.util.pool import ThreadPool
from gormapy.util.sync import Counter


def messages(comm: MPI.Intracomm) -> None:
    values = np.zeros(3)
    comm.Send(values, dest="1")  # wrong
    comm.Send(3, 1)  # wrong
    comm.Send(values)  # wrong
    comm.Send(values, 1, 0, 0)  # wrong
    comm.Send((values, 3, 4.5), 1)  # wrong
    comm.Recv(values, source=0, tag=0, status=True)  # wrong
    comm.Recv(values, rank=0)  # wrong
    comm.Recv_into(values)  # wrong
    request: MPI.Message = comm.Irecv(values)  # wrong
    request.Recv(values)
    print(comm.Isend(values, 1).wait("all"))  # wrong
    MPI.Request.Waitall(comm.Isend(values, 1))  # wrong
    assert comm.Mprobe().Recv(values) is None or comm.Improbe().recv()  # wrong


def collectives(comm: MPI.Intracomm) -> None:
    comm.Allreduce(np.zeros(3), np.zeros(3), op="sum")  # wrong
    comm.Bcast(None)  # wrong
    comm.Allgather(np.zeros(3), None)  # wrong
    comm.Alltoallw(np.zeros(3), np.zeros(3))  # wrong
    comm.Barrier(0)  # wrong
    comm.allreduce(1, op=3)  # wrong
    comm.Gatherv(np.zeros(3), (np.zeros(3), "counts", [0]))  # wrong


def windows(comm: MPI.Intracomm) -> None:
    win = MPI.Win.Allocate(8, comm=comm.group)  # wrong
    win.Put(np.zeros(1), 0, "somewhere")  # wrong
    win.Put(np.zeros(1), 0, (0, 1, MPI.DOUBLE, 4))  # wrong
    win.Accumulate(np.zeros(1), 0, 0, MPI.DOUBLE)  # wrong
    win.Lock("all")  # wrong
    _memory, _unit, _more = win.Shared_query(0)  # wrong
    win.Start(comm)  # wrong


def others(comm: MPI.Intracomm, cart: MPI.Cartcomm) -> None:
    comm.Get_cart_rank([0])  # wrong
    comm.Split("red")  # wrong
    cart.Shift(0)  # wrong
    MPI.Datatype.Create_struct([1], [0], [int])  # wrong
    MPI.DOUBLE.Create_vector(1, 2)  # wrong
    MPI.File.Open("name", comm)  # wrong
    MPI.Info.Create()["a"] = 1  # wrong
    print(MPI.NOTHING)  # wrong
    number: str = MPI.Get_processor_name() or MPI.VERSION  # wrong
    size: str = comm.size  # wrong
    print(number, size, comm.colour)  # wrong


def square(x: int) -> int:
    return x * x


def tasks(executor: MPIPoolExecutor, pool: ThreadPool) -> None:
    executor.submit(square, "a")  # wrong
    text: str = executor.submit(square, 1).result()  # wrong
    texts: list[str] = pool.map(square, [1])  # wrong
    pool.map(square, ["a"])  # wrong
    counter = Counter(comm=MPI.DOUBLE)  # wrong
    print(text, texts, counter.next("a"))  # wrong
