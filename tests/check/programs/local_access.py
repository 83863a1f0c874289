"""Loads and stores of a window's owner beside operations of others."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: RMARaceBench conflict-022
def put_and_load():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    else:
        print(part[0])  # 2: load
    win.Fence()
    win.Free()


def put_and_load_of_a_neighbour():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1, 0)
    else:
        print(part[1])
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-023
def put_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    else:
        part[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-016
def get_and_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    else:
        print(part[0])
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-018
def get_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    else:
        part[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-027
def accumulate_and_load():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(1), 1)  # 1: Accumulate
    else:
        print(part.max())  # 2: load
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-028
def accumulate_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(1), 1)  # 1: Accumulate
    else:
        part += 1.0  # 2: store|load
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-032
def atomic_read_and_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, none, got = np.frombuffer(win, "f8"), np.zeros(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get_accumulate(none, got, 1, op=MPI.NO_OP)
    else:
        print(part[0])
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-033
def atomic_read_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, none, got = np.frombuffer(win, "f8"), np.zeros(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get_accumulate(none, got, 1, op=MPI.NO_OP)  # 1: Get_accumulate
    else:
        part[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-037
def fetch_and_op_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, old = np.frombuffer(win, "f8"), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Fetch_and_op(np.ones(1), old, 1)  # 1: Fetch_and_op
    else:
        part[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-038
def compare_and_swap_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, old = np.frombuffer(win, "i8"), np.zeros(1, "i8")
    win.Fence()
    if rank == 0:
        win.Compare_and_swap(np.ones(1, "i8"), np.zeros(1, "i8"), old, 1)  # 1: Compare_and_swap
    else:
        part[0] = 42  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench sync-014
def put_flush_load_without_barrier():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    world.Barrier()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush_all()
    else:
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-015
def put_unlock_all_barrier_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
    win.Unlock_all()
    world.Barrier()
    if rank == 1:
        assert part[0] == 1.0
    win.Free()


# from: RMARaceBench sync-016
def put_unlock_all_load():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    win.Unlock_all()
    if rank == 1:
        print(part[0])  # 2: load
    win.Free()


# from: RMARaceBench sync-027
def put_and_load_under_exclusive_locks():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock(1, MPI.LOCK_EXCLUSIVE)
    if rank == 0:
        win.Put(np.ones(1), 1)
    else:
        print(part[0])
    win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-021
def put_locked_and_load_not():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
    else:
        print(part[0])  # 2: load
    win.Free()


def put_and_load_under_shared_locks():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock(1, MPI.LOCK_SHARED)
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    else:
        print(part[0])  # 2: load
    win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-030
def load_before_the_message():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.Send(token, 1)
    else:
        print(part[0])  # 2: load
        world.Recv(token, 0)
    win.Free()


# from: RMARaceBench sync-031
def load_after_the_message():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Send(token, 1)
    else:
        world.Recv(token, 0)
        assert part[0] == 1.0
    win.Free()


# from: RMARaceBench sync-035
def load_in_the_exposure_epoch():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Start(world.group.Incl([1]))
        win.Put(np.ones(1), 1)  # 1: Put
        win.Complete()
    else:
        win.Post(world.group.Incl([0]))
        print(part[0])  # 2: load
        win.Wait()
    win.Free()


# from: RMARaceBench sync-034
def load_after_the_exposure_epoch():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Start(world.group.Incl([1]))
        win.Put(np.ones(1), 1)
        win.Complete()
    else:
        win.Post(world.group.Incl([0]))
        win.Wait()
        assert part[0] == 1.0
    win.Free()


# from: RMARaceBench sync-036
def polled_by_loads():  # check: contested local-access n=2
    win = MPI.Win.Create(np.zeros(1), 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    else:
        while part[0] != 1.0:  # 2: load
            win.Sync()
    win.Unlock_all()
    win.Free()


def own_put_then_load():  # check: local-access|flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    win.Put(np.ones(1), rank)  # 1: Put
    print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def own_put_flush_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    win.Put(np.ones(1), rank)
    win.Flush(rank)
    assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def store_fence_get():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    part[0] = rank
    win.Fence()
    win.Get(got, 1 - rank)
    win.Fence()
    part[0] = 5.0
    assert got[0] == 1 - rank
    win.Free()


def store_after_the_fence_of_a_get():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    win.Fence()
    part[0] = rank  # 2: store
    win.Get(got, 1 - rank)  # 1: Get
    win.Fence()
    win.Free()


def attached_array_loaded_too_early():  # check: local-access n=2
    memory = np.zeros(4)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Fence()
    win.Put(np.ones(1), 1 - rank, addresses[1 - rank])  # 1: Put
    total = memory.sum()  # 2: load
    win.Fence()
    assert total is not None
    win.Detach(memory)
    win.Free()


def attached_array_loaded_after_the_fence():  # check: clean n=2
    memory = np.zeros(4)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Fence()
    win.Put(np.ones(1), 1 - rank, addresses[1 - rank])
    win.Fence()
    assert memory.sum() == 1.0
    win.Detach(memory)
    win.Free()


# from: RMARaceBench sync-017
def put_and_load_in_lock_all():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    else:
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


# from: RMARaceBench conflict-034
def get_accumulate_and_store():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, old = np.frombuffer(win, "f8"), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get_accumulate(np.ones(1), old, 1)  # 1: Get_accumulate
    else:
        part[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


def own_part_put_while_it_is_put_to():  # check: local-access|target-conflict n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    win.Put(part[:4], 1 - rank, 3)  # 1: Put, 2: Put
    win.Fence()
    win.Free()


def own_part_filled_by_a_get_while_it_is_got_from():  # check: local-access|target-conflict n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    win.Get(part[:4], 1 - rank, 3)  # 1: Get, 2: Get
    win.Fence()
    win.Free()


def own_part_filled_by_a_get_from_beside():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    win.Get(part[:4], 1 - rank, 4)
    win.Fence()
    win.Free()
