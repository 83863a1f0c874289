"""Order in other ways: synchronous sends, neighbourhoods, locks of another window, two windows."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def answered_by_a_synchronous_send():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got, token = np.frombuffer(win, "f8"), np.zeros(1), np.zeros(1)
    win.Lock_all()
    if rank == 1:
        win.Get(got, 0)
        win.Flush(0)
        world.Recv(token, 0)
    else:
        world.Ssend(token, 1)
        part[0] = 5.0
    win.Unlock_all()
    win.Free()


def answered_by_a_standard_send():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got, token = np.frombuffer(win, "f8"), np.zeros(1), np.zeros(1)
    win.Lock_all()
    if rank == 1:
        win.Get(got, 0)  # 1: Get
        win.Flush(0)
        world.Recv(token, 0)
    else:
        world.Send(token, 1)
        part[0] = 5.0  # 2: store
    win.Unlock_all()
    win.Free()


def received_by_tests():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
        world.Send(token, 1)
    else:
        request = world.Irecv(token, 0)
        while not request.Test():
            pass
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def probed_and_not_received():  # check: contested local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
        world.Send(token, 1)
    else:
        world.Probe(0)
        win.Sync()
        print(part[0])  # 2: load
        world.Recv(token, 0)
    win.Unlock_all()
    win.Free()


def neighbours_of_a_line():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, line = np.frombuffer(win, "f8"), world.Create_cart([3])
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
    line.Neighbor_allgather(np.zeros(1), np.zeros(2))
    if rank == 1:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    line.Free()
    win.Free()


def ends_of_a_line():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, line = np.frombuffer(win, "f8"), world.Create_cart([3])
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 2)  # 1: Put
        win.Flush(2)
    line.Neighbor_allgather(np.zeros(1), np.zeros(2))
    if rank == 2:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    line.Free()
    win.Free()


def ends_of_a_line_after_two_turns():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, line = np.frombuffer(win, "f8"), world.Create_cart([3])
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 2)
        win.Flush(2)
    for _ in range(2):
        line.Neighbor_allgather(np.zeros(1), np.zeros(2))
    if rank == 2:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    line.Free()
    win.Free()


# from: RMARaceBench sync-029
def lock_of_another_window_taken_first():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    gate = MPI.Win.Allocate(8, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.recv(source=1)
        gate.Lock(1)
        gate.Unlock(1)
    else:
        gate.Lock(1)
        gate.Unlock(1)
        world.send("the other locked after me", 0)
        print(part[0])  # 2: load
    gate.Free()
    win.Free()


def flag_under_the_lock_of_another_window():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    gate = MPI.Win.Create(np.zeros(1), 8, comm=world)
    part, flag = np.frombuffer(win, "f8"), np.zeros(1)
    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        gate.Lock(1)
        gate.Put(np.ones(1), 1)
        gate.Unlock(1)
    else:
        while flag[0] == 0.0:
            gate.Lock(1)
            gate.Get(flag, 1)
            gate.Unlock(1)
        assert part[0] == 1.0
    gate.Free()
    win.Free()


def two_windows_over_one_memory_in_turn():  # check: clean n=2
    memory = np.zeros(8)
    first = MPI.Win.Create(memory, 8, comm=world)
    second = MPI.Win.Create(memory, 8, comm=world)
    if rank == 0:
        first.Lock(1)
        first.Put(np.ones(8), 1)
        first.Unlock(1)
        second.Lock(1)
        second.Put(np.full(4, 2.0), 1)
        second.Unlock(1)
    world.Barrier()
    assert rank == 0 or memory.sum() == 12.0
    second.Free()
    first.Free()


def two_windows_over_one_memory_at_once():  # check: same-origin-order n=2
    memory = np.zeros(8)
    first = MPI.Win.Create(memory, 8, comm=world)
    second = MPI.Win.Create(memory, 8, comm=world)
    first.Lock_all()
    second.Lock_all()
    if rank == 0:
        first.Put(np.ones(8), 1)  # 1: Put
        second.Put(np.full(4, 2.0), 1)  # 2: Put
        first.Flush(1)
    second.Unlock_all()
    first.Unlock_all()
    second.Free()
    first.Free()


def fences_of_one_window_order_the_other():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    gate = MPI.Win.Allocate(8, 8, comm=world)
    part = np.frombuffer(win, "f8")
    gate.Fence(MPI.MODE_NOPRECEDE)
    if rank == 0:
        gate.Put(np.ones(1), 1)
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
    gate.Fence(MPI.MODE_NOSUCCEED)
    assert rank == 0 or part[0] == 1.0
    gate.Free()
    win.Free()


def fences_of_one_window_complete_not_the_other():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    gate = MPI.Win.Allocate(8, 8, comm=world)
    part = np.frombuffer(win, "f8")
    gate.Fence(MPI.MODE_NOPRECEDE)
    if rank == 0:
        gate.Put(np.ones(1), 1)
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
    gate.Fence(MPI.MODE_NOSUCCEED)
    if rank == 1:
        print(part[0])  # 2: load
    world.Barrier()
    if rank == 0:
        win.Unlock(1)
    gate.Free()
    win.Free()


def exposure_ended_by_tests():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, group = np.frombuffer(win, "f8"), world.group.Incl([1 - rank])
    if rank == 0:
        win.Start(group)
        win.Put(np.ones(1), 1)
        win.Complete()
    else:
        win.Post(group)
        while not win.Test():
            pass
        assert part[0] == 1.0
    win.Free()


def exposure_tested_and_loaded_anyway():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, group = np.frombuffer(win, "f8"), world.group.Incl([1 - rank])
    if rank == 0:
        world.recv(source=1)
        win.Start(group)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Complete()
    else:
        win.Post(group)
        done = win.Test()
        print(done, part[0])  # 2: load
        world.send(None, 0)
        win.Wait()
    win.Free()
