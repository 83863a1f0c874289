"""Buffers that a pending operation still reads."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def put_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        mine[0] = 5.0  # 2: store
    win.Unlock_all()
    win.Free()


def put_flush_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)
        win.Flush(1)
        mine[0] = 5.0
    win.Unlock_all()
    win.Free()


def put_flush_local_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)
        win.Flush_local(1)
        mine[0] = 5.0
    win.Unlock_all()
    win.Free()


# from: RMARaceBench conflict-002
def put_store_fence():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Fence()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        mine[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-001
def put_load_fence():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Fence()
    if rank == 0:
        win.Put(mine, 1)
        assert mine[0] == 1.0
    win.Fence()
    mine[0] = 2.0
    win.Free()


# from: RMARaceBench conflict-003
def put_put_from_one_buffer():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(2)
    win.Fence()
    if rank == 0:
        win.Put(mine, 1, 0)
        win.Put(mine, 1, 4)
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-008
def accumulate_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Fence()
    if rank == 0:
        win.Accumulate(mine, 1)  # 1: Accumulate
        mine[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-009
def accumulate_then_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Fence()
    if rank == 0:
        win.Accumulate(mine, 1)
        assert mine[0] == 1.0
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-010
def get_accumulate_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, old = np.ones(1), np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get_accumulate(mine, old, 1)  # 1: Get_accumulate
        mine[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-012
def fetch_and_op_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, old = np.ones(1, "i8"), np.zeros(1, "i8")
    win.Fence()
    if rank == 0:
        win.Fetch_and_op(mine, old, 1)  # 1: Fetch_and_op
        mine[0] = 42  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench conflict-014
def compare_and_swap_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    new, expected, old = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    win.Fence()
    if rank == 0:
        win.Compare_and_swap(new, expected, old, 1)  # 1: Compare_and_swap
        new[0] = 42  # 2: store
    win.Fence()
    win.Free()


def compared_value_changed():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    new, expected, old = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    win.Lock(1)
    if rank == 0:
        win.Compare_and_swap(new, expected, old, 1)  # 1: Compare_and_swap
        expected[0] = 1  # 2: store
    win.Unlock(1)
    win.Free()


def compared_value_changed_after_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    new, expected, old = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    win.Lock(1)
    if rank == 0:
        win.Compare_and_swap(new, expected, old, 1)
        win.Flush_local(1)
        expected[0] = old[0]
    win.Unlock(1)
    win.Free()


def get_fills_what_put_reads():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(2)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1, 0)  # 1: Put
        win.Get(mine, 1, 4)  # 2: Get
    win.Unlock_all()
    win.Free()


def get_fills_the_other_half():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine[:2], 1, 0)
        win.Get(mine[2:], 1, 4)
    win.Unlock_all()
    win.Free()


def rput_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        request = win.Rput(mine, 1)  # 1: Rput
        mine *= 2  # 2: store
        request.Wait()
    win.Unlock_all()
    win.Free()


def rput_wait_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        request = win.Rput(mine, 1)
        request.Wait()
        mine *= 2
    win.Unlock_all()
    win.Free()


def wait_for_the_other_request():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    first, second = np.ones(2), np.ones(2)
    win.Lock_all()
    if rank == 0:
        one = win.Rput(first, 1, 0)  # 1: Rput
        two = win.Rput(second, 1, 4)
        two.Wait()
        first[0] = 3.0  # 2: store
        one.Wait()
    win.Unlock_all()
    win.Free()


def wait_for_this_request():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    first, second = np.ones(2), np.ones(2)
    win.Lock_all()
    if rank == 0:
        one = win.Rput(first, 1, 0)
        two = win.Rput(second, 1, 4)
        one.Wait()
        first[0] = 3.0
        two.Wait()
    win.Unlock_all()
    win.Free()


def raccumulate_then_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Lock(1, MPI.LOCK_SHARED)
    if rank == 0:
        request = win.Raccumulate(mine, 1)  # 1: Raccumulate
        mine.fill(0)  # 2: store
        request.Wait()
    win.Unlock(1)
    win.Free()


def put_store_complete():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    if rank == 0:
        win.Start(world.group.Incl([1]))
        win.Put(mine, 1)  # 1: Put
        mine[3] = 0.0  # 2: store
        win.Complete()
    else:
        win.Post(world.group.Incl([0]))
        win.Wait()
    win.Free()


def put_complete_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    if rank == 0:
        win.Start(world.group.Incl([1]))
        win.Put(mine, 1)
        win.Complete()
        mine[3] = 0.0
    else:
        win.Post(world.group.Incl([0]))
        win.Wait()
        assert np.frombuffer(win, "f8")[3] == 1.0
    win.Free()


def flush_of_another_target():  # check: origin-reuse n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        win.Flush(2)
        mine[0] = 5.0  # 2: store
    win.Unlock_all()
    win.Free()


def flush_of_one_of_two_targets():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, other = np.ones(4), np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)
        win.Put(other, 2)
        win.Flush_local(1)
        mine[0] = 5.0
    win.Unlock_all()
    win.Free()


def one_buffer_for_all_targets():  # check: origin-reuse n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(1)
    win.Fence()
    for target in range(size):
        mine[0] = 10 * rank + target  # 2: store
        win.Put(mine, target, rank)  # 1: Put
    win.Fence()
    win.Free()


def an_array_for_each_target():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    for target in range(size):
        win.Put(np.array([10.0 * rank + target]), target, rank)
    win.Fence()
    assert list(np.frombuffer(win, "f8")[:size]) == [10 * r + rank for r in range(size)]
    win.Free()


def a_row_for_each_target():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros((size, 1))
    win.Fence()
    for target in range(size):
        mine[target] = 10 * rank + target
        win.Put(mine[target], target, rank)
    win.Fence()
    win.Free()


def received_into_a_pending_buffer():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        world.Recv(mine, 1)  # 2: Recv|store
    else:
        world.Send(np.zeros(4), 0)
    win.Unlock_all()
    win.Free()


def sent_from_a_pending_buffer():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)
        world.Send(mine, 1)
    else:
        world.Recv(mine, 0)
    win.Unlock_all()
    win.Free()


def broadcast_into_a_pending_buffer():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
    world.Bcast(mine, root=1)  # 2: Bcast|store
    win.Unlock_all()
    win.Free()


def two_buffers_in_turn():  # check: clean n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    buffers = np.zeros((2, 1))
    requests = [MPI.REQUEST_NULL] * 2
    win.Lock_all()
    if rank == 0:
        for step in range(10):
            requests[step % 2].Wait()
            buffers[step % 2] = step
            requests[step % 2] = win.Rput(buffers[step % 2], 1, step)
        MPI.Request.Waitall(requests)
    win.Unlock_all()
    win.Free()


def two_buffers_in_the_wrong_turn():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    buffers = np.zeros((2, 1))
    requests = [MPI.REQUEST_NULL] * 2
    win.Lock_all()
    if rank == 0:
        for step in range(10):
            buffers[step % 2] = step  # 2: store
            requests[step % 2].Wait()
            requests[step % 2] = win.Rput(buffers[step % 2], 1, step)  # 1: Rput
        MPI.Request.Waitall(requests)
    win.Unlock_all()
    win.Free()
