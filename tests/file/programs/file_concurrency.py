"""The programs of test_file_concurrency.py."""

import os
import threading
import time

import numpy as np
from rankside import interrupted, rank, size, world

from gormapy import MPI

RW = MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE


def atomic_mode():
    f = MPI.File.Open(world, "a", RW)
    f.Set_atomicity(True)
    n = 40000
    f.Set_view(
        0, MPI.LONG, MPI.LONG.Create_vector(n, 1, 3).Create_resized(0, 24 * n).Commit()
    )  # many system calls each
    f.Write_at_all(0, np.full(n, -1))
    block = np.empty(n, "l")
    end = time.monotonic() + 2
    for k in range(1000):
        if time.monotonic() > end:
            break
        if rank < 2:
            f.Write_at(0, np.full(n, 1000 * k + rank))
        else:
            f.Read_at(0, block)
            assert (block == block[0]).all(), np.unique(block)
    requests = [f.Iwrite_at(0, np.full(n, 10 * rank + k)) for k in range(3)]
    requests.append(f.Iread_at(0, block))
    MPI.Request.Waitall(requests)
    assert (block == block[0]).all(), np.unique(block)
    f.Write_at_all(0, np.full(n, rank))  # overlapping collective writes too
    f.Read_at_all(0, block)
    assert (block == block[0]).all(), np.unique(block)
    f.Close()


def nonblocking_collectives_keep_their_order():
    f = MPI.File.Open(world, "a", RW)
    f.Set_view(8 * rank, MPI.LONG, MPI.LONG.Create_vector(500, 1, size).Create_resized(0, 4000 * size).Commit())
    for turn in range(20):
        buffers = [np.full(500, 100 * turn + k) for k in range(4)]
        requests = [f.Iwrite_at_all(0, b) for b in buffers]
        back = np.empty(500, "l")
        if turn % 2:
            requests.append(f.Iread_at_all(0, back))
        else:
            f.Read_at_all(0, back)  # a blocking one comes after them too
        if rank % 2:
            requests.reverse()
        MPI.Request.Waitall(requests)
        assert (back == 100 * turn + 3).all(), (turn, back)
        world.Barrier()
    last = f.Iwrite_at_all(0, np.zeros(500, "l"))
    f.Close()  # waits for it
    last.Wait()


def threads():
    f = MPI.File.Open(world, "a", RW)
    wrong = []

    def work(k):
        rng = np.random.default_rng(k)
        base = (rank * 4 + k) << 16
        for turn in range(60):
            data = rng.integers(0, 256, int(rng.integers(1, 60000)), "u1")
            f.Iwrite_at(base, data).Wait() if turn % 2 else f.Write_at(base, data)
            back = np.empty_like(data)
            f.Read_at(base, back) if turn % 3 else f.Iread_at(base, back).Wait()
            if not (back == data).all():
                wrong.append((k, turn))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong, wrong
    f.Close()


def shared_pointer():
    f = MPI.File.Open(world, "a", MPI.MODE_WRONLY | MPI.MODE_CREATE | MPI.MODE_SEQUENTIAL)
    record = MPI.INT.Create_contiguous(3).Commit()
    f.Set_view(0, record, record)
    for k in range(200):
        f.Write_shared([np.array([rank, k, rank ^ k], "i"), 1, record])
    f.Close()
    rows = np.fromfile("a", "i").reshape(-1, 3)
    assert sorted(map(tuple, rows.tolist())) == sorted((r, k, r ^ k) for r in range(size) for k in range(200))
    for r in range(size):
        assert (np.diff(rows[rows[:, 0] == r, 1]) > 0).all()
    world.Barrier()
    if rank == 0:
        MPI.File.Delete("a")


def long_access_is_interrupted():
    f = MPI.File.Open(world, "/dev/null", MPI.MODE_WRONLY)
    many = MPI.BYTE.Create_vector(1000, 1, 2).Commit()
    f.Set_view(0, MPI.BYTE, many)
    with interrupted(after=0.3):
        f.Write_at(0, np.zeros(100_000_000, "u1"))
    f.Set_view()
    f.Write_at(0, np.zeros(10, "u1"))
    f.Close()


def fork():
    f = MPI.File.Open(world, "a", RW)
    child = os.fork()
    if child == 0:
        del f
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    f.Write_at_all(rank, np.ones(1, "u1"))
    assert f.Get_size() == 2
    f.Close()
