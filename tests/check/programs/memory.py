"""Memory that goes, or moves, while it is in use."""

import sys
import weakref

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def detached_before_the_flush():  # check: memory-gone n=2
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1, addresses[1])  # 2: Put
    world.Barrier()
    if rank == 1:
        win.Detach(memory)  # 1: Detach
    win.Unlock_all()
    if rank == 0:
        win.Detach(memory)
    win.Free()


def detached_after_the_flush():  # check: clean n=2
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1, addresses[1])
        win.Flush(1)
    world.Barrier()
    win.Detach(memory)
    win.Unlock_all()
    win.Free()


def put_after_the_detach():  # check: memory-gone n=2 raises caught
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Lock_all()
    if rank == 1:
        win.Detach(memory)  # 2: Detach
    world.Barrier()
    if rank == 0:
        try:
            win.Put(np.ones(1), 1, addresses[1])  # 1: Put
            win.Flush(1)
        except MPI.Exception as error:
            print(error)
        win.Detach(memory)
    win.Unlock_all()
    win.Free()


def attached_anew():  # check: clean n=2
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Lock_all()
    for _ in range(3):
        win.Attach(memory)
        addresses = world.allgather(MPI.Get_address(memory))
        win.Put(np.ones(1), 1 - rank, addresses[1 - rank])
        win.Flush(1 - rank)
        world.Barrier()
        win.Detach(memory)
    win.Unlock_all()
    win.Free()


def origin_freed_before_the_flush():  # check: memory-gone n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    origin = MPI.Alloc_mem(64)
    win.Lock_all()
    win.Put(origin, 1 - rank)  # 2: Put
    MPI.Free_mem(origin)  # 1: Free_mem
    win.Unlock_all()
    win.Free()


def origin_freed_after_the_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    origin = MPI.Alloc_mem(64)
    win.Lock_all()
    win.Put(origin, 1 - rank)
    win.Flush_local(1 - rank)
    MPI.Free_mem(origin)
    win.Unlock_all()
    win.Free()


# from: MPI-CorrBench MisplacedCall-MPIWinFree-bufferFree
def window_memory_freed_first():  # check: memory-gone n=2
    memory = MPI.Alloc_mem(64)
    win = MPI.Win.Create(memory, 8, comm=world)  # 2: Create
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    MPI.Free_mem(memory)  # 1: Free_mem
    win.Free()


def window_freed_first():  # check: clean n=2
    memory = MPI.Alloc_mem(64)
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    win.Free()
    MPI.Free_mem(memory)


def window_memory_loaded_after_the_free():  # check: memory-gone n=2 crashes
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    win.Free()  # 2: Free
    print(part[0])  # 1: load


def window_memory_copied_before_the_free():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    part = np.frombuffer(win, "f8").copy()
    win.Free()
    print(part[0])


def own_memory_loaded_after_the_free():  # check: clean n=2
    memory = np.zeros(8)
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    win.Free()
    memory += 1
    assert memory[0] == 2.0


def shared_memory_loaded_after_the_free():  # check: memory-gone n=2 near crashes
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    other = np.frombuffer(win.Shared_query(1 - rank)[0], "f8")
    win.Fence()
    win.Fence()
    win.Free()  # 2: Free
    print(other.sum())  # 1: load


def window_memory_moved():  # check: memory-gone n=2
    memory = np.zeros(8)
    win = MPI.Win.Create(memory, 8, comm=world)  # 2: Create
    memory.resize(1024, refcheck=False)  # 1: resize
    win.Free()


def memory_moved_after_the_free():  # check: clean n=2
    memory = np.zeros(8)
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    win.Free()
    memory.resize(1024, refcheck=False)


def origin_moved_before_the_flush():  # check: memory-gone n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(8)
    win.Lock_all()
    win.Put(mine, 1 - rank)  # 2: Put
    mine.resize(4096, refcheck=False)  # 1: resize
    win.Unlock_all()
    win.Free()


def origin_moved_after_the_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(8)
    win.Lock_all()
    win.Put(mine, 1 - rank)
    win.Flush(1 - rank)
    mine.resize(4096, refcheck=False)
    win.Unlock_all()
    win.Free()


def window_keeps_its_array():  # check: clean n=2
    win = MPI.Win.Create(np.zeros(8), 8, comm=world)
    win.Fence()
    win.Put(np.ones(8), 1 - rank)
    win.Fence()
    assert np.frombuffer(win, "f8").sum() == 8
    win.Free()


def operations_keep_their_arrays():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    for i in range(8):
        mine = np.full(1, float(i))
        win.Put(mine, 1 - rank, i)
        del mine
    win.Unlock_all()
    world.Barrier()
    assert np.frombuffer(win, "f8").tolist() == list(range(8))
    win.Free()


def window_used_after_the_free():  # check: memory-gone|bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    win.Fence()
    win.Free()  # 2: Free
    try:
        win.Put(np.ones(1), 1 - rank)  # 1: Put
    except MPI.Exception as error:
        print(error)


def variable_deleted_behind_a_load():  # check: clean n=1
    win = MPI.Win.Allocate(64, 8, comm=world)
    mem = np.frombuffer(win, "f8")
    array = np.ones(4)
    is_there = weakref.ref(array)
    mem[0]
    del array
    assert is_there() is None
    win.Free()


def variables_in_use_behind_a_load():  # check: clean n=1
    win = MPI.Win.Allocate(64, 8, comm=world)
    mem = np.frombuffer(win, "f8")
    one = 1
    found = locals()

    def trace(frame, event, argument):
        repr(found["mem"])  # NumPy loads it
        return trace

    mem[0]
    assert found["one"] == one
    before = sys.gettrace()
    sys.settrace(trace)
    frame = sys._getframe()
    frame.f_trace = trace
    mem[1]
    sys.settrace(before)
    frame.f_trace = None
    assert one == 1 and found["win"] is win
    win.Free()
