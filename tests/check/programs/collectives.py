"""Calls that all ranks have to make, and epochs that need a partner."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _allocated():
    return MPI.Win.Allocate(64, 8, comm=world)


def _group(*ranks):
    return world.group.Incl(ranks)


def fence_and_barrier():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    if rank == 0:
        win.Fence()  # 1: Fence
    else:
        world.Barrier()  # 2: Barrier
    win.Free()


def fences_in_two_branches():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        win.Fence()
        win.Put(np.ones(1), 1)
        win.Fence()
    else:
        win.Fence()
        win.Fence()
    win.Free()


# from: MPI-CorrBench MissingCall-MPIWinFence-1
def fence_of_some_ranks():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    win.Fence()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Fence()  # 1: Fence
    win.Free()  # 2: Free


def free_of_one_rank():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    if rank == 0:
        win.Free()  # 1: Free
    world.Barrier()  # 2: Barrier


def free_of_all_ranks():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        win.Free()
        world.Barrier()
    else:
        win.Free()
        world.Barrier()


def started_and_never_posted():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    if rank == 0:
        win.Start(_group(1))  # 1: Start
        win.Put(np.ones(1), 1)
        win.Complete()  # 1: Complete
    world.Barrier()  # 2: Barrier
    win.Free()


def started_and_posted_later():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        win.Start(_group(1))
        win.Put(np.ones(1), 1)
        win.Complete()
        world.Barrier()
    else:
        win.Post(_group(0))
        win.Wait()
        world.Barrier()
    win.Free()


def posted_and_never_started():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    if rank == 1:
        win.Post(_group(0))
        win.Wait()  # 1: Wait
    world.Barrier()  # 2: Barrier
    win.Free()


def posted_to_more_than_start():  # check: collective-mismatch n=3 hangs
    win = _allocated()
    if rank == 0:
        win.Post(_group(1, 2))
        win.Wait()  # 1: Wait
    elif rank == 1:
        win.Start(_group(0))
        win.Complete()
    win.Free()  # 2: Free


def posted_to_those_that_start():  # check: clean n=3
    win = _allocated()
    if rank == 0:
        win.Post(_group(1, 2))
        win.Wait()
    else:
        win.Start(_group(0))
        win.Complete()
    win.Free()


def started_in_a_circle():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    other = _group(1 - rank)
    win.Start(other)  # 1: Start
    win.Put(np.ones(1), 1 - rank)  # 1: Put
    win.Complete()  # 1: Complete
    win.Post(other)
    win.Wait()
    win.Free()


def posted_in_a_circle():  # check: clean n=3
    win = _allocated()
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(3):
        win.Post(_group(left))
        win.Start(_group(right))
        win.Put(np.full(1, float(step)), right)
        win.Complete()
        win.Wait()
        assert np.frombuffer(win, "f8")[0] == step
    win.Free()


def two_windows_freed_in_two_orders():  # check: collective-mismatch n=2 hangs
    windows = [_allocated(), _allocated()]
    windows[rank].Free()  # 1: Free, 2: Free
    windows[1 - rank].Free()


def two_windows_freed_in_one_order():  # check: clean n=2
    windows = [_allocated(), _allocated()]
    windows.pop().Free()
    windows.pop().Free()


def broadcast_and_barrier():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    if rank == 0:
        world.Barrier()  # 1: Barrier
    else:
        world.Bcast(np.zeros(1), root=0)  # 2: Bcast
    win.Free()


def allocated_by_one_rank():  # check: collective-mismatch n=2 hangs
    if rank == 0:
        win = MPI.Win.Allocate(64, 8, comm=world)  # 1: Allocate
        win.Free()
    else:
        world.Barrier()  # 2: Barrier


def allocated_by_a_communicator_of_one():  # check: clean n=2
    if rank == 0:
        win = MPI.Win.Allocate(64, 8, comm=MPI.COMM_SELF)
        win.Free()
    world.Barrier()


def one_fence_too_many():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    for _ in range(2 + rank):
        win.Fence()  # 1: Fence
    win.Free()  # 2: Free


def message_after_the_fence():  # check: collective-mismatch n=2 hangs
    win = _allocated()
    if rank == 0:
        world.Recv(np.zeros(1), 1)  # 1: Recv
        win.Fence()
    else:
        win.Fence()  # 2: Fence
        world.Send(np.zeros(1), 0)
    win.Free()


def message_before_the_fence():  # check: clean n=2
    win = _allocated()
    if rank == 0:
        request = world.Irecv(np.zeros(1), 1)
        win.Fence()
        request.Wait()
    else:
        win.Fence()
        world.Send(np.zeros(1), 0)
    win.Free()


def barriers_of_halves():  # check: clean n=3
    half = world.Split(rank % 2)
    for _ in range(1 + rank % 2):
        half.Barrier()
    half.Free()
    world.Barrier()


def collectives_that_overlap():  # check: clean n=2
    win = _allocated()
    request = world.Ibarrier()
    win.Fence()
    win.Put(np.ones(1), 1 - rank)
    win.Fence()
    request.Wait()
    win.Free()


def empty_groups():  # check: clean n=2
    win = _allocated()
    win.Post(MPI.GROUP_EMPTY)
    win.Start(MPI.GROUP_EMPTY)
    win.Complete()
    win.Wait()
    win.Free()


def calls_on_a_communicator_that_is_freed():  # check: clean n=2 raises caught
    duplicate = world.Dup()
    same = MPI.Intracomm(duplicate)
    duplicate.Free()
    for call in (same.Barrier, same.Ibarrier, MPI.COMM_NULL.Barrier, lambda: MPI.Win.Allocate(8, comm=MPI.COMM_NULL)):
        try:
            call()
        except MPI.Exception as error:
            print(error)


def different_operations():  # check: collective-mismatch n=2 raises
    if rank == 0:
        world.allreduce(1, MPI.SUM)  # 1: allreduce
    else:
        world.allreduce(1, MPI.MAX)  # 1: allreduce


def different_amounts():  # check: collective-mismatch n=2 raises
    data = np.zeros(4 - rank)
    world.Allreduce(MPI.IN_PLACE, data)  # 1: Allreduce


def one_operation():  # check: clean n=2
    assert world.allreduce(rank, MPI.MAX) == 1
    world.Allreduce(MPI.IN_PLACE, np.zeros(4))


def window_created_and_allocated():  # check: collective-mismatch n=2 raises
    if rank == 0:
        MPI.Win.Create(np.zeros(1), comm=world)  # 1: Create
    else:
        MPI.Win.Allocate(8, comm=world)  # 1: Allocate


def one_rank_ends_before_a_barrier():  # check: collective-mismatch n=2 raises
    if rank == 0:
        raise SystemExit
    world.Barrier()  # 1: Barrier


def one_rank_ends_before_a_fence():  # check: collective-mismatch n=2 raises leaves
    win = _allocated()
    if rank == 0:
        raise SystemExit
    win.Fence()  # 1: Fence


def refused_on_one_rank():  # check: clean n=2
    if rank == 0:
        for call in (world.Bcast, world.Ibcast, lambda what: world.Allgather(np.ones(1), what)):
            try:
                call("text")
            except TypeError as error:
                print(error)
    world.Barrier()
    world.Bcast(np.ones(1))
    _allocated().Free()


def refused_by_the_library_on_one_rank():  # check: clean n=2 caught
    if rank == 0:
        for call in (
            lambda: world.Bcast(np.ones(1), 99),
            lambda: world.Allreduce(np.ones(4), np.ones(3)),
            lambda: world.Ibcast(np.ones(1), 99),
            lambda: world.bcast(1, 99),
            lambda: world.Allgather(np.ones(4), np.ones(6)),
            lambda: world.Create_cart([5, 5]),
            lambda: world.Split(-5),
            lambda: world.Create(MPI.GROUP_NULL),
        ):
            try:
                call()
            except MPI.Exception as error:
                print(error)
    world.Bcast(np.ones(1))
    world.Barrier()


def refused_on_the_rank_that_calls_first():  # check: clean n=3
    if rank == 1:
        try:
            world.Reduce("text", None)
        except TypeError as error:
            print(error)
    world.Bcast(np.ones(1), 2)
    world.Allreduce(MPI.IN_PLACE, np.ones(1))


def refused_size_of_a_window():  # check: bad-argument n=2 caught
    if rank == 0:
        try:
            MPI.Win.Allocate(-1, comm=world)  # 1: Allocate
        except MPI.Exception as error:
            print(error)
    world.Bcast(np.ones(1))
    world.Barrier()
    _allocated().Free()


def refused_memory_of_a_window():  # check: bad-argument n=2
    if rank == 0:
        try:
            MPI.Win.Create("text", comm=world)  # 1: Create
        except TypeError as error:
            print(error)
    _allocated().Free()
