"""Accesses that are ordered, where the first was or was not complete when the second began."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: RMARaceBench sync-020
def put_barrier_load_unlock():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)  # 1: Put
    world.Barrier()
    if rank == 1:
        print(part[0])  # 2: load
    if rank == 0:
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-022
def put_unlock_barrier_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
    world.Barrier()
    if rank == 1:
        print(part[0])
    win.Free()


def put_flush_local_barrier_load():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush_local(1)
    world.Barrier()
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-013
def put_flush_all_barrier_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush_all()
    world.Barrier()
    if rank == 1:
        print(part[0])
    win.Unlock_all()
    win.Free()


def put_send_get():  # check: flush-missing n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        world.send("it is there", 2)
    if rank == 2:
        world.recv(source=0)
        win.Get(got, 1)  # 2: Get
    win.Unlock_all()
    win.Free()


def put_flush_send_get():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
        world.send("it is there", 2)
    if rank == 2:
        world.recv(source=0)
        win.Get(got, 1)
    win.Unlock_all()
    assert rank != 2 or got[0] == 1.0
    win.Free()


def put_by_turns():  # check: flush-missing n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    token = np.zeros(1, "i4")
    win.Lock_all()
    if rank > 0:
        world.Recv(token, rank - 1)
    win.Put(np.full(1, float(rank)), 0)  # 1: Put, 2: Put
    win.Flush_local(0)
    if rank + 1 < size:
        world.Send(token, rank + 1)
    win.Unlock_all()
    win.Free()


def put_and_flushed_by_turns():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    token = np.zeros(1, "i4")
    win.Lock_all()
    if rank > 0:
        world.Recv(token, rank - 1)
    win.Put(np.full(1, float(rank)), 0)
    win.Flush(0)
    if rank + 1 < size:
        world.Send(token, rank + 1)
    win.Unlock_all()
    win.Free()


def rput_wait_send_load():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        request = win.Rput(np.ones(1), 1)  # 1: Rput
        request.Wait()
        world.Send(np.zeros(1), 1)
    else:
        world.Recv(np.zeros(1), 0)
        win.Sync()
        assert part[0] is not None  # 2: load
    win.Unlock_all()
    win.Free()


def rput_wait_flush_send_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        request = win.Rput(np.ones(1), 1)
        request.Wait()
        win.Flush(1)
        world.Send(np.zeros(1), 1)
    else:
        world.Recv(np.zeros(1), 0)
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def get_barrier_store():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(8)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    world.Barrier()
    if rank == 1:
        part[:] = 1.0  # 2: store
    win.Unlock_all()
    win.Free()


def get_flush_barrier_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(8)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)
        win.Flush(1)
    world.Barrier()
    if rank == 1:
        part[:] = 1.0
    win.Unlock_all()
    win.Free()


def get_wait_send_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(8)
    win.Lock_all()
    if rank == 0:
        win.Rget(got, 1).Wait()
        win.Flush(1)
        world.Send(np.zeros(1), 1)
    else:
        world.Recv(np.zeros(1), 0)
        part[:] = 1.0
    win.Unlock_all()
    win.Free()


def wrong_rank_flushed():  # check: flush-missing n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(2)
    world.Barrier()
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def both_ranks_flushed():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Put(np.ones(1), 2)
        win.Flush(2)
        win.Flush(1)
    world.Barrier()
    if rank > 0:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def accumulate_allreduce_load():  # check: flush-missing n=2
    win = MPI.Win.Create(np.zeros(8), 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1), 1)  # 1: Accumulate
    world.allreduce(1)
    if rank == 1:
        win.Sync()
        print(float(part[0]))  # 2: load
    win.Unlock_all()
    win.Free()


def accumulate_flush_allreduce_load():  # check: clean n=2
    win = MPI.Win.Create(np.zeros(8), 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1), 1)
        win.Flush(1)
    world.allreduce(1)
    if rank == 1:
        win.Sync()
        print(float(part[0]))
    win.Unlock_all()
    win.Free()


def sync_is_no_flush():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Sync()
    world.Barrier()
    if rank == 1:
        win.Sync()
        print(part[:1])  # 2: load
    win.Unlock_all()
    win.Free()


def put_barrier_get_then_unlock():  # check: flush-missing n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)  # 1: Put
    world.Barrier()
    if rank == 2:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(got, 1)  # 2: Get
        win.Unlock(1)
    world.Barrier()
    if rank == 0:
        win.Unlock(1)
    win.Free()


def the_epoch_ends_in_between():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
    world.Barrier()
    if rank == 2:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(got, 1)
        win.Unlock(1)
        assert got[0] == 1.0
    win.Free()


def flushed_by_the_wrong_rank():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    world.Barrier()
    if rank == 1:
        win.Flush_all()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def freed_then_loaded():  # check: clean n=2
    memory = np.zeros(8)
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(8), 1)
    win.Unlock_all()
    win.Free()
    assert memory.sum() == (8 if rank == 1 else 0)
