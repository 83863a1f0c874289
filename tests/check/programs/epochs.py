"""Accesses without an epoch that fits, and epochs that stay open."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


MINE = np.ones(1)


def _allocated():
    return MPI.Win.Allocate(64, 8, comm=world)


def _other():
    return world.group.Incl([1 - rank])


# from: MPI-CorrBench MissingCall-MPIWinFence-3
def put_without_an_epoch():  # check: epoch-missing n=2 raises
    win = _allocated()
    if rank == 0:
        win.Put(MINE, 1)  # 1: Put
    world.Barrier()
    win.Free()


def put_without_an_epoch_caught():  # check: epoch-missing n=2 raises caught
    win = _allocated()
    if rank == 0:
        try:
            win.Put(MINE, 1)  # 1: Put
        except MPI.Exception as error:
            print(error)
    win.Free()


# from: MPI-CorrBench MisplacedCall-MPIWinFence-1
def put_before_the_first_fence():  # check: epoch-missing n=2 raises caught
    win = _allocated()
    if rank == 0:
        try:
            win.Put(MINE, 1)  # 1: Put
        except MPI.Exception as error:
            print(error)
    win.Fence()
    win.Fence()
    win.Free()


def put_after_the_first_fence():  # check: clean n=2
    win = _allocated()
    win.Fence()
    if rank == 0:
        win.Put(MINE, 1)
    win.Fence()
    win.Free()


def get_after_unlock():  # check: epoch-missing n=2 raises caught
    win, got = _allocated(), np.zeros(1)
    if rank == 0:
        win.Lock(1)
        win.Put(MINE, 1)
        win.Unlock(1)
        try:
            win.Get(got, 1)  # 1: Get
        except MPI.Exception as error:
            print(error)
    win.Free()


def get_before_unlock():  # check: clean n=2
    win, got = _allocated(), np.zeros(1)
    if rank == 0:
        win.Lock(1)
        win.Put(MINE, 1, 1)
        win.Get(got, 1)
        win.Unlock(1)
    win.Free()


def another_rank_locked():  # check: epoch-missing n=3 raises caught
    win = _allocated()
    if rank == 0:
        win.Lock(1)
        try:
            win.Put(MINE, 2)  # 1: Put
        except MPI.Exception as error:
            print(error)
        win.Unlock(1)
    win.Free()


def both_ranks_locked():  # check: clean n=3
    win = _allocated()
    if rank == 0:
        win.Lock(1)
        win.Lock(2)
        win.Put(MINE, 2)
        win.Unlock(1)
        win.Unlock(2)
    win.Free()


def not_in_the_started_group():  # check: epoch-missing n=3 raises caught
    win = _allocated()
    if rank == 0:
        win.Start(world.group.Incl([1]))
        try:
            win.Accumulate(MINE, 2)  # 1: Accumulate
        except MPI.Exception as error:
            print(error)
        win.Complete()
    elif rank == 1:
        win.Post(world.group.Incl([0]))
        win.Wait()
    win.Free()


def in_the_started_group():  # check: clean n=3
    win = _allocated()
    if rank == 0:
        win.Start(world.group.Incl([1, 2]))
        win.Accumulate(MINE, 2)
        win.Complete()
    else:
        win.Post(world.group.Incl([0]))
        win.Wait()
    win.Free()


def flush_without_a_lock():  # check: epoch-missing n=2 raises caught
    win = _allocated()
    win.Fence()
    if rank == 0:
        win.Put(MINE, 1)
        try:
            win.Flush(1)  # 1: Flush
        except MPI.Exception as error:
            print(error)
    win.Fence()
    win.Free()


def flush_under_a_lock():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        win.Lock(1)
        win.Put(MINE, 1)
        win.Flush(1)
        win.Flush_all()
        win.Unlock(1)
    win.Free()


# from: RMARaceBench sync-009
def rget_between_fences():  # check: epoch-missing n=2 raises caught
    win, got = _allocated(), np.zeros(1)
    win.Fence()
    if rank == 0:
        try:
            win.Rget(got, 1).Wait()  # 1: Rget
        except MPI.Exception as error:
            print(error)
    win.Fence()
    win.Free()


def exposed_only():  # check: epoch-missing n=2 raises caught
    win, got = _allocated(), np.zeros(1)
    if rank == 0:
        win.Start(_other())
        win.Put(MINE, 1)
        win.Complete()
    else:
        win.Post(_other())
        try:
            win.Get(got, 0)  # 1: Get
        except MPI.Exception as error:
            print(error)
        win.Wait()
    win.Free()


def exposed_and_started():  # check: clean n=2
    win = _allocated()
    win.Post(_other())
    win.Start(_other())
    win.Put(MINE, 1 - rank)
    win.Complete()
    win.Wait()
    win.Free()


def freed_while_locked():  # check: epoch-open n=2 raises
    win = _allocated()
    win.Lock_all()  # 2: Lock_all
    win.Free()  # 1: Free


def freed_while_locked_caught():  # check: epoch-open n=2 raises caught
    win = _allocated()
    win.Lock_all()  # 2: Lock_all
    try:
        win.Free()  # 1: Free
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    world.Barrier()
    win.Free()


def freed_while_one_rank_is_locked():  # check: epoch-open n=2 raises
    win = _allocated()
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)  # 2: Lock
        win.Put(MINE, 1)
    win.Free()  # 1: Free


def freed_after_unlock():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put(MINE, 1)
        win.Unlock(1)
    win.Free()


# from: MPI-CorrBench MissingCall-MPIWinFence-2
def freed_without_the_last_fence():  # check: epoch-open n=2
    win = _allocated()
    win.Fence()  # 2: Fence
    win.Put(MINE, 1 - rank)
    win.Free()  # 1: Free


def freed_after_a_fence():  # check: clean n=2
    win = _allocated()
    win.Fence()
    win.Put(MINE, 1 - rank)
    win.Fence()
    win.Free()


def freed_in_a_started_epoch():  # check: epoch-open n=2 raises
    win = _allocated()
    if rank == 0:
        win.Start(_other())  # 2: Start
        win.Put(MINE, 1)
        win.Free()  # 1: Free
    else:
        win.Post(_other())
        win.Wait()
        win.Free()


def left_while_locked():  # check: epoch-open n=2 leaves
    win = _allocated()
    win.Lock_all()  # 1: Lock_all
    win.Put(MINE, 1 - rank)
    win.Flush_all()


def left_after_unlock():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    win.Put(MINE, 1 - rank)
    win.Unlock_all()
    win.Free()
