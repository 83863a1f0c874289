"""Assertions that do not hold, and those that do."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _other():
    return world.group.Incl([1 - rank])


def no_succeed_and_a_put():  # check: wrong-assert|epoch-missing n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence(MPI.MODE_NOSUCCEED)  # 1: Fence
    try:
        win.Put(np.ones(1), 1 - rank)  # 2: Put
    except MPI.Exception as error:
        print(error)
    win.Fence()
    win.Free()


def no_succeed_at_the_end():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence(MPI.MODE_NOPRECEDE)
    win.Put(np.ones(1), 1 - rank)
    win.Fence(MPI.MODE_NOSUCCEED)
    assert np.frombuffer(win, "f8")[0] == 1.0
    win.Free()


def no_precede_after_a_put():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    win.Put(np.ones(1), 1 - rank)  # 2: Put
    win.Fence(MPI.MODE_NOPRECEDE)  # 1: Fence
    win.Fence()
    win.Free()


def no_precede_of_one_rank():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence(MPI.MODE_NOPRECEDE if rank == 0 else 0)  # 1: Fence
    win.Put(np.ones(1), 1 - rank)
    win.Fence()
    win.Free()


def no_precede_of_all_ranks():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    np.frombuffer(win, "f8")[:] = 1.0
    win.Fence(MPI.MODE_NOPRECEDE)
    win.Put(np.ones(1), 1 - rank)
    win.Fence()
    win.Free()


def no_put_in_a_fence_and_a_put():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence(MPI.MODE_NOPUT)  # 1: Fence
    win.Put(np.ones(1), 1 - rank)  # 2: Put
    win.Fence()
    win.Free()


def no_put_in_a_fence_and_a_put_of_one_rank():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    one = np.ones(1)
    for _ in range(20):  # either rank may be the first one to leave a Fence
        win.Fence(MPI.MODE_NOPUT)  # 1: Fence
        if rank == 0:
            win.Put(one, 1)  # 2: Put
        win.Fence()
    win.Free()


def no_put_in_the_fence_before():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    one = np.ones(1)
    for _ in range(100):
        win.Fence(MPI.MODE_NOPUT)
        win.Fence()
        win.Put(one, 1 - rank)
    win.Fence()
    win.Free()


def no_put_in_a_fence_and_a_get():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    win.Fence(MPI.MODE_NOPUT)
    win.Get(got, 1 - rank)
    win.Fence()
    win.Free()


def no_put_of_the_origin_alone():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence(MPI.MODE_NOPUT if rank == 0 else 0)
    if rank == 0:
        win.Put(np.ones(1), 1)
    win.Fence()
    win.Free()


def no_put_of_a_post_and_an_accumulate():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        win.Start(_other())
        win.Accumulate(np.ones(1), 1)  # 2: Accumulate
        win.Complete()
    else:
        win.Post(_other(), MPI.MODE_NOPUT)  # 1: Post
        win.Wait()
    win.Free()


def no_put_of_a_post_and_a_get():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)
    if rank == 0:
        win.Start(_other())
        win.Get(got, 1)
        win.Complete()
    else:
        win.Post(_other(), MPI.MODE_NOPUT)
        win.Wait()
    win.Free()


def no_store_after_a_store():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    win.Fence()
    part[0] = rank  # 2: store
    win.Fence(MPI.MODE_NOSTORE)  # 1: Fence
    win.Get(got, 1 - rank)
    win.Fence()
    win.Free()


def no_store_after_a_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    part[0] = rank
    win.Fence()
    print(part[0])
    win.Fence(MPI.MODE_NOSTORE)
    win.Get(got, 1 - rank)
    win.Fence()
    win.Free()


def no_check_of_a_start_before_the_post():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        win.Start(_other(), MPI.MODE_NOCHECK)  # 1: Start
        win.Put(np.ones(1), 1)
        win.Complete()
    else:
        win.Post(_other(), MPI.MODE_NOCHECK)  # 2: Post
        win.Wait()
    win.Free()


def no_check_of_a_start_after_the_post():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        world.Barrier()
        win.Start(_other(), MPI.MODE_NOCHECK)
        win.Put(np.ones(1), 1)
        win.Complete()
    else:
        win.Post(_other(), MPI.MODE_NOCHECK)
        world.Barrier()
        win.Wait()
    win.Free()


def no_check_of_the_start_alone():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    if rank == 0:
        world.Barrier()
        win.Start(_other(), MPI.MODE_NOCHECK)  # 1: Start
        win.Put(np.ones(1), 1)
        win.Complete()
    else:
        win.Post(_other())  # 2: Post
        world.Barrier()
        win.Wait()
    win.Free()


def no_check_of_locks_that_meet():  # check: wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock(1, MPI.LOCK_EXCLUSIVE, MPI.MODE_NOCHECK)  # 1: Lock, 2: Lock
    win.Put(np.ones(1), 1, rank)
    world.Barrier()
    win.Unlock(1)
    win.Free()


def no_check_of_locks_in_turn():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    for turn in range(size):
        if rank == turn:
            win.Lock(1, MPI.LOCK_EXCLUSIVE, MPI.MODE_NOCHECK)
            win.Put(np.ones(1), 1)
            win.Unlock(1)
        world.Barrier()
    win.Free()


def no_check_of_shared_locks():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all(MPI.MODE_NOCHECK)
    win.Accumulate(np.ones(1), 1)
    win.Unlock_all()
    win.Free()


# from: MPI-CorrBench ArgError-MPIWinFence-assert
def no_such_assertion():  # check: wrong-assert|bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    try:
        win.Fence(1 << 25)  # 1: Fence
    except MPI.Exception as error:
        print(error)
    win.Free()


def assertion_of_another_call():  # check: contested wrong-assert n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1)
    win.Fence(MPI.MODE_NOSUCCEED)
    if rank == 0:
        win.Start(_other(), MPI.MODE_NOPUT)  # 1: Start
        win.Put(np.ones(1), 1)
        win.Complete()
    else:
        win.Post(_other())
        win.Wait()
    win.Free()
