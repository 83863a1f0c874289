"""Whole algorithms, right, and with one step left out."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


right, left = (rank + 1) % size, (rank - 1) % size


def halo_by_fences():  # check: clean n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    for _ in range(3):
        win.Fence()
        win.Put(field[1:2], left, 5)
        win.Put(field[4:5], right, 0)
        win.Fence()
        field[1:5] = (field[:4] + field[2:]) / 2
    win.Free()


def halo_by_fences_computed_too_early():  # check: local-access n=3
    field, new = np.full(6, float(rank)), np.zeros(4)
    win = MPI.Win.Create(field, 8, comm=world)
    for _ in range(3):
        win.Fence()
        win.Put(field[1:2], left, 5)  # 1: Put
        win.Put(field[4:5], right, 0)  # 1: Put
        np.add(field[:4], field[2:], out=new)  # 2: load
        win.Fence()
        field[1:5] = new / 2
    win.Free()


def halo_with_the_inside_computed_meanwhile():  # check: clean n=3
    field, new = np.full(6, float(rank)), np.zeros(4)
    win = MPI.Win.Create(field, 8, comm=world)
    for _ in range(3):
        win.Fence()
        win.Put(field[1:2], left, 5)
        win.Put(field[4:5], right, 0)
        np.add(field[1:3], field[3:5], out=new[1:3])
        win.Fence()
        new[0], new[3] = field[0] + field[2], field[3] + field[5]
        field[1:5] = new / 2
    win.Free()


def halo_with_the_edge_stored_meanwhile():  # check: origin-reuse n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    win.Fence()
    win.Put(field[1:2], left, 5)  # 1: Put
    win.Put(field[4:5], right, 0)
    field[1] = 0.5  # 2: store
    win.Fence()
    win.Free()


def halo_with_one_fence_for_two_steps():  # check: local-access n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    win.Fence()
    for _ in range(3):
        win.Put(field[1:2], left, 5)  # 1: Put
        win.Fence()
        field[1:5] = field[2:6] / 2  # 2: load
    win.Fence()
    win.Free()


def halo_by_gets():  # check: clean n=3
    field, ghosts = np.full(4, float(rank)), np.zeros(2)
    win = MPI.Win.Create(field, 8, comm=world)
    for _ in range(3):
        win.Fence()
        win.Get(ghosts[:1], left, 3)
        win.Get(ghosts[1:], right, 0)
        win.Fence()
        field += ghosts.sum()
    win.Free()


def halo_by_gets_changed_too_early():  # check: local-access n=3
    field, ghosts = np.full(4, float(rank)), np.zeros(2)
    win = MPI.Win.Create(field, 8, comm=world)
    win.Fence()
    win.Get(ghosts[:1], left, 3)  # 1: Get
    win.Get(ghosts[1:], right, 0)
    field[1:] *= 2  # 2: store
    win.Fence()
    win.Free()


def halo_by_post_and_start():  # check: clean n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    neighbours = world.group.Incl([left, right])
    for _ in range(3):
        win.Post(neighbours)
        win.Start(neighbours)
        win.Put(field[1:2], left, 5)
        win.Put(field[4:5], right, 0)
        win.Complete()
        win.Wait()
        field[1:5] = (field[:4] + field[2:]) / 2
    win.Free()


def halo_by_post_and_start_without_wait():  # check: local-access n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    neighbours = world.group.Incl([left, right])
    win.Post(neighbours)
    win.Start(neighbours)
    win.Put(field[1:2], left, 5)  # 1: Put
    win.Put(field[4:5], right, 0)
    win.Complete()
    total = field[1:].sum()  # 2: load
    win.Wait()
    print(total)
    win.Free()


def halo_by_locks_and_barriers():  # check: clean n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    win.Lock_all()
    for _ in range(3):
        win.Put(field[1:2], left, 5)
        win.Put(field[4:5], right, 0)
        win.Flush_all()
        world.Barrier()
        win.Sync()
        field[1:5] = (field[:4] + field[2:]) / 2
        win.Sync()
        world.Barrier()
    win.Unlock_all()
    win.Free()


def halo_by_locks_with_one_barrier():  # check: local-access n=3
    field = np.full(6, float(rank))
    win = MPI.Win.Create(field, 8, comm=world)
    win.Lock_all()
    for _ in range(3):
        win.Put(field[1:2], left, 5)  # 1: Put
        win.Flush_all()
        world.Barrier()
        win.Sync()
        field[1:5] = field[2:] / 2  # 2: load
        win.Sync()
    win.Unlock_all()
    win.Free()


def halo_by_locks_with_two_windows_in_turn():  # check: clean n=3
    fields = np.full((2, 6), float(rank))
    wins = [MPI.Win.Create(field, 8, comm=world) for field in fields]
    for win in wins:
        win.Lock_all()
    for step in range(4):
        field, win = fields[step % 2], wins[step % 2]
        win.Put(fields[1 - step % 2, 1:2], left, 5)
        win.Flush_all()
        world.Barrier()
        win.Sync()
        field[1:5] = field[2:] / 2
        win.Sync()
    for win in wins:
        win.Unlock_all()
        win.Free()


def transposed_by_puts():  # check: clean n=3
    block, matrix = np.full((size, 2), float(rank)), np.zeros((size, 2))
    win = MPI.Win.Create(matrix, 8, comm=world)
    win.Fence()
    for target in range(size):
        win.Put(block[target], target, 2 * rank)
    win.Fence()
    assert matrix[:, 0].tolist() == list(range(size))
    win.Free()


def transposed_by_puts_to_the_wrong_rows():  # check: target-conflict n=3
    block, matrix = np.full((size, 2), float(rank)), np.zeros((size + 1, 2))
    win = MPI.Win.Create(matrix, 8, comm=world)
    win.Fence()
    for target in range(size):
        win.Put(block[target], target, rank)  # 1: Put, 2: Put
    win.Fence()
    win.Free()


def histogram_by_accumulates():  # check: clean n=3
    counts = np.zeros(4, "i8")
    win = MPI.Win.Create(counts, 8, comm=world)
    win.Fence()
    for value in range(12):
        win.Accumulate(np.ones(1, "i8"), value % size, value % 4)
    win.Fence()
    assert counts.sum() == 12
    win.Free()


def histogram_by_gets_and_puts():  # check: target-conflict n=3
    counts, got = np.zeros(4, "i8"), np.zeros(1, "i8")
    win = MPI.Win.Create(counts, 8, comm=world)
    for value in range(2):
        win.Lock(0, MPI.LOCK_SHARED)
        win.Get(got, 0, value)  # 1: Get
        win.Flush(0)
        win.Put(got + 1, 0, value)  # 1: Put, 2: Put
        win.Unlock(0)
    win.Free()


def histogram_by_gets_and_puts_under_exclusive_locks():  # check: clean n=3
    counts, got = np.zeros(4, "i8"), np.zeros(1, "i8")
    win = MPI.Win.Create(counts, 8, comm=world)
    for value in range(4):
        win.Lock(0, MPI.LOCK_EXCLUSIVE)
        win.Get(got, 0, value)
        win.Flush(0)
        win.Put(got + 1, 0, value)
        win.Unlock(0)
    world.Barrier()
    assert rank > 0 or counts.tolist() == [size] * 4
    win.Free()


def sum_in_a_loop_of_locks():  # check: clean n=3
    total = np.zeros(1)
    win = MPI.Win.Create(total, 8, comm=world)
    for _ in range(3):
        win.Lock(0)
        win.Accumulate(np.ones(1), 0)
        win.Unlock(0)
    world.Barrier()
    assert rank > 0 or total[0] == 3 * size
    win.Free()


def sum_loaded_before_all_have_added():  # check: local-access n=3
    total = np.zeros(1)
    win = MPI.Win.Create(total, 8, comm=world)
    win.Lock(0)
    win.Accumulate(np.ones(1), 0)  # 1: Accumulate
    win.Unlock(0)
    if rank == 0:
        print(total[0])  # 2: load
    win.Free()


def ring_buffer_of_two_slots():  # check: clean n=2
    slots, answers = np.zeros(2), []
    win = MPI.Win.Create(slots, 8, comm=world)
    win.Lock_all()
    for step in range(6):
        if rank == 0:
            if step >= 2:
                world.recv(source=1, tag=2)
            win.Put(np.full(1, float(step)), 1, step % 2)
            win.Flush(1)
            world.send(step, 1, tag=1)
        else:
            world.recv(source=0, tag=1)
            win.Sync()
            assert slots[step % 2] == step
            win.Sync()
            answers.append(world.isend(step, 0, tag=2))
    if rank == 0:
        world.recv(source=1, tag=2)
        world.recv(source=1, tag=2)
    MPI.Request.waitall(answers)
    win.Unlock_all()
    win.Free()


def ring_buffer_one_slot_short():  # check: local-access n=2
    slots, answers = np.zeros(2), []
    win = MPI.Win.Create(slots, 8, comm=world)
    win.Lock_all()
    for step in range(6):
        if rank == 0:
            if step >= 3:
                world.recv(source=1, tag=2)
            win.Put(np.full(1, float(step)), 1, step % 2)  # 1: Put
            win.Flush(1)
            world.send(step, 1, tag=1)
        else:
            world.recv(source=0, tag=1)
            win.Sync()
            print(slots[step % 2])  # 2: load
            win.Sync()
            answers.append(world.isend(step, 0, tag=2))
    if rank == 0:
        for _ in range(3):
            world.recv(source=1, tag=2)
    MPI.Request.waitall(answers)
    win.Unlock_all()
    win.Free()


def blocks_of_a_product():  # check: clean n=3
    mine, got, total = np.full((2, 2), 1.0 + rank), np.zeros((2, 2)), np.zeros((2, 2))
    win = MPI.Win.Create(mine, 8, comm=world)
    win.Lock_all()
    for owner in range(size):
        win.Get(got, owner)
        win.Flush(owner)
        total += got @ got
    win.Unlock_all()
    assert total[0, 0] == 2 * sum((1.0 + r) ** 2 for r in range(size))
    win.Free()


def blocks_of_a_product_fetched_ahead():  # check: clean n=3
    mine, got, total = np.full((2, 2), 1.0 + rank), np.zeros((2, 2, 2)), np.zeros((2, 2))
    win = MPI.Win.Create(mine, 8, comm=world)
    win.Lock_all()
    request = win.Rget(got[0], 0)
    for owner in range(size):
        request.Wait()
        if owner + 1 < size:
            request = win.Rget(got[(owner + 1) % 2], owner + 1)
        total += got[owner % 2] @ got[owner % 2]
    win.Unlock_all()
    assert total[0, 0] == 2 * sum((1.0 + r) ** 2 for r in range(size))
    win.Free()


def blocks_of_a_product_fetched_into_one():  # check: result-early n=3
    mine, got, total = np.full((2, 2), 1.0 + rank), np.zeros((2, 2)), np.zeros((2, 2))
    win = MPI.Win.Create(mine, 8, comm=world)
    win.Lock_all()
    request = win.Rget(got, 0)
    for owner in range(1, size):
        request.Wait()
        request = win.Rget(got, owner)  # 1: Rget
        total += got @ got  # 2: load
    request.Wait()
    win.Unlock_all()
    win.Free()


def list_of_attached_nodes():  # check: clean n=3
    node = np.array([float(rank), 0.0])
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(node)
    addresses = world.allgather(MPI.Get_address(node))
    got, total = np.zeros(1), 0.0
    win.Lock_all()
    for owner, address in enumerate(addresses):
        win.Get(got, owner, address)
        win.Flush(owner)
        total += got[0]
    win.Unlock_all()
    world.Barrier()
    assert total == sum(range(size))
    win.Detach(node)
    win.Free()
