"""Loads and stores by NumPy, memoryviews and Python, to the byte."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def fancy_index_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(8)
    win.Lock_all()
    win.Put(mine[2:4], 1 - rank, 0)  # 1: Put
    mine[[0, 3, 7]] = 1.0  # 2: store
    win.Unlock_all()
    win.Free()


def fancy_index_store_around():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(8)
    win.Lock_all()
    win.Put(mine[2:4], 1 - rank, 0)
    mine[[0, 1, 4, 7]] = 1.0
    win.Unlock_all()
    win.Free()


def ufunc_out():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, other = np.zeros(8), np.ones(8)
    win.Lock_all()
    win.Put(mine, 1 - rank)  # 1: Put
    np.add(other, other, out=mine)  # 2: store
    win.Unlock_all()
    win.Free()


def ufunc_in():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, other = np.zeros(8), np.ones(8)
    win.Lock_all()
    win.Put(mine, 1 - rank)
    np.add(mine, mine, out=other)
    win.Unlock_all()
    win.Free()


def copyto():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(8)
    win.Lock_all()
    win.Put(mine, 1 - rank)  # 1: Put
    np.copyto(mine, 3.0)  # 2: store
    win.Unlock_all()
    win.Free()


def copied_first():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(8)
    win.Lock_all()
    win.Put(mine.copy(), 1 - rank)
    np.copyto(mine, 3.0)
    win.Unlock_all()
    win.Free()


def store_by_a_view():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros((4, 2))
    columns = mine.T
    win.Lock_all()
    win.Put(mine[1:2], 1 - rank)  # 1: Put
    columns[0] += 1.0  # 2: store
    win.Unlock_all()
    win.Free()


def store_by_a_view_of_other_rows():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros((4, 2))
    columns = mine.T
    win.Lock_all()
    win.Put(mine[1:2], 1 - rank)
    columns[0, 2:] += 1.0
    win.Unlock_all()
    win.Free()


def mask_store():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.arange(8.0)
    win.Lock_all()
    win.Put(mine, 1 - rank)  # 1: Put
    mine[np.arange(8) > 5] = 0.0  # 2: store
    win.Unlock_all()
    win.Free()


def sorted_in_place():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.arange(8.0)[::-1].copy()
    win.Lock_all()
    win.Put(mine, 1 - rank)  # 1: Put
    mine.sort()  # 2: store|load
    win.Unlock_all()
    win.Free()


def sorted_copy():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.arange(8.0)[::-1].copy()
    win.Lock_all()
    win.Put(mine, 1 - rank)
    print(np.sort(mine))
    win.Unlock_all()
    win.Free()


def product_of_matrices():  # check: result-early n=2
    win = MPI.Win.Allocate(8 * 256, 8, comm=world)
    got, square = np.zeros((16, 16)), np.eye(16)
    win.Lock_all()
    win.Get(got, 1 - rank)  # 1: Get
    product = square @ got  # 2: load
    win.Unlock_all()
    assert product.shape == (16, 16)
    win.Free()


def shape_alone():  # check: clean n=2
    win = MPI.Win.Allocate(8 * 256, 8, comm=world)
    got = np.zeros((16, 16))
    win.Lock_all()
    win.Get(got, 1 - rank)
    like = np.empty_like(got.T.reshape(256, order="F"))
    assert like.shape == (256,) and got.shape == (16, 16) and len(got) == 16 and got.nbytes == 2048
    win.Unlock_all()
    win.Free()


def memoryview_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(8)
    view = memoryview(got)
    win.Lock_all()
    win.Get(got[4:], 1 - rank)  # 1: Get
    print(view[5])  # 2: load
    win.Unlock_all()
    win.Free()


def memoryview_load_beside():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(8)
    view = memoryview(got)
    win.Lock_all()
    win.Get(got[4:], 1 - rank)
    print(view[3])
    win.Unlock_all()
    win.Free()


def memoryview_store_into_the_window():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 1, comm=world)
    view = memoryview(win.tomemory())
    win.Fence()
    win.Put(np.ones(8, "u1"), 1 - rank, 8)  # 1: Put
    view[15:17] = b"ab"  # 2: store
    win.Fence()
    view.release()
    win.Free()


def memoryview_store_beside():  # check: clean n=2
    win = MPI.Win.Allocate(64, 1, comm=world)
    view = memoryview(win.tomemory())
    win.Fence()
    win.Put(np.ones(8, "u1"), 1 - rank, 8)
    view[16:18] = b"ab"
    win.Fence()
    view.release()
    win.Free()


def window_indexed():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 1, comm=world)
    memory = win.tomemory()
    win.Fence()
    win.Put(np.ones(8, "u1"), 1 - rank, 8)  # 1: Put
    print(memory[9])  # 2: load
    win.Fence()
    win.Free()


def turned_to_a_list():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8").reshape(2, 4)
    win.Fence()
    win.Put(np.ones(2), 1 - rank, 6)  # 1: Put
    print(part[1].tolist())  # 2: load
    win.Fence()
    win.Free()


def another_row_turned_to_a_list():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8").reshape(2, 4)
    win.Fence()
    win.Put(np.ones(2), 1 - rank, 6)
    print(part[0].tolist(), part[1, :2].tolist())
    win.Fence()
    win.Free()


def iterated():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(8)
    win.Lock_all()
    win.Get(got, 1 - rank)  # 1: Get
    total = sum(value for value in got)  # 2: load
    win.Unlock_all()
    assert total is not None
    win.Free()


def concatenated():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, other = np.zeros(4), np.zeros(4)
    win.Lock_all()
    win.Get(got, 1 - rank)  # 1: Get
    both = np.concatenate([other, got])  # 2: load
    win.Unlock_all()
    assert both.size == 8
    win.Free()


# from: RMARaceBench misc-002
def load_deep_in_calls():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)

    def deep(array, depth):
        return deep(array, depth - 1) if depth else array[0]  # 2: load

    win.Fence()
    win.Get(got, 1 - rank)  # 1: Get
    value = deep(got, 10)
    win.Fence()
    print(value)
    win.Free()


# from: RMARaceBench misc-001
def load_of_an_origin_deep_in_calls():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(1)

    def deep(array, depth):
        return deep(array, depth - 1) if depth else array[0]

    win.Fence()
    win.Put(mine, 1 - rank)
    value = deep(mine, 10)
    win.Fence()
    print(value)
    win.Free()


# from: RMARaceBench misc-012
def store_by_a_chosen_function():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)

    def store(array):
        array[0] = 42.0  # 2: store

    actions = {0: lambda array: win.Get(got, 1), 1: store}  # 1: Get
    win.Fence()
    actions[rank](part)
    win.Fence()
    win.Free()


# from: RMARaceBench misc-011
def load_by_a_chosen_function():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    actions = {0: lambda array: win.Get(got, 1), 1: lambda array: array.item(0)}
    win.Fence()
    actions[rank](part)
    win.Fence()
    win.Free()


# from: RMARaceBench misc-014
def store_by_an_alias():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    alias = np.asarray(part.reshape(2, 4).view("i8"))
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    else:
        alias[0, 0] = 42  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench misc-013
def load_by_an_alias():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    alias = np.asarray(part.reshape(2, 4).view("i8"))
    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    else:
        print(alias[0, 0])
    win.Fence()
    win.Free()


def large_halves():  # check: clean n=2
    large = np.zeros(1 << 17)
    half = large.size // 2 + 3
    win = MPI.Win.Allocate(large.nbytes, 8, comm=world)
    win.Lock_all()
    win.Put(large[:half], 1 - rank)
    large[half:] += 1.0
    win.Unlock_all()
    win.Free()


def large_halves_that_share_an_element():  # check: origin-reuse n=2
    large = np.zeros(1 << 17)
    half = large.size // 2 + 3
    win = MPI.Win.Allocate(large.nbytes, 8, comm=world)
    win.Lock_all()
    win.Put(large[:half], 1 - rank)  # 1: Put
    large[half - 1 :] += 1.0  # 2: store
    win.Unlock_all()
    win.Free()


def rows_of_a_large_window():  # check: clean n=2
    matrix = np.zeros((64, 1000))
    win = MPI.Win.Create(matrix, 8, comm=world)
    win.Fence()
    for row in range(0, 64, 2):
        win.Put(np.ones(1000), 1 - rank, 1000 * row)
    matrix[1::2] = 2.0
    win.Fence()
    assert matrix.sum() == 32 * 1000 * 3
    win.Free()


def a_column_of_a_large_window():  # check: local-access n=2
    matrix = np.zeros((64, 1000))
    win = MPI.Win.Create(matrix, 8, comm=world)
    win.Fence()
    win.Put(np.ones(1000), 1 - rank, 1000 * 40)  # 1: Put
    matrix[:, 999] = 2.0  # 2: store
    win.Fence()
    win.Free()


def many_flushed_puts():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.zeros(1)
    win.Lock_all()
    for step in range(300):
        mine[0] = step
        win.Put(mine, 1 - rank, step % 8)
        win.Flush(1 - rank)
    win.Unlock_all()
    win.Free()
