"""A program for any number of ranks: windows, messages, collectives, objects, datatypes and files."""

import os
import tempfile

import numpy as np

from gormapy import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def windows():
    for make in (
        lambda: MPI.Win.Allocate(80, 8, comm=comm),
        lambda: MPI.Win.Create(np.zeros(10, "l"), 8, comm=comm),
        lambda: MPI.Win.Allocate_shared(80, 8, comm=comm),
    ):
        win = make()
        memory = np.frombuffer(win.tomemory(), "l")
        win.Fence()
        win.Put(np.full(10, rank), right)
        win.Fence()
        assert (memory == left).all(), memory
        win.Fence()
        one, before = np.ones(1, "l"), np.empty(1, "l")
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(one, before, 0, 3)
        win.Accumulate(one, 0, 4)
        win.Flush(0)
        win.Unlock(0)
        comm.Barrier()
        if rank == 0:
            win.Lock(0)
            assert memory[3] == memory[4] == left + size, memory
            win.Unlock(0)
        got = np.empty(10, "l")
        win.Lock_all()
        win.Rget(got, right).Wait()
        win.Unlock_all()
        assert got[0] == rank
        del memory
        comm.Barrier()
        win.Free()


def messages():
    for n in (1, 1000, 1_000_000):
        send, receive = np.full(n, rank, "d"), np.empty(n, "d")
        status = MPI.Status()
        comm.Sendrecv(send, right, 7, receive, left, 7, status)
        assert (receive == left).all() and status.Get_count(MPI.DOUBLE) == n
        requests = [comm.Irecv(receive, left), comm.Isend(send, right)]
        MPI.Request.Waitall(requests)
        assert (receive == left).all()


def objects():
    assert comm.sendrecv({"from": rank}, right, source=left) == {"from": left}
    assert comm.allgather((rank, "x" * 10000)) == [(r, "x" * 10000) for r in range(size)]
    assert comm.bcast([1, 2] if rank == 0 else None) == [1, 2]
    try:
        comm.send(None, size + 5)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK
    else:
        raise AssertionError("a rank that there is not")


def collectives():
    total = np.empty(1000, "d")
    comm.Allreduce(np.full(1000, rank + 1.0), total)
    assert (total == size * (size + 1) / 2).all()
    parts = np.empty((size, 3), "i")
    comm.Allgather(np.full(3, rank, "i"), parts)
    assert (parts == np.arange(size)[:, None]).all()
    half = comm.Split(rank % 2)
    assert half.allreduce(1) == len(range(rank % 2, size, 2))
    half.Free()


def datatypes():
    column = MPI.DOUBLE.Create_vector(4, 1, 5).Commit()
    matrix, got = np.arange(20.0).reshape(4, 5), np.empty(4)
    comm.Sendrecv([matrix, 1, column], right, 0, got, left, 0)
    assert (got == [0, 5, 10, 15]).all()
    column.Free()


def files():
    name = comm.bcast(tempfile.mktemp() if rank == 0 else None)
    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_at_all(rank * 80, np.full(10, rank, "l"))
    file.Sync()
    comm.Barrier()
    got = np.empty(10, "l")
    file.Read_at_all(right * 80, got)
    assert (got == right).all()
    file.Close()
    comm.Barrier()
    if rank == 0:
        os.unlink(name)


for part in (windows, messages, objects, collectives, datatypes, files):
    part()
    comm.Barrier()
if rank == 0:
    print("all of", size, "passed")
