"""Buffers that a pending Get, or fetch, still fills."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: RMARaceBench conflict-004
def get_then_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
        print(got[0])  # 2: load
    win.Fence()
    win.Free()


# from: RMARaceBench sync-002
def get_fence_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    win.Fence()
    print(got[0])
    win.Free()


# from: RMARaceBench conflict-005
def get_then_store():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
        got[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-006
def get_then_put_of_it():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(mine, 1, 0)  # 1: Get
        win.Put(mine, 1, 4)  # 2: Put
    win.Fence()
    win.Free()


def get_flush_put_of_it():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Get(mine, 1, 0)
        win.Flush_local(1)
        win.Put(mine, 1, 4)
    win.Unlock_all()
    win.Free()


# from: RMARaceBench conflict-007
def two_gets_into_one_place():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(2)
    win.Fence()
    if rank == 0:
        win.Get(got, 1, 0)  # 1: Get
        win.Get(got[1:], 1, 4)  # 2: Get
    win.Fence()
    win.Free()


def two_gets_into_neighbours():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(2)
    win.Fence()
    if rank == 0:
        win.Get(got[:1], 1, 0)
        win.Get(got[1:], 1, 4)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-011
def get_accumulate_then_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    one, old = np.ones(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get_accumulate(one, old, 1)  # 1: Get_accumulate
        total = one + old  # 2: load
        assert total.size == 1
    win.Fence()
    win.Free()


def get_accumulate_load_of_the_origin():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    one, old = np.ones(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get_accumulate(one, old, 1)
        total = one + one
        assert total[0] == 2
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-013
def fetch_and_op_then_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    one, old = np.ones(1, "i8"), np.zeros(1, "i8")
    win.Lock(1, MPI.LOCK_SHARED)
    win.Fetch_and_op(one, old, 1, rank)  # 1: Fetch_and_op
    ticket = int(old[0])  # 2: load
    win.Unlock(1)
    assert ticket is not None
    win.Free()


def fetch_and_op_flush_load():  # check: clean n=2
    memory = np.zeros(1, "i8")
    win = MPI.Win.Create(memory, 8, comm=world)
    one, old = np.ones(1, "i8"), np.zeros(1, "i8")
    win.Lock(1, MPI.LOCK_SHARED)
    win.Fetch_and_op(one, old, 1)
    win.Flush(1)
    ticket = int(old[0])
    win.Unlock(1)
    assert 0 <= ticket < size
    win.Free()


# from: RMARaceBench conflict-015
def compare_and_swap_then_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    new, expected, old = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    win.Lock_all()
    if rank == 0:
        win.Compare_and_swap(new, expected, old, 1)  # 1: Compare_and_swap
        if old[0] == 0:  # 2: load
            print("swapped")
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-001
def get_load_before_the_fence():  # check: result-early n=2
    memory = np.arange(4.0)
    win = MPI.Win.Create(memory, 8, comm=world)
    got = np.zeros(4)
    win.Fence()
    win.Get(got, (rank + 1) % size)  # 1: Get
    total = got.sum()  # 2: load
    win.Fence()
    assert total is not None
    win.Free()


# from: RMARaceBench sync-003
def get_load_before_unlock():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(got, 1)  # 1: Get
        print(got)  # 2: load
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-004
def get_unlock_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(got, 1)
        win.Unlock(1)
        print(got)
    win.Free()


# from: RMARaceBench sync-005
def get_load_before_flush():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(got, 1)  # 1: Get
        value = got.item()  # 2: load
        win.Flush(1)
        print(value)
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-006
def get_flush_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(got, 1)
        win.Flush(1)
        print(got.item())
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-007
def get_load_before_flush_local_all():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
        values = got.tolist()  # 2: load
        win.Flush_local_all()
        print(values)
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-008
def get_flush_local_all_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)
        win.Flush_local_all()
        print(got.tolist())
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-009
def rget_then_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        request = win.Rget(got, 1)  # 1: Rget
        value = got[0]  # 2: load
        request.Wait()
        print(value)
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-010
def rget_wait_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Lock_all()
    if rank == 0:
        request = win.Rget(got, 1)
        request.Wait()
        print(got[0])
    win.Unlock_all()
    win.Free()


# from: RMARaceBench sync-011
def get_load_before_complete():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Start(world.group.Incl([1]))
        win.Get(got, 1)  # 1: Get
        print(got[0])  # 2: load
        win.Complete()
    else:
        win.Post(world.group.Incl([0]))
        win.Wait()
    win.Free()


# from: RMARaceBench sync-012
def get_complete_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Start(world.group.Incl([1]))
        win.Get(got, 1)
        win.Complete()
        print(got[0])
    else:
        win.Post(world.group.Incl([0]))
        win.Wait()
    win.Free()


def rget_test_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(4)
    win.Lock_all()
    if rank == 0:
        request = win.Rget(got, 1)
        while not request.Test():
            pass
        print(got[0])
    win.Unlock_all()
    win.Free()


def rget_waitany_load_of_all():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros((2, 4))
    win.Lock_all()
    if rank == 0:
        first = win.Rget(got[0], 1, 0)
        second = win.Rget(got[1], 1, 4)  # 1: Rget
        first.Wait()
        print(got.sum())  # 2: load
        second.Wait()
    win.Unlock_all()
    win.Free()


def rget_waitany_load_of_what_came():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros((2, 4))
    win.Lock_all()
    if rank == 0:
        requests = [win.Rget(got[i], 1, 4 * i) for i in range(2)]
        for _ in requests:
            i = MPI.Request.Waitany(requests)
            print(got[i].sum())
    win.Unlock_all()
    win.Free()


def sent_before_it_came():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(4)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
        world.Send(got, 1)  # 2: Send|load
    else:
        world.Recv(got, 0)
    win.Unlock_all()
    win.Free()


def the_other_target_flushed():  # check: result-early n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(3)
    win.Lock_all()
    if rank == 0:
        win.Get(got[1:2], 1)
        win.Get(got[2:3], 2)  # 1: Get
        win.Flush(1)
        print(got[2])  # 2: load
    win.Unlock_all()
    win.Free()


def the_right_target_flushed():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(3)
    win.Lock_all()
    if rank == 0:
        win.Get(got[1:2], 1)
        win.Get(got[2:3], 2)
        win.Flush(1)
        print(got[1])
    win.Unlock_all()
    win.Free()


def loop_loads_what_comes_next():  # check: clean n=2
    win = MPI.Win.Create(np.arange(10.0), 8, comm=world)
    buffers = np.zeros((2, 1))
    win.Lock_all()
    if rank == 0:
        request, total = win.Rget(buffers[0], 1, 0), 0.0
        for step in range(10):
            request.Wait()
            if step < 9:
                request = win.Rget(buffers[(step + 1) % 2], 1, step + 1)
            total += buffers[step % 2, 0]
        assert total == 45
    win.Unlock_all()
    win.Free()


def loop_loads_before_it_comes():  # check: result-early n=2
    win = MPI.Win.Create(np.arange(10.0), 8, comm=world)
    buffers = np.zeros((2, 1))
    win.Lock_all()
    if rank == 0:
        request, total = win.Rget(buffers[0], 1, 0), 0.0
        for step in range(9):
            request.Wait()
            request = win.Rget(buffers[(step + 1) % 2], 1, step + 1)  # 1: Rget
            total += buffers[(step + 1) % 2, 0]  # 2: load
        request.Wait()
    win.Unlock_all()
    win.Free()
