"""The programs of test_shared_memory.py. Each begins MPI itself, or doesn't: there is shared memory without it."""

import gc
import importlib
import multiprocessing as mp
import os
import resource

import numpy as np

import gormapy


def arena():
    """Return the descriptor of the memory that this process shares, if it has any."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "gormapy-arena" in os.readlink(f"/proc/self/fd/{fd}"):
                return int(fd)
        except OSError:  # the folder's own
            pass
    return None


def used():
    return os.stat(arena()).st_blocks * 512


def mapped():
    with open("/proc/self/maps") as file:
        return sum("gormapy-arena" in line for line in file)


def arrays_are_what_was_asked_for():
    for shape in (5, (3, 4), (), 0, (0, 3), [2, 2], np.int64(3), (600, 700)):
        for dtype in ("d", "i1", np.complex64, "S5", "M8[ns]", [("a", "i4"), ("b", "f8")]):
            for order in "CF":
                for make in (gormapy.shared_empty, gormapy.shared_zeros):
                    array = make(shape, dtype, order)
                    like = np.zeros(shape, dtype, order)
                    assert array.shape == like.shape and array.dtype == like.dtype
                    assert array.strides == like.strides or not array.size
                    assert array.flags.writeable and array.flags.aligned
                    assert (gormapy.shared_zeros(shape, dtype, order) == like).all()
                    if array.size:
                        array[...] = np.ones(shape, "i1").astype(dtype) if dtype != "S5" else b"abc"
    assert gormapy.shared_zeros(3).dtype == float


def what_is_refused(mpi, refused):
    if mpi:
        importlib.import_module("gormapy.MPI")
    for arguments, kind, text in refused:
        for make in ("shared_empty", "shared_zeros"):
            try:
                eval(f"gormapy.{make}({arguments})")
            except (TypeError, ValueError, MemoryError) as error:
                assert type(error).__name__ == kind and text in str(error), (arguments, error)
                assert (kind == "TypeError" and "nonsense" in text) or str(error).startswith(make), error
            else:
                assert not arguments, "nothing was raised"
    assert gormapy.shared_zeros(3).sum() == 0


def memory_lives_as_long_as_its_last_view():
    array = gormapy.shared_zeros((1000, 1000))
    array[:] = 1
    assert used() >= 8_000_000
    view = array[500:, ::2].T
    flat = memoryview(array).cast("B")
    del array
    gc.collect()
    assert view.sum() == 250_000 and flat[-1] == 63
    del view
    assert used() >= 8_000_000
    flat.release()
    del flat
    gc.collect()
    assert used() == 0 and mapped() == 0, (used(), mapped())
    assert (gormapy.shared_empty((1000, 1000)) == 0).all()  # whoever gets the same pages sees nothing of it


def memory_outlives_a_window_over_it_and_a_window_keeps_its_memory():
    from rankside import MPI, rank, world

    array = gormapy.shared_zeros(1000, "i8")
    win = MPI.Win.Create(array[100:200], 8, comm=world)
    win.Fence()
    win.Put(np.full(10, rank + 1), 1 - rank, target=90)
    win.Fence()
    win.Free()
    assert (array[190:200] == 2 - rank).all() and array.sum() == 10 * (2 - rank)

    win = MPI.Win.Create(array, 8, comm=world)
    del array
    gc.collect()
    win.Fence()
    win.Put(np.full(10, rank + 5), 1 - rank)
    win.Fence()
    assert np.frombuffer(win.tomemory(), "i8").sum() == 10 * (2 - rank) + 10 * (6 - rank)
    win.Free()
    del win
    gc.collect()
    world.Barrier()
    assert mapped() == 0 or used() == 0, (used(), mapped())


def windows_recognise_it():
    from rankside import MPI, rank, world

    from gormapy._ext import core

    big, small, own = gormapy.shared_zeros((100, 100)), gormapy.shared_zeros(4), np.zeros(100)
    allocated = MPI.Alloc_mem(5000)
    peer = 1 - rank
    for memory, direct in (
        (big, True),
        (big[7:9], True),
        (small, True),
        (small[1:2], True),
        (allocated, True),
        (memoryview(allocated)[100:200], True),
        (own, False),
    ):
        win = MPI.Win.Create(memory, comm=world)
        assert (core.WinPath(win._h, peer) == "direct") == direct, core.WinPath(win._h, peer)
        win.Lock(peer)
        win.Put(np.full(1, 40 + rank, "u1"), peer, 3)
        win.Unlock(peer)
        world.Barrier()
        assert win.tomemory()[3] == 41 - rank
        world.Barrier()
        win.Free()
    win = MPI.Win.Create(big if rank else own, comm=world)  # each part by itself
    assert core.WinPath(win._h, 1) == "direct" and (core.WinPath(win._h, 0) == "direct") == (rank == 0)
    win.Free()


def cycles_leave_nothing_behind(nbytes):
    from gormapy import MPI

    def cycle():
        array = gormapy.shared_empty(nbytes, "u1")
        array[:] = 255
        memory = MPI.Alloc_mem(nbytes)
        memory[-1:] = b"x"
        MPI.Free_mem(memory)
        kept = gormapy.shared_zeros(nbytes, "u1")
        assert not kept.any()

    cycle()
    fds = len(os.listdir("/proc/self/fd"))
    before = mapped(), used(), os.stat(arena()).st_size
    for _ in range(3000):
        cycle()
    after = mapped(), used(), os.stat(arena()).st_size
    assert len(os.listdir("/proc/self/fd")) <= fds + 10, (fds, os.listdir("/proc/self/fd"))
    assert after == before, (before, after)


def a_hundred_thousand_small_ones():
    from gormapy import MPI

    fds = len(os.listdir("/proc/self/fd"))
    many = [MPI.Alloc_mem(64) for _ in range(100_000)]
    assert len({m.address for m in many}) == 100_000
    # the core has a few descriptors that come and go, but not one for each
    assert len(os.listdir("/proc/self/fd")) <= fds + 10, (fds, os.listdir("/proc/self/fd"))
    assert mapped() < 1000, mapped()
    many[7][:] = b"7" * 64
    assert bytes(many[8]) == bytes(64) and bytes(many[6]) == bytes(64)
    del many
    assert mapped() <= 1 and used() <= 65536


def memory_is_there_when_it_is_touched():
    array = gormapy.shared_empty(5 << 30)  # 40 GiB
    array[-1] = array[4 << 30] = 7.0
    assert array.nbytes == 40 << 30 and used() <= 8 << 20, used()
    assert array[0] == 0 and array[-1] == 7
    del array
    assert used() == 0


def total(part):
    """Return what a child of forked_children_see_the_same_memory sees in a part of the arrays."""
    return array[part::4].sum() + small.sum()


def forked_children_see_the_same_memory():
    global array, small
    from rankside import rank, world

    array = gormapy.shared_zeros(10_000)
    small = gormapy.shared_zeros(4)
    small[:] = 5

    if rank == 0:
        with mp.get_context("fork").Pool(2) as pool:
            array[:] = 2  # after the fork
            assert sum(pool.map(total, range(4))) == 20_080
        child = os.fork()
        if child == 0:
            array[0] = 3
            del array, small  # in the child alone
            gc.collect()
            try:
                gormapy.shared_empty(3)
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert array[0] == 3 and array.sum() == 20_001 and small.sum() == 20
        array[:] = 1
        del array, small
        gc.collect()
        assert used() <= 65536
    world.Barrier()


def where_there_can_be_no_memfd_memory_is_private_and_info_says_so():
    from gormapy import MPI, info

    zeros, align = gormapy.shared_zeros, MPI.Info.Create({"mpi_minimum_memory_alignment": "65536"})
    MPI.Alloc_mem(0)  # what is imported on first use is imported
    had = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/dev/null", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, had[1]))
    array = zeros(10_000)
    memory = MPI.Alloc_mem(100, align)
    resource.setrlimit(resource.RLIMIT_NOFILE, had)
    assert arena() is None
    array[:] = 4
    assert array.sum() == 40_000 and memory.address % 65536 == 0 and bytes(memory) == bytes(100)
    win = MPI.Win.Create(array, comm=MPI.COMM_WORLD)
    win.Free()
    found = info.report()["shared_arrays"]
    assert not found["usable"]
    print(found["text"])


def alignment_as_the_hint_says():
    from gormapy import MPI

    def alloc(n, align):
        return MPI.Alloc_mem(n, MPI.Info.Create({"mpi_minimum_memory_alignment": align, "unknown": "x"}))

    for power in range(22):
        for n in (1, 100, 70_000):
            assert alloc(n, str(1 << power)).address % (1 << power) == 0
    for bad in ("0", "3", "-8", "", "x", "8.0", "4194304", "9" * 40, "\u0663"):
        try:
            alloc(8, bad)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_INFO_VALUE
            assert "a power of two from 1 to 2097152" in str(error)
        else:
            raise AssertionError(bad)
    assert len(MPI.Alloc_mem(0)) == 0


def arrays_travel_as_copies():
    from rankside import rank, world

    mine = gormapy.shared_zeros(10)
    mine[:] = rank
    other = world.sendrecv(mine, 1 - rank, source=1 - rank)
    other += 1
    assert (other == 2 - rank).all() and (mine == rank).all()
    got = gormapy.shared_empty(10)
    world.Sendrecv(mine, 1 - rank, 0, got, 1 - rank, 0)
    assert (got == 1 - rank).all()
