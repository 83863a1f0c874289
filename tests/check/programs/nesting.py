"""Epochs that are opened inside another, and ends of epochs that were never open."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


MINE = np.ones(1)


def _allocated():
    return MPI.Win.Allocate(64, 8, comm=world)


def _other():
    return world.group.Incl([1 - rank])


# from: MPI-CorrBench MisplacedCall-MPIWinLock
def locked_between_fences():  # check: epoch-nested n=2
    win = _allocated()
    win.Fence()  # 2: Fence
    if rank == 0:
        win.Put(MINE, 1, 0)
        win.Lock(1)  # 1: Lock
        win.Unlock(1)
    win.Fence()
    win.Free()


def locked_after_the_last_fence():  # check: clean n=2
    win = _allocated()
    win.Fence()
    if rank == 0:
        win.Put(MINE, 1, 0)
    win.Fence(MPI.MODE_NOSUCCEED)
    if rank == 0:
        win.Lock(1)
        win.Put(MINE, 1, 0)
        win.Unlock(1)
    win.Free()


def locked_twice():  # check: epoch-nested n=2 raises caught
    win = _allocated()
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)  # 2: Lock
        try:
            win.Lock(1, MPI.LOCK_SHARED)  # 1: Lock
        except MPI.Exception as error:
            print(error)
        win.Unlock(1)
    win.Free()


def locked_one_after_the_other():  # check: clean n=2
    win = _allocated()
    for _ in range(2):
        win.Lock(1)
        win.Unlock(1)
    win.Free()


def locked_in_two_windows():  # check: clean n=2
    first, second = _allocated(), _allocated()
    first.Lock(1, MPI.LOCK_SHARED)
    second.Lock(1, MPI.LOCK_SHARED)
    first.Get(np.zeros(1), 1)
    second.Get(np.zeros(1), 1)
    first.Unlock(1)
    second.Unlock(1)
    second.Free()
    first.Free()


def all_locked_while_one_is():  # check: epoch-nested n=2 raises caught
    win = _allocated()
    if rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)  # 2: Lock
        try:
            win.Lock_all()  # 1: Lock_all
        except MPI.Exception as error:
            print(error)
        win.Unlock(1)
    win.Free()


def started_while_all_are_locked():  # check: epoch-nested n=2 raises
    win = _allocated()
    win.Lock_all()  # 2: Lock_all
    if rank == 0:
        win.Start(_other())  # 1: Start
    win.Unlock_all()
    win.Free()


def started_twice():  # check: epoch-nested n=2 raises caught
    win = _allocated()
    if rank == 0:
        win.Start(_other())  # 2: Start
        try:
            win.Start(_other())  # 1: Start
        except MPI.Exception as error:
            print(error)
        win.Complete()
    else:
        win.Post(_other())
        win.Wait()
    win.Free()


def posted_twice():  # check: epoch-nested n=2 raises caught
    win = _allocated()
    if rank == 0:
        win.Start(_other())
        win.Complete()
    else:
        win.Post(_other())  # 2: Post
        try:
            win.Post(_other())  # 1: Post
        except MPI.Exception as error:
            print(error)
        win.Wait()
    win.Free()


def fence_while_locked():  # check: epoch-nested n=2 raises caught
    win = _allocated()
    win.Lock_all()  # 2: Lock_all
    try:
        win.Fence()  # 1: Fence
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    win.Free()


def fence_after_unlock():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    win.Unlock_all()
    win.Fence()
    win.Put(MINE, 1 - rank)
    win.Fence()
    win.Free()


def unlocked_twice():  # check: epoch-unopened n=2 raises caught
    win = _allocated()
    if rank == 0:
        win.Lock(1)
        win.Unlock(1)
        try:
            win.Unlock(1)  # 1: Unlock
        except MPI.Exception as error:
            print(error)
    win.Free()


def another_rank_unlocked():  # check: epoch-unopened n=3 raises caught
    win = _allocated()
    if rank == 0:
        win.Lock(1)
        try:
            win.Unlock(2)  # 1: Unlock
        except MPI.Exception as error:
            print(error)
        win.Unlock(1)
    win.Free()


def unlocked_in_another_order():  # check: clean n=3
    win = _allocated()
    if rank == 0:
        win.Lock(1)
        win.Lock(2)
        win.Unlock(1)
        win.Unlock(2)
    win.Free()


def one_of_all_unlocked():  # check: epoch-unopened n=2 raises caught
    win = _allocated()
    win.Lock_all()  # 2: Lock_all
    try:
        win.Unlock(1 - rank)  # 1: Unlock
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    win.Free()


def all_unlocked_without_lock():  # check: epoch-unopened n=2 raises
    win = _allocated()
    win.Unlock_all()  # 1: Unlock_all
    win.Free()


def completed_without_start():  # check: epoch-unopened n=2 raises caught
    win = _allocated()
    try:
        win.Complete()  # 1: Complete
    except MPI.Exception as error:
        print(error)
    win.Free()


def waited_without_post():  # check: epoch-unopened n=2 raises
    win = _allocated()
    if rank == 1:
        win.Wait()  # 1: Wait
    world.Barrier()
    win.Free()


def tested_without_post():  # check: epoch-unopened n=2 raises caught
    win = _allocated()
    try:
        win.Test()  # 1: Test
    except MPI.Exception as error:
        print(error)
    win.Free()


def tested_until_done():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        win.Start(_other())
        win.Put(MINE, 1)
        win.Complete()
    else:
        win.Post(_other())
        while not win.Test():
            pass
    win.Free()


def locked_after_a_fence_that_may_succeed():  # check: contested epoch-nested n=2
    win = _allocated()
    win.Fence()  # 2: Fence
    if rank == 0:
        win.Lock(1)  # 1: Lock
        win.Put(MINE, 1)
        win.Unlock(1)
    win.Free()


def locked_while_posted():  # check: contested epoch-nested n=2
    win = _allocated()
    if rank == 0:
        win.Start(_other())
        win.Complete()
        world.Recv(np.zeros(1), 1)
        win.Lock(1, MPI.LOCK_SHARED)  # 1: Lock
        win.Put(MINE, 1)
        win.Unlock(1)
        world.Send(np.zeros(1), 1)
    else:
        win.Post(_other())  # 2: Post
        world.Send(np.zeros(1), 0)
        world.Recv(np.zeros(1), 0)
        win.Wait()
    win.Free()
