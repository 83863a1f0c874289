"""Direct accesses of shared windows: their order, and Sync on both sides."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _of(win, owner):
    return np.frombuffer(win.Shared_query(owner)[0], "f8")


def _whole(win):
    return np.frombuffer(MPI.memory.fromaddress(MPI.Get_address(win.Shared_query(0)[0]), 64), "f8")


def store_barrier_load():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0  # 1: store
    world.Barrier()
    if rank == 1:
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def store_sync_barrier_sync_load():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0
    win.Sync()
    world.Barrier()
    win.Sync()
    assert first[0] == 1.0
    win.Unlock_all()
    win.Free()


def sync_of_the_writer_alone():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0  # 1: store
        win.Sync()
    world.Barrier()
    if rank == 1:
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def sync_of_the_reader_alone():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0  # 1: store
    world.Barrier()
    if rank == 1:
        win.Sync()
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def sync_before_the_store():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        win.Sync()
        first[0] = 1.0  # 1: store
    world.Barrier()
    if rank == 1:
        win.Sync()
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def sync_before_the_barrier():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0  # 1: store
    win.Sync()
    world.Barrier()
    if rank == 1:
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def store_message_load():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[:] = 1.0  # 1: store
        world.send(None, 1)
    else:
        world.recv(source=0)
        print(first.sum())  # 2: load
    win.Unlock_all()
    win.Free()


def store_sync_message_sync_load():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 0:
        first[:] = 1.0
        win.Sync()
        world.send(None, 1)
    else:
        world.recv(source=0)
        win.Sync()
        assert first.sum() == 8.0
    win.Unlock_all()
    win.Free()


def store_fence_load():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Fence()
    if rank == 0:
        first[0] = 1.0
    win.Fence()
    assert first[0] == 1.0
    win.Fence()
    win.Free()


def store_and_load_between_fences():  # check: shared-access n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Fence()
    if rank == 0:
        first[0] = 1.0  # 1: store
    else:
        print(first[0])  # 2: load
    win.Fence()
    win.Free()


def neighbours_between_fences():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Fence()
    first[rank] = rank
    win.Fence()
    assert first[0] == 0.0 and first[1] == 1.0
    win.Free()


def two_stores_between_fences():  # check: shared-access n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Fence()
    first[rank : rank + 2] = rank  # 1: store, 2: store
    win.Fence()
    win.Free()


def two_loads_between_fences():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Fence()
    print(first[:].sum())
    win.Fence()
    win.Free()


def put_beside_a_direct_load():  # check: shared-access n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 1:
        win.Put(np.ones(1), 0)  # 1: Put
    if rank == 2:
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def put_beside_a_direct_store():  # check: shared-access n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Fence()
    if rank == 1:
        win.Put(np.ones(1), 0)  # 1: Put
    if rank == 2:
        first[:1] = 2.0  # 2: store
    win.Fence()
    win.Free()


def put_flush_barrier_sync_load():  # check: clean n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock_all()
    if rank == 1:
        win.Put(np.ones(1), 0)
        win.Flush(0)
    win.Sync()
    world.Barrier()
    win.Sync()
    assert first[0] == 1.0
    win.Unlock_all()
    win.Free()


def stored_without_a_lock():  # check: shared-access n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    if rank == 0:
        first[0] = 1.0  # 1: store
    else:
        print(first.tolist())  # 2: load
    win.Free()


def stored_under_exclusive_locks():  # check: clean n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    if rank == 0:
        first[0] = 0.0
    win.Fence()
    win.Fence(MPI.MODE_NOSUCCEED)
    win.Lock(0, MPI.LOCK_EXCLUSIVE)
    first[0] += 1.0
    win.Unlock(0)
    world.Barrier()
    win.Lock(0, MPI.LOCK_SHARED)
    assert first[0] == size
    win.Unlock(0)
    win.Free()


def stored_under_shared_locks():  # check: shared-access n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first = _of(win, 0)
    win.Lock(0, MPI.LOCK_SHARED)
    if rank > 0:
        first[0] = rank  # 1: store, 2: store
    win.Unlock(0)
    win.Free()


def ghosts_loaded_too_early():  # check: shared-access n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    mine, right = _of(win, rank), _of(win, (rank + 1) % size)
    win.Lock_all()
    mine[:] = rank  # 1: store
    print(right[0])  # 2: load
    win.Unlock_all()
    win.Free()


def ghosts_loaded_after_a_barrier():  # check: clean n=3 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    mine, right = _of(win, rank), _of(win, (rank + 1) % size)
    win.Lock_all()
    for step in range(3):
        mine[:] = 10 * step + rank
        win.Sync()
        world.Barrier()
        win.Sync()
        assert right[0] == 10 * step + (rank + 1) % size
        win.Sync()
        world.Barrier()
        win.Sync()
    win.Unlock_all()
    win.Free()


def next_step_stored_without_a_barrier():  # check: shared-access n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    mine, right = _of(win, rank), _of(win, (rank + 1) % size)
    win.Lock_all()
    for step in range(2):
        mine[:] = 10 * step + rank  # 1: store
        win.Sync()
        world.Barrier()
        win.Sync()
        print(right[0])  # 2: load
    win.Unlock_all()
    win.Free()


def two_halves_in_turn():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    mine, right = _of(win, rank), _of(win, (rank + 1) % size)
    win.Lock_all()
    for step in range(4):
        half = slice(4 * (step % 2), 4 * (step % 2) + 4)
        mine[half] = 10 * step + rank
        win.Sync()
        world.Barrier()
        win.Sync()
        assert right[half].sum() == 4 * (10 * step + (rank + 1) % size)
    win.Unlock_all()
    win.Free()


def contiguous_parts():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(32, 8, comm=world)
    everything = _whole(win)
    win.Fence()
    everything[4 * rank : 4 * rank + 4] = rank
    win.Fence()
    assert everything.sum() == 4.0
    win.Free()


def a_whole_array_over_the_parts():  # check: shared-access n=2 near
    win = MPI.Win.Allocate_shared(32, 8, comm=world)
    everything = _whole(win)
    win.Fence()
    if rank == 0:
        everything[4] = 7.0  # 1: store
    else:
        print(everything[4:].mean())  # 2: load
    win.Fence()
    win.Free()


def post_and_wait_order_direct_stores():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    second, other = _of(win, 1), world.group.Incl([1 - rank])
    if rank == 0:
        win.Start(other)
        second[0] = 3.0
        win.Complete()
    else:
        win.Post(other)
        win.Wait()
        assert second[0] == 3.0
    win.Free()


def store_flag_load():  # check: winsync-missing n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first, value = _of(win, 0), np.zeros(1, "i8")
    if rank == 0:
        first[:] = 0.0
    win.Fence(MPI.MODE_NOSUCCEED)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0  # 1: store
        win.Accumulate(np.ones(1, "i8"), 0, 7)
        win.Flush(0)
    else:
        while value[0] == 0:
            win.Get_accumulate(np.zeros(1, "i8"), value, 0, 7, MPI.NO_OP)
            win.Flush(0)
        print(first[0])  # 2: load
    win.Unlock_all()
    win.Free()


def store_sync_flag_sync_load():  # check: clean n=2 near
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    first, value = _of(win, 0), np.zeros(1, "i8")
    if rank == 0:
        first[:] = 0.0
    win.Fence(MPI.MODE_NOSUCCEED)
    win.Lock_all()
    if rank == 0:
        first[0] = 1.0
        win.Sync()
        win.Accumulate(np.ones(1, "i8"), 0, 7)
        win.Flush(0)
    else:
        while value[0] == 0:
            win.Get_accumulate(np.zeros(1, "i8"), value, 0, 7, MPI.NO_OP)
            win.Flush(0)
        win.Sync()
        assert first[0] == 1.0
    win.Unlock_all()
    win.Free()
