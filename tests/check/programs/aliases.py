"""Arrays under other names: aliases, returned views, other objects over the same memory."""

import array

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


other = 1 - rank


def _window():
    win = MPI.Win.Allocate(64, 8, comm=world)
    return win, np.frombuffer(win, "f8")


def _same(array):
    return array[:]


# from: RMARaceBench misc-003
def put_and_load_of_an_alias():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(1)
    alias = mine
    win.Fence()
    win.Put(mine, other)
    print(alias[0])
    win.Fence()
    win.Free()


# from: RMARaceBench misc-004
def get_and_load_of_an_alias():  # check: result-early n=2
    win, _ = _window()
    got = np.zeros(1)
    alias = got
    win.Fence()
    win.Get(got, other)  # 1: Get
    print(alias[0])  # 2: load
    win.Fence()
    win.Free()


# from: RMARaceBench misc-005
def put_and_load_of_a_returned_view():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(1)
    win.Fence()
    win.Put(mine, other)
    print(_same(mine)[0])
    win.Fence()
    win.Free()


# from: RMARaceBench misc-006
def get_and_load_of_a_returned_view():  # check: result-early n=2
    win, _ = _window()
    got = np.zeros(1)
    win.Fence()
    win.Get(got, other)  # 1: Get
    print(_same(got)[0])  # 2: load
    win.Fence()
    win.Free()


# from: RMARaceBench misc-007
def put_and_load_by_an_address():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(1)
    again = np.frombuffer(MPI.memory.fromaddress(MPI.Get_address(mine), 8), "f8")
    win.Fence()
    win.Put(mine, other)
    print(again[0])
    win.Fence()
    win.Free()


# from: RMARaceBench misc-008
def get_and_load_by_an_address():  # check: result-early n=2
    win, _ = _window()
    got = np.zeros(1)
    again = np.frombuffer(MPI.memory.fromaddress(MPI.Get_address(got), 8), "f8")
    win.Fence()
    win.Get(got, other)  # 1: Get
    print(again[0])  # 2: load
    win.Fence()
    win.Free()


# from: RMARaceBench misc-009
def get_and_load_deep_at_the_target():  # check: clean n=2
    win, part = _window()
    got = np.zeros(1)

    def deep(array, depth):
        return deep(array, depth - 1) if depth else array[0]

    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    else:
        print(deep(part, 10))
    win.Fence()
    win.Free()


# from: RMARaceBench misc-010
def get_and_store_deep_at_the_target():  # check: local-access n=2
    win, part = _window()
    got = np.zeros(1)

    def deep(array, depth):
        if depth:
            deep(array, depth - 1)
        else:
            array[0] = 42.0  # 2: store

    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    else:
        deep(part, 10)
    win.Fence()
    win.Free()


# from: RMARaceBench misc-015
def get_and_load_of_a_returned_view_of_the_window():  # check: clean n=2
    win, part = _window()
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    else:
        print(_same(part)[0])
    win.Fence()
    win.Free()


# from: RMARaceBench misc-016
def get_and_store_in_a_returned_view_of_the_window():  # check: local-access n=2
    win, part = _window()
    got = np.zeros(1)
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    else:
        _same(part)[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


# from: RMARaceBench misc-017
def get_and_load_by_an_address_in_the_window():  # check: clean n=2
    win, part = _window()
    got = np.zeros(1)
    again = np.frombuffer(MPI.memory.fromaddress(MPI.Get_address(part), 8), "f8")
    win.Fence()
    if rank == 0:
        win.Get(got, 1)
    else:
        print(again[0])
    win.Fence()
    win.Free()


# from: RMARaceBench misc-018
def get_and_store_by_an_address_in_the_window():  # check: local-access n=2
    win, part = _window()
    got = np.zeros(1)
    again = np.frombuffer(MPI.memory.fromaddress(MPI.Get_address(part), 8), "f8")
    win.Fence()
    if rank == 0:
        win.Get(got, 1)  # 1: Get
    else:
        again[0] = 42.0  # 2: store
    win.Fence()
    win.Free()


def attribute_of_an_object():  # check: origin-reuse n=2
    class Grid:
        def __init__(self):
            self.cells = np.ones((3, 3))

        @property
        def edge(self):
            return self.cells[2]

        def step(self):
            self.cells[1:] *= 0.5  # 2: store

    win, _ = _window()
    grid = Grid()
    win.Fence()
    win.Put(grid.edge, other)  # 1: Put
    grid.step()
    win.Fence()
    win.Free()


def attribute_of_an_object_beside():  # check: clean n=2
    class Grid:
        def __init__(self):
            self.cells = np.ones((3, 3))

        @property
        def edge(self):
            return self.cells[2]

        def step(self):
            self.cells[:2] *= 0.5

    win, _ = _window()
    grid = Grid()
    win.Fence()
    win.Put(grid.edge, other)
    grid.step()
    win.Fence()
    win.Free()


def bytearray_stored():  # check: origin-reuse n=2 foreign
    win, _ = _window()
    mine = bytearray(8)
    win.Fence()
    win.Put([mine, 8, MPI.BYTE], other, (0, 8, MPI.BYTE))  # 1: Put
    mine[3] = 1  # 2: store
    win.Fence()
    win.Free()


def bytearray_stored_after_the_fence():  # check: clean n=2 foreign
    win, _ = _window()
    mine = bytearray(8)
    win.Fence()
    win.Put([mine, 8, MPI.BYTE], other, (0, 8, MPI.BYTE))
    win.Fence()
    mine[3] = 1
    win.Free()


def array_of_python_loaded():  # check: result-early n=2 foreign
    win, _ = _window()
    got = array.array("d", [0.0] * 8)
    win.Fence()
    win.Get(got, other)  # 1: Get
    print(got[7])  # 2: load
    win.Fence()
    win.Free()


def array_of_python_loaded_beside():  # check: clean n=2 foreign
    win, _ = _window()
    got = array.array("d", [0.0] * 8)
    win.Fence()
    win.Get(memoryview(got)[:4], other)
    print(got[7])
    win.Fence()
    win.Free()


def memory_of_mpi_stored():  # check: origin-reuse n=2
    win, _ = _window()
    memory = MPI.Alloc_mem(64)
    mine = np.frombuffer(memory, "f8")
    win.Fence()
    win.Put(mine, other)  # 1: Put
    mine[7] = 1.0  # 2: store
    win.Fence()
    win.Free()
    MPI.Free_mem(memory)


def memory_of_mpi_stored_beside():  # check: clean n=2
    win, _ = _window()
    memory = MPI.Alloc_mem(64)
    mine = np.frombuffer(memory, "f8")
    win.Fence()
    win.Put(mine[:7], other)
    mine[7] = 1.0
    win.Fence()
    win.Free()
    MPI.Free_mem(memory)


def put_to_oneself_stored():  # check: origin-reuse n=1
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(8)
    win.Lock(0)
    win.Put(mine, 0)  # 1: Put
    mine[:] = 0.0  # 2: store
    win.Unlock(0)
    win.Free()


def put_to_oneself_stored_after_the_unlock():  # check: clean n=1
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(8)
    win.Lock(0)
    win.Put(mine, 0)
    win.Unlock(0)
    mine[:] = 0.0
    assert np.frombuffer(win, "f8").sum() == 8.0
    win.Free()


def get_from_oneself_loaded():  # check: result-early n=1
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.ones(8)
    win.Fence()
    win.Get(got, 0)  # 1: Get
    print(got.any())  # 2: load
    win.Fence()
    win.Free()


def get_from_oneself_loaded_after_the_fence():  # check: clean n=1
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.ones(8)
    win.Fence()
    win.Get(got, 0)
    win.Fence()
    print(got.any())
    win.Free()


def new_arrays_where_old_ones_were():  # check: clean n=2
    win, part = _window()
    win.Lock_all()
    for i in range(8):
        old = np.full(64, float(i))
        win.Put(old[:1], other, i)
        win.Flush_local(other)
        del old
        new = np.empty(64)
        new[:] = -1.0
        del new
    win.Unlock_all()
    world.Barrier()
    assert part.tolist() == list(range(8))
    win.Free()


def new_arrays_beside_pending_ones():  # check: clean n=2
    win, part = _window()
    win.Lock_all()
    for i in range(8):
        win.Put(np.full(1, float(i)), other, i)
        new = np.empty(1)
        new[:] = -1.0
        del new
    win.Unlock_all()
    world.Barrier()
    assert part.tolist() == list(range(8))
    win.Free()


def names_bound_anew():  # check: clean n=2
    win, part = _window()
    mine = np.ones(8)
    win.Lock_all()
    win.Put(mine, other)
    mine = mine + 1
    mine[0] = 5.0
    win.Unlock_all()
    world.Barrier()
    assert part.sum() == 8.0
    win.Free()


def array_changed_in_place():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(8)
    win.Lock_all()
    win.Put(mine, other)  # 1: Put
    mine += 1  # 2: store
    win.Unlock_all()
    win.Free()
