"""Operations of two ranks on bytes of a third, or of one of them, in no order."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: RMARaceBench conflict-024
def two_puts():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.array([1.0]), 1)  # 1: Put
    if rank == 2:
        win.Put(np.array([2.0]), 1)  # 2: Put
    win.Fence()
    win.Free()


def two_puts_side_by_side():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.array([1.0]), 1, 0)
    if rank == 2:
        win.Put(np.array([2.0]), 1, 1)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-019
def get_and_put():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    if rank == 2:
        win.Put(np.array([2.0]), 1)  # 2: Put
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-017
def two_gets():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence()
    if rank != 1:
        win.Get(got, 1)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-020
def get_and_atomic_read():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    none, got = np.zeros(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    if rank == 2:
        win.Get_accumulate(none, got, 1, op=MPI.NO_OP)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-021
def get_and_accumulate():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    if rank == 2:
        win.Accumulate(np.ones(1), 1)  # 2: Accumulate
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-025
def put_and_atomic_read():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    none, got = np.zeros(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    if rank == 2:
        win.Get_accumulate(none, got, 1, op=MPI.NO_OP)  # 2: Get_accumulate
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-026
def put_and_accumulate():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
    if rank == 2:
        win.Accumulate(np.ones(1), 1)  # 2: Accumulate
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-029
def two_accumulates():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank != 1:
        win.Accumulate(np.ones(1), 1)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-030
def accumulate_and_atomic_read():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    none, got = np.zeros(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(1), 1)
    if rank == 2:
        win.Get_accumulate(none, got, 1, op=MPI.NO_OP)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-035
def two_get_accumulates():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    old = np.zeros(1)
    win.Fence()
    if rank != 1:
        win.Get_accumulate(np.ones(1), old, 1)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-036
def two_fetch_and_ops():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    old = np.zeros(1)
    win.Fence()
    if rank != 1:
        win.Fetch_and_op(np.ones(1), old, 1)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-039
def two_compare_and_swaps():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    old = np.zeros(1, "i8")
    win.Fence()
    if rank != 1:
        win.Compare_and_swap(np.full(1, rank), np.zeros(1, "i8"), old, 1)
    win.Fence()
    win.Free()


# from: RMARaceBench sync-018
def put_and_get_in_one_fence():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(2)
    win.Fence()
    if rank == 0:
        win.Put(np.ones(2), 1, 0)  # 1: Put
    if rank == 2:
        win.Get(got, 1, 1)  # 2: Get
    win.Fence()
    win.Free()


# from: RMARaceBench sync-019
def put_and_get_in_two_fences():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(2)
    win.Fence()
    if rank == 0:
        win.Put(np.ones(2), 1, 0)
    win.Fence()
    if rank == 2:
        win.Get(got, 1, 1)
    win.Fence()
    win.Free()


def puts_under_shared_locks():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock(0, MPI.LOCK_SHARED)
    if rank > 0:
        win.Put(np.full(1, float(rank)), 0)  # 1: Put, 2: Put
    win.Unlock(0)
    win.Free()


# from: RMARaceBench sync-028
def put_and_get_under_exclusive_locks():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_EXCLUSIVE)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
    if rank == 2:
        win.Lock(1, MPI.LOCK_EXCLUSIVE)
        win.Get(got, 1)
        win.Unlock(1)
    win.Free()


def exclusive_and_shared_locks():  # check: clean n=3
    win = MPI.Win.Create(np.zeros(1), 8, comm=world)
    got = np.zeros(1)
    win.Lock(0, MPI.LOCK_EXCLUSIVE if rank == 1 else MPI.LOCK_SHARED)
    if rank == 1:
        win.Put(np.ones(1), 0)
    else:
        win.Get(got, 0)
    win.Unlock(0)
    assert got[0] in (0.0, 1.0)
    win.Free()


def locks_of_two_windows():  # check: target-conflict n=2
    memory = np.zeros(8)
    first = MPI.Win.Create(memory, 8, comm=world)
    second = MPI.Win.Create(memory, 8, comm=world)
    mine = first if rank == 0 else second
    mine.Lock(0, MPI.LOCK_EXCLUSIVE)
    mine.Put(np.full(1, float(rank)), 0)  # 1: Put, 2: Put
    mine.Unlock(0)
    second.Free()
    first.Free()


def halves_of_two_windows():  # check: clean n=2
    memory = np.zeros(8)
    first = MPI.Win.Create(memory[:4], 8, comm=world)
    second = MPI.Win.Create(memory[4:], 8, comm=world)
    mine = first if rank == 0 else second
    mine.Lock(0, MPI.LOCK_EXCLUSIVE)
    mine.Put(np.full(4, float(rank)), 0)
    mine.Unlock(0)
    second.Free()
    first.Free()
    assert rank > 0 or memory.tolist() == [0.0] * 4 + [1.0] * 4


# from: RMARaceBench sync-033
def permission_sent_too_early():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    token = np.zeros(1, "i4")
    if rank == 0:
        world.Send(token, 2)
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
    if rank == 2:
        world.Recv(token, 0)
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)  # 2: Put
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-032
def permission_sent_after_unlock():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    token = np.zeros(1, "i4")
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Send(token, 2)
    if rank == 2:
        world.Recv(token, 0)
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
    win.Free()


def two_origins_of_one_post():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        win.Post(world.group.Incl([1, 2]))
        win.Wait()
    else:
        win.Start(world.group.Incl([0]))
        win.Put(np.full(2, float(rank)), 0, rank)  # 1: Put, 2: Put
        win.Complete()
    win.Free()


def two_origins_of_one_post_apart():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        win.Post(world.group.Incl([1, 2]))
        win.Wait()
    else:
        win.Start(world.group.Incl([0]))
        win.Put(np.full(2, float(rank)), 0, 2 * rank)
        win.Complete()
    win.Free()


def origins_of_two_posts():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        for origin in (1, 2):
            win.Post(world.group.Incl([origin]))
            win.Wait()
    else:
        win.Start(world.group.Incl([0]))
        win.Put(np.full(2, float(rank)), 0)
        win.Complete()
    win.Free()


def addresses_of_one_array():  # check: target-conflict n=3
    memory = np.zeros(4)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Lock_all()
    if rank > 0:
        win.Put(np.full(3, float(rank)), 0, addresses[0] + 8 * (rank - 1))  # 1: Put, 2: Put
    win.Unlock_all()
    world.Barrier()
    win.Detach(memory)
    win.Free()


def addresses_of_two_arrays():  # check: clean n=3
    pieces = np.zeros(4), np.zeros(4)
    win = MPI.Win.Create_dynamic(comm=world)
    for piece in pieces:
        win.Attach(piece)
    addresses = world.allgather([MPI.Get_address(piece) for piece in pieces])
    win.Lock_all()
    if rank > 0:
        win.Put(np.full(4, float(rank)), 0, addresses[0][rank - 1])
    win.Unlock_all()
    world.Barrier()
    for piece in pieces:
        win.Detach(piece)
    win.Free()


def rputs_of_two_ranks():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank > 0:
        request = win.Rput(np.full(1, float(rank)), 0)  # 1: Rput, 2: Rput
        request.Wait()
        win.Flush(0)
    world.Barrier()
    win.Unlock_all()
    win.Free()


def swap_and_put():  # check: target-conflict n=2
    win = MPI.Win.Create(np.zeros(1, "i8"), 8, comm=world)
    old = np.zeros(1, "i8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.zeros(1, "i8"), 0)  # 1: Put
    else:
        win.Compare_and_swap(np.ones(1, "i8"), np.zeros(1, "i8"), old, 0)  # 2: Compare_and_swap
    win.Unlock_all()
    win.Free()


# from: RMARaceBench conflict-031
def two_atomic_reads():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    none, got = np.zeros(1), np.zeros(1)
    win.Fence()
    if rank != 1:
        win.Get_accumulate(none, got, 1, op=MPI.NO_OP)
    win.Fence()
    win.Free()
