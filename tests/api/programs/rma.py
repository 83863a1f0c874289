"""The programs of test_rma.py."""

import array
import gc
import mmap

import numpy as np
from rankside import fails, near, node_ranks, one_node, rank, refused, size, world

from gormapy import MPI


def windows_over_any_memory():
    memories = [
        np.zeros(8),
        np.array(0.0),
        array.array("d", [0.0] * 8),
        bytearray(64),
        mmap.mmap(-1, 4096),
        MPI.Alloc_mem(64),
    ]
    for memory in memories:
        win = MPI.Win.Create(memory, 8, comm=world)
        assert win.attrs == (MPI.Get_address(memory), memoryview(memory).nbytes, 8)
        assert win.flavor == MPI.WIN_FLAVOR_CREATE and win.model == MPI.WIN_UNIFIED
        assert win.group_size == size and win.group_rank == rank
        win.Fence()
        win.Put(np.array([rank + 1.0]), (rank + 1) % size)
        win.Fence()
        assert np.frombuffer(memory, "f8", 1)[0] == (rank - 1) % size + 1
        assert np.frombuffer(win.tomemory(), "f8", 1)[0] == (rank - 1) % size + 1
        win.Free()
        assert win == MPI.WIN_NULL and not win
    win = MPI.Win.Create(np.zeros(4) if rank == 0 else None, comm=world)
    win.Fence()
    if rank == size - 1:
        win.Put(np.arange(4.0), 0)
    win.Fence()
    win.Free()
    win = MPI.Win.Allocate(80, 8, comm=world)
    assert win.flavor == MPI.WIN_FLAVOR_ALLOCATE and not any(win.tomemory())
    memory = np.frombuffer(win, "f8")
    memory[:] = rank
    kept = win.tomemory()
    win.Free()
    assert kept[0] == memory.view("u1")[0]  # stays as long as something shows it
    if not one_node:
        refused(MPI.Exception, lambda: MPI.Win.Allocate_shared(16, 8, comm=world), "MPI_ERR_RMA_SHARED", "another node")
    node = near()
    win = MPI.Win.Allocate_shared(16, 8, comm=node)
    mine, unit = win.Shared_query(node.rank)
    assert unit == 8 and len(mine) == 16
    np.frombuffer(mine, "i8")[:] = rank
    win.Sync()
    world.Barrier()
    win.Sync()
    parts = [np.frombuffer(win.Shared_query(r)[0], "i8") for r in range(node.size)]
    assert [part.tolist() for part in parts] == [[r, r] for r in node_ranks]
    world.Barrier()
    win.Free()
    assert [part[1] for part in parts] == node_ranks  # others' parts stay as well


def fence_and_targets():
    nbytes = 4 * (2 * size + 4)
    for win in (MPI.Win.Create(bytearray(nbytes), 4, comm=world), MPI.Win.Allocate(nbytes, 4, comm=world)):
        mine = np.frombuffer(win.tomemory(), "i4")
        mine[:] = -1
        win.Fence(MPI.MODE_NOPRECEDE)
        for r in range(size):
            win.Put(np.array([rank, rank + 100], "i4"), r, 2 * rank)
        win.Fence()
        assert mine[: 2 * size].tolist() == [v for r in range(size) for v in (r, r + 100)]
        into = np.zeros(2, "i4")
        for target in (None, 0, [0], (0, 2), [0, 2, MPI.INT], (0, 2, "i4")):
            into[:] = -1
            win.Get(into, (rank + 1) % size, target)
            win.Fence()
            assert into.tolist() == [0, 100], (target, into)
        win.Get([into, 1, MPI.INT], (rank + 1) % size, (2 * size - 1, 1))
        win.Fence()
        assert into[0] == size - 1 + 100
        pairs = MPI.INT.Create_vector(size, 1, 2).Commit()
        column = np.zeros(size, "i4")
        win.Get(column, (rank + 1) % size, [0, 1, pairs])
        win.Fence()
        assert column.tolist() == list(range(size))
        win.Put(None, MPI.PROC_NULL)
        win.Fence(MPI.MODE_NOSUCCEED)
        win.Free()


def passive_target():
    for win in (MPI.Win.Create(np.zeros(16, "i8"), 8, comm=world), MPI.Win.Allocate(128, 8, comm=world)):
        for _ in range(50):
            win.Lock(0)
            value = np.zeros(1, "i8")
            win.Get(value, 0)
            win.Flush(0)
            win.Put(value + 1, 0)
            win.Unlock(0)
        world.Barrier()
        win.Lock(0, MPI.LOCK_SHARED)
        total = np.zeros(1, "i8")
        win.Get(total, 0)
        win.Unlock(0)
        assert total[0] == 50 * size
        win.Lock_all()
        one, old = np.ones(1, "i8"), np.zeros(1, "i8")
        seen = []
        for i in range(100):
            win.Fetch_and_op(one, old, 0, 1, MPI.SUM)
            win.Flush(0)
            seen.append(int(old[0]))
            win.Accumulate(one, i % size, 2)
            win.Accumulate([one, MPI.LONG], i % size, (3, 1, MPI.LONG), MPI.MAX)
        assert seen == sorted(set(seen))
        win.Flush_all()
        win.Flush_local(0)
        win.Flush_local_all()
        result = np.zeros(2, "i8")
        win.Get_accumulate(np.array([0, 0]), result, (rank + 1) % size, [2, 2, MPI.LONG], MPI.NO_OP)
        win.Unlock_all()
        world.Barrier()
        everything = sorted(x for part in world.allgather(seen) for x in part)
        assert everything == list(range(100 * size))
        mine = np.frombuffer(win.tomemory(), "i8")
        assert mine[3] == 1 and world.allreduce(int(mine[2])) == 100 * size
        # one winner
        win.Lock(0)
        win.Compare_and_swap(np.array([rank + 1]), np.array([0]), old, 0, 5)
        win.Unlock(0)
        winners = world.allgather(int(old[0]))
        assert winners.count(0) == 1 and all(w in (0, winners.index(0) + 1) for w in winners)
        win.Free()


def errors_say_what_there_is():
    win = MPI.Win.Allocate(64, 8, comm=world)
    a = np.zeros(4)
    with fails(MPI.ERR_RMA_SYNC):
        win.Put(a, 1)
    win.Lock_all()
    with fails(MPI.ERR_RMA_RANGE, "64"):
        win.Put(np.zeros(9), 1)
    with fails(MPI.ERR_RMA_RANGE):
        win.Get(a, 1, 5)
    with fails(MPI.ERR_RANK, "2"):
        win.Put(a, 2)
    for call, kind in [
        (lambda: win.Put(a, target=1), TypeError),
        (lambda: win.Put(a, 1, (1, 2, 3, 4)), ValueError),
        (lambda: win.Put(a, 1, "x"), ValueError),
        (lambda: win.Get(b"abc", 1), BufferError),
        (lambda: win.Fetch_and_op(a, a, 1), ValueError),
        (lambda: win.Fetch_and_op(np.zeros(1), np.zeros(1, int), 1), ValueError),
    ]:
        try:
            call()
        except kind as error:
            assert kind is not TypeError or "target_rank" in str(error)
        else:
            raise AssertionError(kind)
    win.Unlock_all()
    with fails(MPI.ERR_LOCKTYPE):
        win.Lock(0, 77)
    with fails(MPI.ERR_RMA_SYNC):
        win.Unlock(0)
    win.Free()
    with fails(MPI.ERR_WIN):
        win.Fence()


def a_window_that_is_dropped_keeps_its_memory():
    def make():
        win = MPI.Win.Create(np.zeros(1 << 16), 8, comm=world)
        win.Lock_all()
        return MPI.Win(win) if rank == 0 else None  # rank 1 lets go of everything

    win = make()
    gc.collect()
    filler = [np.zeros(1 << 16) for _ in range(20)]
    if rank == 0:
        win.Put(np.ones(1 << 16), 1)
        win.Flush(1)
    world.Barrier()
    assert not any(part.any() for part in filler)
