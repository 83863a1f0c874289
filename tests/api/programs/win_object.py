"""The programs of test_win_object.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import os
import pickle

import numpy as np
from rankside import near, rank, world

import gormapy
from gormapy import MPI

NODE = near()


def windows():
    "A window of each flavor, with and without memory: (window, bytes, displacement unit, flavor)."
    yield MPI.Win.Create(np.arange(10.0), 8, comm=world), 80, 8, MPI.WIN_FLAVOR_CREATE
    yield MPI.Win.Create(gormapy.shared_zeros(10), 8, comm=world), 80, 8, MPI.WIN_FLAVOR_CREATE
    yield MPI.Win.Create(MPI.BOTTOM, comm=world), 0, 1, MPI.WIN_FLAVOR_CREATE
    yield MPI.Win.Create(np.arange(10.0)[:0], 8, comm=world), 0, 8, MPI.WIN_FLAVOR_CREATE
    yield MPI.Win.Allocate(80, 4, comm=world), 80, 4, MPI.WIN_FLAVOR_ALLOCATE
    yield MPI.Win.Allocate(80 * rank, 4, comm=world), 80 * rank, 4, MPI.WIN_FLAVOR_ALLOCATE
    yield MPI.Win.Allocate_shared(80, comm=NODE), 80, 1, MPI.WIN_FLAVOR_SHARED
    yield MPI.Win.Create_dynamic(comm=world), 0, 1, MPI.WIN_FLAVOR_DYNAMIC


def fails(call, cls):
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == cls, error
    else:
        raise AssertionError("nothing was raised")


def memory_and_attributes():
    for win, size_, unit, flavor in windows():
        base, nbytes, disp_unit = win.attrs
        assert (nbytes, disp_unit, win.flavor, win.model) == (size_, unit, flavor, MPI.WIN_UNIFIED)
        keys = (MPI.WIN_BASE, MPI.WIN_SIZE, MPI.WIN_DISP_UNIT, MPI.WIN_CREATE_FLAVOR, MPI.WIN_MODEL)
        assert [win.Get_attr(key) for key in keys] == [base, nbytes, disp_unit, flavor, MPI.WIN_UNIFIED]
        for key in keys:
            fails(lambda: win.Set_attr(key, 1), MPI.ERR_KEYVAL)
        memory, view = win.tomemory(), memoryview(win)
        assert memory.format == view.format == "B" and not memory.readonly and not view.readonly
        assert len(memory) == view.nbytes == size_ and (not size_ or memory.address == base)
        if size_:
            memory[0:1] = b"x"
            assert view[0] == ord("x") and np.asarray(view)[0] == ord("x") and bytes(win)[:1] == b"x"
        comm = NODE if flavor == MPI.WIN_FLAVOR_SHARED else world
        assert (win.group_size, win.group_rank) == (comm.size, comm.rank)
        assert MPI.Group.Compare(win.Get_group(), comm.Get_group()) == MPI.IDENT
        win.Free()
        if size_:
            assert view[0] == ord("x")  # what shows the memory keeps it


def pickling():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(MPI.WIN_NULL, protocol)) is MPI.WIN_NULL
        assert pickle.loads(pickle.dumps(MPI.Win(), protocol)) == MPI.WIN_NULL
    for win, *_ in windows():
        try:
            pickle.dumps(win)
        except ValueError as error:
            assert "cannot serialize" in str(error)
        else:
            raise AssertionError("a window means nothing in another process")
        win.Free()


def attributes_of_the_program_and_names():
    said = []
    key = MPI.Win.Create_keyval(delete_fn=lambda win, keyval, value: said.append((bool(win), keyval == key, value)))
    for win, *_ in windows():
        said.clear()
        assert win.Get_attr(key) is None and win.name == ""
        win.Set_attr(key, {"a": 1})
        assert win.Get_attr(key) == {"a": 1}
        win.Set_attr(key, 2)
        assert said == [(True, True, {"a": 1})]
        win.name = "halo"
        assert MPI.Win(win).name == "halo"
        win.Delete_attr(key)
        win.Set_attr(key, 3)
        win.Free()
        assert said[1:] == [(True, True, 2), (True, True, 3)]
        fails(lambda: win.Get_attr(key), MPI.ERR_WIN)
    MPI.Win.Free_keyval(key)


def what_is_left_of_a_freed_window():
    for win, *_ in windows():
        same = MPI.Win.fromhandle(win.handle)
        assert same == win and win
        win.Free()
        assert not win and win == MPI.WIN_NULL
        for call in (
            win.tomemory,
            lambda: memoryview(win),
            lambda: win.attrs,
            lambda: win.flavor,
            win.Free,
            win.Fence,
            lambda: win.info,
            lambda: win.group,
            lambda: win.Get_attr(MPI.WIN_SIZE),
            lambda: win.Lock(0),
            lambda: win.Put(np.zeros(1), 0),
            lambda: same.Put(np.zeros(1), 0),
            lambda: same.Lock(0),
            same.Free,
            lambda: same.info,
            lambda: win.Set_info(MPI.Info.Create()),
        ):
            fails(call, MPI.ERR_WIN)


def window_of(size, comm=world, **kinds):
    make = MPI.Win.Allocate_shared if kinds.get("shared") else MPI.Win.Allocate
    win = make(size, 8, comm=comm)
    memory = np.frombuffer(win.tomemory(), "i8") if size else np.zeros(0, "i8")
    assert not memory.any(), "the memory of a new window is clear"
    return win, memory


def written(win, memory, value):
    """Have every rank write into all parts, also by an accumulate under a lock, and leave them full."""
    win.Fence(MPI.MODE_NOSUCCEED)
    win.Lock_all()
    for target in range(win.group_size):
        win.Accumulate(np.full(len(memory), value), target)
    win.Unlock_all()
    win.Fence()
    assert (memory == value * win.group_size).all()
    win.Fence()
    win.Put(np.full(len(memory), -1), (win.group_rank + 1) % win.group_size)
    win.Fence()


def windows_made_again():
    """A window that uses the memory of one that was freed is as a new one."""
    for turn in range(6):
        for size in (64, 4096, 64, 8192 if turn % 2 else 80):
            for shared in (False, True):
                win, memory = window_of(size, NODE if shared else world, shared=shared)
                written(win, memory, turn + 1)
                del memory
                win.Free()
        win = MPI.Win.Create(np.zeros(8, "i8"), 8, comm=world)
        win.Fence()
        win.Put(np.ones(1, "i8"), (rank + 1) % world.size)
        win.Fence()
        win.Post(world.group)
        win.Start(world.group)
        win.Complete()
        win.Wait()
        win.Lock((rank + 1) % world.size)
        win.Unlock((rank + 1) % world.size)
        win.Free()
        sizes = [0] * world.size
        sizes[turn % world.size] = 800
        win, memory = window_of(sizes[rank])
        win.Fence()
        win.Fence()
        del memory
        win.Free()


def memory_that_is_shown_is_not_used_again():
    """An array of a freed window keeps its values, whatever windows are made."""
    for holder in range(world.size):
        win, memory = window_of(256)
        written(win, memory, 5)
        memory[:] = 40 + rank
        world.Barrier()
        kept = memory if rank == holder else None
        del memory
        win.Free()
        others = [window_of(256) for _ in range(3)]
        for other, memory in others:
            written(other, memory, 6)
        assert kept is None or (kept == 40 + rank).all()
        del memory
        while others:
            others.pop()[0].Free()


def a_child_keeps_the_old_window():
    """A child's array of a window that its parent has freed never shows or changes what later windows have."""
    win, memory = window_of(256, shared=True)
    memory[:] = 7
    go, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go[0], 1)
        memory[:] = 66
        os.write(done[1], b"x")
        os._exit(0)
    del memory
    win.Free()
    others = [window_of(256, shared=True) for _ in range(3)]
    for _, memory in others:
        memory[:] = 5
    world.Barrier()
    os.write(go[1], b"x")
    os.read(done[0], 1)
    assert os.waitpid(child, 0)[1] == 0
    world.Barrier()
    for other, memory in others:
        assert (memory == 5).all()
        for r in range(world.size):
            assert (np.frombuffer(other.Shared_query(r)[0], memory.dtype) == 5).all()
    del memory
    while others:
        others.pop()[0].Free()
    for end in (*go, *done):
        os.close(end)


def windows_of_many_threads():
    """Threads make and free windows on communicators of the same ranks, each in its own time."""
    import threading

    comms = [world.Dup() for _ in range(3)]
    failures = []

    def work(k):
        try:
            for turn in range(40):
                win, memory = window_of(64 * (1 + (turn + k) % 5), comms[k])
                win.Fence()
                win.Put(np.full(len(memory), 1 + k), (comms[k].rank + 1) % comms[k].size)
                win.Fence()
                assert (memory == 1 + k).all()
                del memory
                win.Free()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(comms))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for comm in comms:
        comm.Free()
