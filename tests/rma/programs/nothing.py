"""Nothing to do: no process, no elements, no memory; and what belongs to a window: attributes, names, hints."""

import time

import numpy as np
from onesided import GORMAPY, MPI, Window, case, main, once, rank, same, size, world


def every_call(win, target, origin, place, op=MPI.SUM):
    """Make every call on one target."""
    result = np.full(origin.size, 7, origin.dtype)
    win.Put(origin, target, place)
    win.Get(result, target, place)
    win.Accumulate(origin, target, place, op)
    win.Get_accumulate(origin, result, target, place, op)
    return result


@case
def no_process(flavour):
    """PROC_NULL in every call, with and without memory, in every epoch."""
    one, old = np.ones(1), np.zeros(1)
    with Window(flavour, 4, "f8") as w:
        for begin, end in [
            (w.win.Fence, w.win.Fence),
            (w.win.Lock_all, w.win.Unlock_all),
            (lambda: w.win.Lock(rank), lambda: w.win.Unlock(rank)),
            (lambda: w.win.Lock(MPI.PROC_NULL), lambda: w.win.Unlock(MPI.PROC_NULL)),
            (lambda: w.win.Lock(MPI.PROC_NULL, MPI.LOCK_SHARED), lambda: w.win.Unlock(MPI.PROC_NULL)),
        ]:
            begin()
            same(every_call(w.win, MPI.PROC_NULL, np.ones(3), 5), [7, 7, 7])
            same(every_call(w.win, MPI.PROC_NULL, np.ones(300), 10**12), [7] * 300)
            w.win.Put(None, MPI.PROC_NULL)
            w.win.Get(None, MPI.PROC_NULL)
            w.win.Accumulate(None, MPI.PROC_NULL)
            if GORMAPY:  # MPICH refuses what mpi4py makes of it
                w.win.Fetch_and_op(one, old, MPI.PROC_NULL)
                w.win.Fetch_and_op(None, None, MPI.PROC_NULL)
                w.win.Compare_and_swap(one.astype("i8"), one.astype("i8"), old.astype("i8"), MPI.PROC_NULL)
                w.win.Compare_and_swap(None, None, None, MPI.PROC_NULL)
            end()
        w.win.Lock_all()
        w.win.Flush(MPI.PROC_NULL) if GORMAPY else None
        w.win.Flush_local(MPI.PROC_NULL) if GORMAPY else None
        w.win.Unlock_all()
        w.settle()
        assert not w.mine.any() and not old.any()


@case
def no_elements(flavour):
    """Counts of zero, of any type, at any displacement inside; types without elements."""
    empty = np.zeros(0)
    nothing = MPI.DOUBLE.Create_contiguous(0).Commit()
    hollow = MPI.DOUBLE.Create_vector(0, 3, 5).Commit()
    target = (rank + 1) % size
    with Window(flavour, 4, "f8") as w:
        w.mine[:] = 3
        w.win.Fence()
        for element in (0, 4):
            every_call(w.win, target, empty, w.at(target, element))
        some = np.full(4, 9.0)
        for datatype in (nothing, hollow):
            w.win.Put([some, 4, datatype], target, (w.at(target), 2, datatype))
            w.win.Get([some, 1, datatype], target, (w.at(target), 1, datatype))
            w.win.Put([some, 0, MPI.DOUBLE], target, (w.at(target), 3, datatype))
        w.win.Put([some, 0, MPI.DOUBLE], target, (w.at(target), 0, MPI.INT))
        w.win.Fence()
        same(w.mine, [3] * 4)
        same(some, [9] * 4)
        world.Barrier()
    nothing.Free()
    hollow.Free()


@case
def no_memory(flavour):
    """Windows of zero bytes on all ranks or on some."""
    for counts in ([0] * size, [r % 2 for r in range(size)]):
        w = Window(flavour, counts[rank], "f8")
        w.win.Fence()
        for target in range(size):
            every_call(w.win, target, np.zeros(0), w.at(target))
            if counts[target]:
                w.win.Accumulate(np.ones(1), target, w.at(target))
        w.win.Fence()
        same(w.mine, [size] * counts[rank])
        w.win.Lock_all()
        w.win.Flush_all()
        w.win.Unlock_all()
        w.free()


@once
def none_as_memory():
    """Create without memory on some ranks; the window works for the others."""
    memory = np.zeros(3) if rank == size - 1 else None
    win = MPI.Win.Create(memory, 8, comm=world)
    assert win.attrs[1] == (24 if memory is not None else 0)
    win.Fence()
    win.Accumulate(np.ones(3), size - 1)
    win.Fence()
    if memory is not None:
        same(memory, [size] * 3)
    win.Free()
    assert win == MPI.WIN_NULL and not win


@case
def epochs_without_anything(flavour):
    with Window(flavour, 1, "f8") as w:
        for _ in range(20):
            w.win.Fence()
            w.win.Lock_all()
            w.win.Unlock_all()
            w.win.Lock(rank)
            w.win.Sync()
            w.win.Unlock(rank)
            for target in range(size):
                w.win.Lock(target, MPI.LOCK_SHARED)
                w.win.Unlock(target)
        w.win.Fence(MPI.MODE_NOSTORE | MPI.MODE_NOPUT | MPI.MODE_NOPRECEDE)
        w.win.Fence(MPI.MODE_NOSUCCEED | MPI.MODE_NOPUT)
        w.win.Lock_all(MPI.MODE_NOCHECK)
        w.win.Unlock_all()
        world.Barrier()
        w.win.Lock((rank + 1) % size, MPI.LOCK_EXCLUSIVE, MPI.MODE_NOCHECK)
        w.win.Unlock((rank + 1) % size)


@case
def several_targets_locked(flavour):
    """Locks on all targets one by one, of both kinds, unlocked in another order."""
    with Window(flavour, size, "i8") as w:
        for target in range(size):
            w.win.Lock(target, MPI.LOCK_SHARED)
        one = np.array([rank + 1])
        for target in range(size):
            w.win.Put(one, target, w.at(target, rank))
        for target in reversed(range(size)):
            w.win.Unlock(target)
        w.settle()
        same(w.mine, np.arange(size) + 1)


@case
def attributes(flavour):
    """What is attached to a window: predefined attributes, own ones with callbacks, names, hints."""
    log = []
    with_nothing = MPI.Win.Create_keyval()
    keyval = MPI.Win.Create_keyval(delete_fn=lambda win, key, value: log.append((key, value)))
    w = Window(flavour, 4, "i4")
    base, nbytes, unit = (w.win.Get_attr(k) for k in (MPI.WIN_BASE, MPI.WIN_SIZE, MPI.WIN_DISP_UNIT))
    if flavour != "dynamic":
        assert (base, nbytes, unit) == w.win.attrs == (MPI.Get_address(w.memory), 16, 4)
    flavours = {
        "allocate": MPI.WIN_FLAVOR_ALLOCATE,
        "shared": MPI.WIN_FLAVOR_SHARED,
        "dynamic": MPI.WIN_FLAVOR_DYNAMIC,
    }
    assert w.win.flavor == w.win.Get_attr(MPI.WIN_CREATE_FLAVOR) == flavours.get(flavour, MPI.WIN_FLAVOR_CREATE)
    assert w.win.model == w.win.Get_attr(MPI.WIN_MODEL) == MPI.WIN_UNIFIED
    assert w.win.Get_attr(keyval) is None
    w.win.Set_attr(keyval, "value")
    w.win.Set_attr(with_nothing, 5)
    assert w.win.Get_attr(keyval) == "value" and w.win.Get_attr(with_nothing) == 5
    w.win.Set_attr(keyval, "other")
    assert log == [(keyval, "value")]
    w.win.Delete_attr(with_nothing)
    assert w.win.Get_attr(with_nothing) is None
    w.win.Set_name("halo")
    assert w.win.Get_name() == w.win.name == "halo"
    other = Window(flavour, 1, "i4")
    assert other.win.Get_attr(keyval) is None and other.win.name != "halo"
    other.free()
    info = w.win.Get_info()
    assert isinstance(info, MPI.Info)
    info.Free()
    w.free()
    assert log == [(keyval, "value"), (keyval, "other")]
    assert MPI.Win.Free_keyval(keyval) == MPI.Win.Free_keyval(with_nothing) == MPI.KEYVAL_INVALID


@once
def freeing_waits_for_all():
    """Free completes only when nobody needs the memory any more: a late rank's operation arrives."""
    memory = np.zeros(1, "i8")
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Lock_all()
    if rank == size - 1:
        time.sleep(0.2)
        win.Put(np.array([44]), 0)
    win.Unlock_all()
    win.Free()
    assert rank or memory[0] == 44
    assert win == MPI.WIN_NULL


main()
