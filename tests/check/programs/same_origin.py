"""Operations of one rank on the same bytes of a target."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: RMARaceBench sync-024
def put_then_get():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, got = np.ones(1), np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(mine, 1)  # 1: Put
        win.Get(got, 1)  # 2: Get
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-023
def put_flush_get():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, got = np.ones(1), np.zeros(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(mine, 1)
        win.Flush(1)
        win.Get(got, 1)
        win.Unlock(1)
        assert got[0] == 1.0
    win.Free()


# from: RMARaceBench sync-025
def put_flush_local_get():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    value = np.ones(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(value, 1)  # 1: Put
        win.Flush_local(1)
        win.Get(value, 1)  # 2: Get
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-026
def get_flush_local_get():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    value = np.ones(1)
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(value, 1)
        win.Flush_local(1)
        win.Get(value, 1)
        win.Unlock(1)
    win.Free()


def two_puts():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.array([1.0]), 1)  # 1: Put
        win.Put(np.array([2.0]), 1)  # 2: Put
    win.Fence()
    win.Free()


def two_puts_two_epochs():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.array([1.0]), 1)
    win.Fence()
    if rank == 0:
        win.Put(np.array([2.0]), 1)
    win.Fence()
    win.Free()


def two_puts_to_neighbours():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.array([1.0]), 1, 0)
        win.Put(np.array([2.0]), 1, 1)
    win.Fence()
    win.Free()


def puts_to_two_ranks():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        for target in range(size):
            win.Put(np.array([1.0]), target)
    win.Fence()
    win.Free()


def puts_that_overlap_by_one():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.arange(8.0)
    win.Lock(1)
    if rank == 0:
        win.Put(mine[:4], 1, 0)  # 1: Put
        win.Put(mine[3:], 1, 3)  # 2: Put
    win.Unlock(1)
    win.Free()


def get_then_put():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, mine = np.zeros(1), np.ones(1)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
        win.Put(mine, 1)  # 2: Put
    win.Unlock_all()
    win.Free()


def get_flush_put():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, mine = np.zeros(1), np.ones(1)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)
        win.Flush(1)
        win.Put(mine, 1)
    win.Unlock_all()
    win.Free()


def put_then_accumulate():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Put(np.zeros(1), 1)  # 1: Put
        win.Accumulate(np.ones(1), 1)  # 2: Accumulate
    win.Unlock_all()
    win.Free()


def replace_then_accumulate_apart():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Put(np.zeros(1), 1, 0)
        win.Accumulate(np.ones(1), 1, 1)
        win.Accumulate(np.ones(1), 1, 1)
    win.Unlock_all()
    win.Free()


def accumulate_then_atomic_read():  # check: clean n=2
    win = MPI.Win.Create(np.zeros(8), 8, comm=world)
    one, old = np.ones(1), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(one, 1)
        win.Get_accumulate(one, old, 1, op=MPI.NO_OP)
        win.Flush(1)
        assert old[0] == 1.0
    win.Unlock_all()
    win.Free()


def accumulate_then_get():  # check: same-origin-order n=2
    win = MPI.Win.Create(np.zeros(8), 8, comm=world)
    one, old = np.ones(1), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(one, 1)  # 1: Accumulate
        win.Get(old, 1)  # 2: Get
    win.Unlock_all()
    win.Free()


def rput_wait_rput():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Lock_all()
    if rank == 0:
        win.Rput(mine, 1).Wait()  # 1: Rput
        mine[0] = 2.0
        win.Rput(mine, 1).Wait()  # 2: Rput
    win.Unlock_all()
    win.Free()


def rput_flush_rput():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Lock_all()
    if rank == 0:
        win.Rput(mine, 1).Wait()
        win.Flush(1)
        mine[0] = 2.0
        win.Rput(mine, 1).Wait()
    win.Unlock_all()
    win.Free()


def one_slot_in_a_loop():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        for step in range(3):
            win.Put(np.array([float(step)]), 1)  # 1: Put, 2: Put
            win.Flush_local(1)
    win.Unlock_all()
    win.Free()


def one_slot_in_a_flushed_loop():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        for step in range(3):
            win.Put(np.array([float(step)]), 1)
            win.Flush(1)
    win.Unlock_all()
    win.Free()


def a_slot_for_each_turn():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        for step in range(8):
            win.Put(np.array([float(step)]), 1, step)
            win.Flush_local(1)
    win.Unlock_all()
    win.Free()


def puts_in_two_started_epochs():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    other = world.group.Incl([1 - rank])
    for _ in range(2):
        if rank == 0:
            win.Start(other)
            win.Put(np.array([1.0]), 1)
            win.Complete()
        else:
            win.Post(other)
            win.Wait()
    win.Free()


def puts_in_one_started_epoch():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    other = world.group.Incl([1 - rank])
    if rank == 0:
        win.Start(other)
        for _ in range(2):
            win.Put(np.array([1.0]), 1)  # 1: Put, 2: Put
        win.Complete()
    else:
        win.Post(other)
        win.Wait()
    win.Free()


def the_flush_is_of_another_window():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    other = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    other.Lock_all()
    if rank == 0:
        win.Put(np.array([1.0]), 1)  # 1: Put
        other.Flush(1)
        win.Put(np.array([2.0]), 1)  # 2: Put
    other.Unlock_all()
    win.Unlock_all()
    other.Free()
    win.Free()


def one_place_of_two_windows():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    other = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    other.Lock_all()
    if rank == 0:
        win.Put(np.array([1.0]), 1)
        other.Put(np.array([2.0]), 1)
    other.Unlock_all()
    win.Unlock_all()
    other.Free()
    win.Free()


def get_flush_local_put():  # check: contested same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, mine = np.zeros(1), np.ones(1)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
        win.Flush_local(1)
        win.Put(mine, 1)  # 2: Put
    win.Unlock_all()
    win.Free()


def sum_then_product_of_one_origin():  # check: contested same-origin-order|accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1), 1, op=MPI.SUM)  # 1: Accumulate
        win.Accumulate(np.ones(1), 1, op=MPI.PROD)  # 2: Accumulate
    win.Unlock_all()
    win.Free()
