"""One job that uses all of MPI a little, for where each start of Python takes seconds.

Run it under mpiexec with GORMAPY_FABRIC=verbs. It prints a line for each part and ends with an error
at the first that is wrong. The random part compares with a serial model.
"""

import random
import sys
import time

import numpy as np

from gormapy import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size


def part(function):
    """Run one part on all ranks, and say how long it took."""
    start = time.monotonic()
    function()
    comm.Barrier()
    if rank == 0:
        print(f"ok  {time.monotonic() - start:6.2f} s  {function.__name__}", flush=True)


def point_to_point():
    for n in (0, 1, 1000, 4096, 20_000, 300_000, 3_000_000):
        out, into = np.full(n, rank + 1, "u1"), np.zeros(n, "u1")
        comm.Sendrecv(out, right, 1, into, left, 1)
        assert (into == left + 1).all()
        if n == 300_000:
            requests = [comm.Irecv(into, left, 2), comm.Issend(out, right, 2)]
            MPI.Request.Waitall(requests)
            column = MPI.BYTE.Create_vector(1000, 1, 300).Commit()
            into[:] = 0
            comm.Sendrecv([out, 1, column], right, 3, [into, 1, column], left, 3)
            assert (into[::300][:1000] == left + 1).all() and into.sum() == 1000 * (left + 1)
            column.Free()
    assert comm.sendrecv({"from": rank}, right, source=left) == {"from": left}


def collectives():
    for n in (1, 5000, 200_000):
        data = np.arange(n) * (rank + 1)
        total = np.empty_like(data)
        comm.Allreduce(data, total)
        assert (total == np.arange(n) * size * (size + 1) // 2).all()
        comm.Bcast(data, root=size - 1)
        assert (data == np.arange(n) * size).all()
    parts = np.empty(size, "i8")
    comm.Allgather(np.array([rank]), parts)
    assert parts.tolist() == list(range(size))
    assert comm.Split(rank % 2).allreduce(1) == len(range(rank % 2, size, 2))


def windows():
    flavours = {
        "create": lambda: MPI.Win.Create(np.zeros(50_000), 8, comm=comm),
        "allocate": lambda: MPI.Win.Allocate(400_000, 8, comm=comm),
        "shared": lambda: MPI.Win.Allocate_shared(400_000, 8, comm=comm),
    }
    for make in flavours.values():
        win = make()
        mine = np.frombuffer(win, "f8")
        one_way(win, mine)
        win.Free()
    memory = np.zeros(50_000)
    win = MPI.Win.Create_dynamic(comm=comm)
    win.Attach(memory)
    where = comm.allgather(MPI.Get_address(memory))
    win.Lock(right)
    win.Put(np.full(10, 7.0), right, where[right])
    win.Unlock(right)
    comm.Barrier()
    assert (memory[:10] == 7).all()
    win.Free()


def one_way(win, mine):
    win.Fence()
    win.Put(np.full(1000, rank + 1.0), right, 5)
    win.Put(np.full(40_000, rank + 2.0), right, 2000)
    win.Fence()
    assert (mine[5:1005] == left + 1).all() and (mine[2000:42_000] == left + 2).all()
    back = np.zeros(40_000)
    win.Lock_all()
    win.Get(back, right, 2000)
    win.Flush(right)
    assert (back == rank + 2).all()
    win.Unlock_all()
    comm.Barrier()
    win.Lock(right, MPI.LOCK_SHARED)
    win.Put(np.arange(50.0), right, (1500, 1, MPI.DOUBLE.Create_vector(50, 1, 9).Commit()))
    win.Flush(right)
    sparse = np.zeros(50)
    win.Rget(sparse, right, (1500, 1, MPI.DOUBLE.Create_vector(50, 1, 9).Commit())).Wait()
    assert (sparse == np.arange(50.0)).all()
    win.Unlock(right)
    comm.Barrier()
    mine[0] = mine[1] = 0
    comm.Barrier()
    old = np.zeros(1)
    for _ in range(10):
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(np.ones(1), old, 0, 0, MPI.SUM)
        win.Unlock(0)
    for _ in range(5):  # under an exclusive lock, by put and get
        win.Lock(0, MPI.LOCK_EXCLUSIVE)
        win.Get(old, 0, 1)
        win.Flush(0)
        win.Put(old + 1, 0, 1)
        win.Unlock(0)
    comm.Barrier()
    assert rank or mine[:2].tolist() == [10 * size, 5 * size]
    comm.Barrier()
    group = comm.group.Incl([right]), comm.group.Incl([left])
    win.Post(group[1])
    win.Start(group[0])
    win.Put(np.full(100, 9.0), right, 100)
    win.Complete()
    win.Wait()
    assert (mine[100:200] == 9).all()
    comm.Barrier()


def native_atomics():
    win = MPI.Win.Allocate(64, 8, comm=comm)
    words = np.frombuffer(win, "i8")
    old = np.zeros(1, "i8")
    for _ in range(20):
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(np.ones(1, "i8"), old, 0, 0, MPI.SUM)
        win.Accumulate(np.full(1, rank + 1), 0, 1, MPI.MAX)
        win.Unlock(0)
    swapped = 0
    while swapped < 5:  # a counter by compare-and-swap
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(np.zeros(1, "i8"), old, 0, 2, MPI.NO_OP)
        win.Flush(0)
        seen, got = old.copy(), np.zeros(1, "i8")
        win.Compare_and_swap(seen + 1, seen, got, 0, 2)
        win.Unlock(0)
        swapped += int(got[0] == seen[0])
    comm.Barrier()
    assert rank or words[:3].tolist() == [20 * size, size, 5 * size], words
    comm.Barrier()
    win.Free()


def passive_target():
    win = MPI.Win.Allocate(8 * size, 8, comm=comm)
    words = np.frombuffer(win, "i8")
    words[:] = 0
    comm.Barrier()
    if rank == 0:
        end = time.monotonic() + 60
        while not words[1:].all():  # computes, without a call of MPI
            assert time.monotonic() < end, "the puts wait for the target"
    else:
        win.Lock(0)
        win.Put(np.full(1, rank, "i8"), 0, rank)
        win.Unlock(0)
    comm.Barrier()
    win.Free()


def random_operations(count=300, words=256):
    """Disjoint parts for each origin, in random order and size, against a model that each origin keeps."""
    win = MPI.Win.Allocate(words * 8 * size, 8, comm=comm)
    rng = random.Random(rank)
    model = {target: np.zeros(words, "i8") for target in range(size)}
    base = rank * words
    win.Lock_all()
    kept = []
    for k in range(count):
        target = rng.randrange(size)
        at = rng.randrange(words)
        n = rng.randrange(1, words - at + 1)
        data = np.array([rng.randrange(1000) for _ in range(n)], "i8")
        what = rng.randrange(4)
        if what == 0:
            win.Flush(target)
            win.Put(data, target, base + at)
            model[target][at : at + n] = data
        elif what == 1:
            win.Flush(target)
            win.Accumulate(data, target, base + at, MPI.SUM)
            model[target][at : at + n] += data
        elif what == 2:
            into = np.zeros(n, "i8")
            win.Flush(target)
            win.Get(into, target, base + at)
            win.Flush(target)
            assert (into == model[target][at : at + n]).all(), f"operation {k} of rank {rank}"
        else:
            old = np.zeros(n, "i8")
            win.Flush(target)
            win.Get_accumulate(data, old, target, base + at, MPI.MAX)
            win.Flush(target)
            assert (old == model[target][at : at + n]).all(), f"operation {k} of rank {rank}"
            model[target][at : at + n] = np.maximum(old, data)
        kept.append(data)
        if k % 50 == 49:
            win.Flush_all()
            kept.clear()
    win.Unlock_all()
    win.Free()


if __name__ == "__main__":
    for function in (point_to_point, collectives, windows, native_atomics, passive_target, random_operations):
        part(function)
    sys.stdout.flush()
