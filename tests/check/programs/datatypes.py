"""Accesses by derived types: conflicts are of bytes, not of the spans of types."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _column(count, stride, dtype=MPI.DOUBLE):
    return dtype.Create_vector(count, 1, stride).Commit()


def even_and_odd_elements():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    column = _column(4, 2)
    win.Fence()
    if rank > 0:
        win.Put([np.full(4, float(rank)), 4, MPI.DOUBLE], 0, (rank - 1, 1, column))
    win.Fence()
    column.Free()
    assert rank > 0 or np.frombuffer(win, "f8").tolist() == [1.0, 2.0] * 4
    win.Free()


def even_elements_and_every_third():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    column = _column(4, 2) if rank == 1 else _column(2, 3)
    win.Fence()
    if rank == 1:
        win.Put([np.ones(4), 4, MPI.DOUBLE], 0, (0, 1, column))  # 1: Put
    if rank == 2:
        win.Put([np.ones(2), 2, MPI.DOUBLE], 0, (1, 1, column))  # 2: Put
    win.Fence()
    column.Free()
    win.Free()


def columns_of_a_matrix():  # check: clean n=3
    matrix = np.zeros((3, 3))
    win = MPI.Win.Create(matrix, 8, comm=world)
    column = _column(3, 3)
    win.Lock_all()
    win.Put([np.full(3, float(rank)), 3, MPI.DOUBLE], 0, (rank, 1, column))
    win.Unlock_all()
    world.Barrier()
    assert rank > 0 or matrix.tolist() == [[0.0, 1.0, 2.0]] * 3
    column.Free()
    win.Free()


def a_row_and_a_column_of_a_matrix():  # check: target-conflict n=3
    matrix = np.zeros((3, 3))
    win = MPI.Win.Create(matrix, 8, comm=world)
    column = _column(3, 3)
    win.Lock_all()
    if rank == 1:
        win.Put(np.ones(3), 0, 3)  # 1: Put
    if rank == 2:
        win.Put([np.ones(3), 3, MPI.DOUBLE], 0, (2, 1, column))  # 2: Put
    win.Unlock_all()
    column.Free()
    win.Free()


def quarters_by_subarrays():  # check: clean n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Create(matrix, 8, comm=world)
    quarter = MPI.DOUBLE.Create_subarray([4, 4], [2, 2], [2 * rank, 0]).Commit()
    win.Lock_all()
    for target in range(size):
        win.Put([np.full(4, float(rank)), 4, MPI.DOUBLE], target, (0, 1, quarter))
    win.Unlock_all()
    world.Barrier()
    assert matrix.sum() == 4.0
    quarter.Free()
    win.Free()


def subarrays_that_share_a_corner():  # check: target-conflict n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Create(matrix, 8, comm=world)
    block = MPI.DOUBLE.Create_subarray([4, 4], [2, 2], [rank, rank]).Commit()
    win.Lock_all()
    win.Put([np.full(4, float(rank)), 4, MPI.DOUBLE], 0, (0, 1, block))  # 1: Put, 2: Put
    win.Unlock_all()
    block.Free()
    win.Free()


def subarrays_beside_each_other():  # check: clean n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Create(matrix, 8, comm=world)
    block = MPI.DOUBLE.Create_subarray([4, 4], [4, 2], [0, 2 * rank]).Commit()
    win.Fence()
    win.Put([np.full(8, float(rank)), 8, MPI.DOUBLE], 0, (0, 1, block))
    win.Fence()
    assert rank > 0 or matrix.tolist() == [[0.0, 0.0, 1.0, 1.0]] * 4
    block.Free()
    win.Free()


def border_put_and_inside_loaded():  # check: clean n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Create(matrix, 8, comm=world)
    column = _column(4, 4)
    win.Fence()
    win.Put([np.full(4, 1.0), 4, MPI.DOUBLE], 1 - rank, (3, 1, column))
    inside = matrix[:, :3].sum()
    win.Fence()
    assert inside == 0.0
    column.Free()
    win.Free()


def border_put_and_a_row_loaded():  # check: local-access n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Create(matrix, 8, comm=world)
    column = _column(4, 4)
    win.Fence()
    win.Put([np.full(4, 1.0), 4, MPI.DOUBLE], 1 - rank, (3, 1, column))  # 1: Put
    row = matrix[2].sum()  # 2: load
    win.Fence()
    assert row is not None
    column.Free()
    win.Free()


def column_sent_and_inside_changed():  # check: clean n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Allocate(32, 8, comm=world)
    column = _column(4, 4)
    win.Lock_all()
    win.Put([matrix, 1, column], 1 - rank, (0, 4, MPI.DOUBLE))
    matrix[:, 1:] = 5.0
    win.Unlock_all()
    column.Free()
    win.Free()


def column_sent_and_changed():  # check: origin-reuse n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Allocate(32, 8, comm=world)
    column = _column(4, 4)
    win.Lock_all()
    win.Put([matrix, 1, column], 1 - rank, (0, 4, MPI.DOUBLE))  # 1: Put
    matrix[1, :2] = 5.0  # 2: store
    win.Unlock_all()
    column.Free()
    win.Free()


def column_fetched_and_the_next_loaded():  # check: clean n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Allocate(32, 8, comm=world)
    column = _column(4, 4)
    win.Lock_all()
    win.Get([matrix, 1, column], 1 - rank, (0, 4, MPI.DOUBLE))
    assert matrix[:, 1].sum() == 0.0
    win.Unlock_all()
    column.Free()
    win.Free()


def column_fetched_and_loaded():  # check: result-early n=2
    matrix = np.zeros((4, 4))
    win = MPI.Win.Allocate(32, 8, comm=world)
    column = _column(4, 4)
    win.Lock_all()
    win.Get([matrix, 1, column], 1 - rank, (0, 4, MPI.DOUBLE))  # 1: Get
    print(matrix[:, 0].sum())  # 2: load
    win.Unlock_all()
    column.Free()
    win.Free()


def indexed_blocks_apart():  # check: clean n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    blocks = MPI.DOUBLE.Create_indexed([2, 1], [0, 5] if rank == 0 else [2, 6]).Commit()
    win.Fence()
    win.Put([np.ones(3), 3, MPI.DOUBLE], 0, (0, 1, blocks))
    win.Fence()
    blocks.Free()
    win.Free()


def indexed_blocks_that_meet():  # check: target-conflict n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    blocks = MPI.DOUBLE.Create_indexed([2, 1], [0, 5] if rank == 0 else [3, 5]).Commit()
    win.Fence()
    win.Put([np.ones(3), 3, MPI.DOUBLE], 0, (0, 1, blocks))  # 1: Put, 2: Put
    win.Fence()
    blocks.Free()
    win.Free()


def structs_field_by_field():  # check: clean n=2
    record = np.dtype([("value", "f8"), ("count", "i8")])
    win = MPI.Win.Create(np.zeros(4, record), 16, comm=world)
    values = MPI.DOUBLE.Create_resized(0, 16).Commit()
    counts = MPI.INT64_T.Create_resized(0, 16).Create_hindexed([4], [8]).Commit()
    win.Fence()
    if rank == 0:
        win.Put([np.ones(4), 4, MPI.DOUBLE], 1, (0, 4, values))
    else:
        win.Put([np.ones(4, "i8"), 4, MPI.INT64_T], 1, (0, 1, counts))
    win.Fence()
    values.Free()
    counts.Free()
    win.Free()


def field_put_and_another_loaded():  # check: clean n=2
    record = np.dtype([("value", "f8"), ("count", "i8")])
    memory = np.zeros(4, record)
    win = MPI.Win.Create(memory, 16, comm=world)
    values = MPI.DOUBLE.Create_resized(0, 16).Commit()
    win.Fence()
    win.Put([np.ones(4), 4, MPI.DOUBLE], 1 - rank, (0, 4, values))
    assert memory["count"].sum() == 0
    win.Fence()
    values.Free()
    win.Free()


def field_put_and_loaded():  # check: local-access n=2
    record = np.dtype([("value", "f8"), ("count", "i8")])
    memory = np.zeros(4, record)
    win = MPI.Win.Create(memory, 16, comm=world)
    values = MPI.DOUBLE.Create_resized(0, 16).Commit()
    win.Fence()
    win.Put([np.ones(4), 4, MPI.DOUBLE], 1 - rank, (0, 4, values))  # 1: Put
    print(memory["value"].sum())  # 2: load
    win.Fence()
    values.Free()
    win.Free()


def strided_puts_of_one_origin():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    column = _column(4, 2)
    win.Lock_all()
    for start in range(2):
        win.Put([np.full(4, float(start)), 4, MPI.DOUBLE], 1 - rank, (start, 1, column))
    win.Unlock_all()
    column.Free()
    win.Free()


def strided_puts_of_one_origin_again():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    column = _column(4, 2)
    win.Lock_all()
    for start in (0, 2):
        win.Put([np.full(4, float(start)), 4, MPI.DOUBLE], 1 - rank, (start, 1, column))  # 1: Put, 2: Put
    win.Unlock_all()
    column.Free()
    win.Free()


def bytes_of_one_word():  # check: clean n=2
    win = MPI.Win.Allocate(8, 1, comm=world)
    win.Fence()
    win.Put(np.full(4, rank, "u1"), 0, 4 * rank)
    win.Fence()
    win.Free()


def one_shared_byte():  # check: target-conflict n=2
    win = MPI.Win.Allocate(8, 1, comm=world)
    win.Fence()
    win.Put(np.full(5, rank, "u1"), 0, 3 * rank)  # 1: Put, 2: Put
    win.Fence()
    win.Free()
