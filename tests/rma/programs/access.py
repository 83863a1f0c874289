"""Access of every kind: strided, transposed, to oneself, in the middle, over windows that share memory or ranks."""

import numpy as np
from onesided import FLAVOURS, MPI, Window, case, fails, main, once, rank, same, size, world


@case
def strided_in_place(flavour):
    """A sub-block of the target's matrix by subarray, vector, hvector and indexed types, put, got and accumulated."""
    rows, columns = 9, 11
    whole, sub, start = (rows, columns), (4, 5), (3, 2)
    inside = np.s_[3:7, 2:7]
    types = [
        (MPI.INT.Create_subarray(whole, sub, start), 0),
        (MPI.INT.Create_vector(4, 5, columns), 3 * columns + 2),
        (MPI.INT.Create_hvector(4, 5, 4 * columns), 3 * columns + 2),
        (MPI.INT.Create_indexed([5] * 4, [columns * i for i in range(4)]), 3 * columns + 2),
        (MPI.INT.Create_indexed_block(5, [columns * i for i in range(4)]), 3 * columns + 2),
        (MPI.INT.Create_hindexed([5] * 4, [4 * columns * i for i in range(4)]), 3 * columns + 2),
    ]
    target = (rank + 1) % size
    block = np.arange(20, dtype="i4").reshape(sub) + 1000 * rank
    theirs = np.arange(20, dtype="i4").reshape(sub) + 1000 * ((rank - 1) % size)
    for datatype, first in types:
        datatype.Commit()
        with Window(flavour, rows * columns, "i4") as w:
            place = (w.at(target, first), 1, datatype)
            w.win.Fence()
            w.win.Put([block, 20, MPI.INT], target, place)
            w.win.Fence()
            expected = np.zeros(whole, "i4")
            expected[inside] = theirs
            same(w.mine.reshape(whole), expected)
            w.win.Fence()
            w.win.Accumulate([block, 20, MPI.INT], target, place, MPI.SUM)
            w.win.Fence()
            same(w.mine.reshape(whole), 2 * expected)
            again = np.full(whole, -1, "i4")
            back = [again.reshape(-1)[first:], 1, datatype]
            w.win.Get(back, target, place)
            w.win.Fence()
            expected = np.full(whole, -1, "i4")
            expected[inside] = 2 * block
            same(again, expected)
            old = np.zeros(sub, "i4")
            w.win.Get_accumulate([block, 20, MPI.INT], [old, 20, MPI.INT], target, place, MPI.REPLACE)
            w.win.Fence()
            same(old, 2 * block)
            same(w.mine.reshape(whole)[inside], theirs)
            world.Barrier()
        datatype.Free()


@case
def transposes(flavour):
    """A matrix arrives transposed by a type at the target, at the origin, and by both, not at all."""
    n, m = 24, 37
    columns = MPI.DOUBLE.Create_vector(n, 1, m).Create_resized(0, 8).Commit()  # one column of n x m
    struct = MPI.Datatype.Create_struct(
        [1] * m, [8 * i for i in range(m)], [MPI.DOUBLE.Create_vector(n, 1, m)] * m
    ).Commit()
    a = np.arange(n * m, dtype="f8").reshape(n, m) + rank
    b = a - rank + (rank - 1) % size
    target = (rank + 1) % size
    with Window(flavour, n * m, "f8") as w:
        here = w.at(target)
        w.win.Fence()
        w.win.Put([a.T.copy(), n * m, MPI.DOUBLE], target, (here, m, columns))
        w.win.Fence()
        same(w.mine.reshape(n, m), b)
        world.Barrier()
        w.win.Fence()
        w.win.Put([a, m, columns], target, (here, n * m, MPI.DOUBLE))
        w.win.Fence()
        same(w.mine.reshape(m, n), b.T)
        world.Barrier()
        w.win.Fence()
        w.win.Put([a, m, columns], target, (here, 1, struct))
        w.win.Fence()
        same(w.mine.reshape(n, m), b)
        got = np.zeros((m, n))
        w.win.Fence()
        w.win.Get([got, n * m, MPI.DOUBLE], target, (here, m, columns))
        w.win.Fence()
        same(got.T, a)
        got = np.zeros((n, m))
        w.win.Get([got, m, columns], target, (here, n * m, MPI.DOUBLE))
        w.win.Fence()
        same(got.T.reshape(-1), a.reshape(-1))
        old = np.zeros((m, n))
        w.win.Get_accumulate([a, m, columns], [old, n * m, MPI.DOUBLE], target, (here, m, columns), MPI.SUM)
        w.win.Fence()
        same(old.T, a)
        same(w.mine.reshape(n, m), 2 * b)
        world.Barrier()
    columns.Free()
    struct.Free()


@case
def forms_of_a_target(flavour):
    """A place at the target in every form: calls read the usual ones in the extension, the others in Python."""
    forms = [
        lambda at: at,
        np.int64,
        lambda at: [at],
        lambda at: (at, 3),
        lambda at: [at, 3, MPI.INT],
        lambda at: (np.int64(at), np.int32(3), MPI.INT),
        lambda at: (at, 3, "i"),
        lambda at: [at, 12, MPI.BYTE],
    ]
    target = (rank + 1) % size
    values, theirs = np.arange(1, 4, dtype="i4") + rank, np.arange(1, 4, dtype="i4") + (rank - 1) % size
    spaced = MPI.INT.Create_vector(3, 1, 2).Commit()
    apart = np.zeros(6, "i4")
    apart[::2] = values
    for form in forms:
        with Window(flavour, 8, "i4") as w:
            back, old, place = np.zeros(3, "i4"), np.zeros(3, "i4"), form(w.at(target, 2))
            w.win.Lock_all()
            if isinstance(place, (tuple, list)) and len(place) == 3:
                w.win.Put([apart, 1, spaced], target, place)
                w.win.Rput([apart, 1, spaced], target, place).Wait()
                w.win.Flush(target)
                w.win.Rget([apart, 1, spaced], target, place).Wait()
                w.win.Get([apart, 1, spaced], target, place)
                w.win.Flush(target)
            w.win.Put(values, target, place)
            w.win.Flush(target)
            if not isinstance(place, list) or len(place) < 3 or place[2] != MPI.BYTE:
                w.win.Accumulate(values, target, place)
                w.win.Get_accumulate(values, old, target, place)
                w.win.Flush(target)
                same(old, 2 * values)
                w.win.Raccumulate(values, target, place).Wait()
                w.win.Rget_accumulate(-3 * values, old, target, place).Wait()
                same(old, 4 * values)
            w.win.Rget(back, target, place).Wait()
            w.win.Unlock_all()
            same(back, values)
            same(apart, [values[0], 0, values[1], 0, values[2], 0])
            w.settle()
            same(w.mine, [0, 0, *theirs, 0, 0, 0])
    spaced.Free()


@case
def to_oneself(flavour):
    """Every call on the own rank, under each kind of epoch that allows it."""
    with Window(flavour, 8, "i8") as w:
        for epoch in ("fence", "exclusive", "shared", "all"):
            w.win.Fence() if epoch == "fence" else None
            w.win.Lock(rank) if epoch == "exclusive" else None
            w.win.Lock(rank, MPI.LOCK_SHARED) if epoch == "shared" else None
            w.win.Lock_all() if epoch == "all" else None
            values, back, old, one = np.arange(8) + rank, np.zeros(8, "i8"), np.zeros(1, "i8"), np.ones(1, "i8")
            w.win.Put(values, rank, w.at(rank))
            w.win.Fence() if epoch == "fence" else w.win.Flush(rank)
            w.win.Get(back, rank, w.at(rank))
            w.win.Fence() if epoch == "fence" else w.win.Flush(rank)
            same(back, values)
            w.win.Accumulate(values, rank, w.at(rank))
            w.win.Fetch_and_op(one, old, rank, w.at(rank, 3))
            w.win.Fence() if epoch == "fence" else w.win.Flush_local(rank)
            same(old, [2 * (rank + 3)])
            w.win.Compare_and_swap(one, old + 1, old, rank, w.at(rank, 3))
            w.win.Fence(MPI.MODE_NOSUCCEED) if epoch == "fence" else None
            w.win.Unlock(rank) if epoch in ("exclusive", "shared") else None
            w.win.Unlock_all() if epoch == "all" else None
            w.settle()
            expected = 2 * values
            expected[3] = 1
            same(w.mine, expected, epoch)
            same(old, [2 * (rank + 3) + 1])
            world.Barrier()


@case
def in_the_middle(flavour):
    """Puts and gets of all sizes and displacements leave everything around them alone."""
    nbytes = 3000
    with Window(flavour, nbytes, "u1", disp_unit=1) as w:
        target = (rank + 1) % size
        draw = np.random.default_rng(7)  # the same on all ranks
        model = np.zeros(nbytes, "u1")
        for _ in range(60):
            count = int(draw.choice([1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 1000]))
            start = int(draw.integers(0, nbytes - count + 1))
            piece = draw.integers(0, 256, count, "u1")
            w.win.Lock(target)
            w.win.Put(piece, target, w.byte(target, start))
            w.win.Unlock(target)
            model[start : start + count] = piece
            begin = int(draw.integers(0, nbytes - count + 1))
            back = np.zeros(count, "u1")
            w.win.Lock(target, MPI.LOCK_SHARED)
            w.win.Get(back, target, w.byte(target, begin))
            w.win.Unlock(target)
            same(back, model[begin : begin + count])
        w.settle()
        same(w.mine, model)


@case
def long_ones(flavour):
    """Megabytes in one call, odd sizes and starts, through each call that takes many elements."""
    count = (1 << 20) + 3
    with Window(flavour, count, "i4") as w:
        target = (rank + 1) % size
        values = np.arange(count, dtype="i4")
        back = np.zeros(count - 1, "i4")
        w.win.Lock(target)
        w.win.Put(values[1:], target, (w.at(target, 1), count - 1, MPI.INT))
        w.win.Flush(target)
        w.win.Accumulate(values, target, w.at(target), MPI.SUM)
        w.win.Flush(target)
        w.win.Get_accumulate(values[1:], back, target, w.at(target, 1), MPI.MAX)
        w.win.Unlock(target)
        same(back, 2 * values[1:])
        w.settle()
        same(w.mine, 2 * values)


@case
def origin_types_differ_from_target_types(flavour):
    """Only the elements have to agree: 12 bytes-of-4 in any shape on either side."""
    shapes = [
        (12, MPI.INT),
        (6, MPI.INT.Create_contiguous(2)),
        (1, MPI.INT.Create_vector(12, 1, 2)),
        (4, MPI.INT.Create_vector(3, 1, 3).Create_resized(0, 4)),
        (3, MPI.INT.Create_indexed([1, 3], [4, 0])),
    ]
    for _, datatype in shapes:
        if not datatype.is_predefined:
            datatype.Commit()

    def order(count, datatype):
        """Return the places of the elements of a type, in its order."""
        into = np.zeros(12, "i4")
        whole = np.arange(64, dtype="i4")
        MPI.COMM_SELF.Sendrecv([whole, count, datatype], 0, recvbuf=[into, 12, MPI.INT])
        return into

    target = (rank + 1) % size
    with Window(flavour, 64, "i4") as w:
        for m, source in shapes:
            for n, place in shapes:
                values = np.arange(64, dtype="i4") * 3 + 1
                w.mine[:] = 0
                w.win.Fence()
                w.win.Put([values, m, source], target, (w.at(target), n, place))
                w.win.Fence()
                expected = np.zeros(64, "i4")
                expected[order(n, place)] = values[order(m, source)]
                same(w.mine, expected)
                back = np.zeros(64, "i4")
                w.win.Get([back, m, source], target, (w.at(target), n, place))
                w.win.Fence()
                again = np.zeros(64, "i4")
                again[order(m, source)] = expected[order(n, place)]
                same(back, again)
                world.Barrier()
    for _, datatype in shapes:
        if not datatype.is_predefined:
            datatype.Free()


@once
def windows_over_the_same_memory():
    """Two windows with other units and starts over one array."""
    memory = np.zeros(32, "i4")
    whole = MPI.Win.Create(memory, 4, comm=world)
    half = MPI.Win.Create(memory[16:], 1, comm=world)
    target = (rank + 1) % size
    whole.Fence()
    whole.Put(np.full(32, 5, "i4"), target)
    whole.Fence()
    half.Fence()
    half.Put(np.full(2, 7, "i4"), target, 8)
    half.Fence()
    expected = np.full(32, 5)
    expected[18:20] = 7
    same(memory, expected)
    world.Barrier()
    # epochs of two windows at the same time
    whole.Lock(target, MPI.LOCK_SHARED)
    half.Lock(target, MPI.LOCK_SHARED)
    whole.Put(np.array([1], "i4"), target, 0)
    half.Put(np.array([2], "i4"), target, 0)
    whole.Unlock(target)
    half.Unlock(target)
    world.Barrier()
    assert memory[0] == 1 and memory[16] == 2
    world.Barrier()
    half.Free()
    whole.Free()


@case
def on_other_communicators(flavour):
    """Ranks of a window are those of its communicator: halves, in another order, and alone."""
    for color, key in ((rank % 2, -rank), (0, -rank), (rank, 0)):
        comm = world.Split(color, key)
        target = (comm.rank + 1) % comm.size
        with Window(flavour, 2, "i8", comm=comm) as w:
            assert w.win.group_size == comm.size and w.win.group_rank == comm.rank
            group = w.win.Get_group()
            assert MPI.Group.Compare(group, comm.Get_group()) == MPI.IDENT
            w.win.Fence()
            w.win.Put(np.array([rank, comm.rank], "i8"), target, w.at(target))
            w.win.Fence()
            before = (comm.rank - 1) % comm.size
            ranks = comm.allgather(rank)
            same(w.mine, [ranks[before], before])
            comm.Barrier()
        comm.Free()
    world.Barrier()


@case
def a_window_outlives_its_communicator(flavour):
    comm = world.Dup()
    w = Window(flavour, 1, "i8", comm=comm)
    comm.Free()
    target = (rank + 1) % size
    w.win.Fence()
    w.win.Put(np.array([rank + 1]), target, w.at(target))
    w.win.Fence()
    same(w.mine, [(rank - 1) % size + 1])
    w.comm = world
    w.free()


@case
def many_windows(flavour):
    """Sixty windows at the same time, with epochs open in all, freed in another order."""
    windows = [Window(flavour, 4, "i4") for _ in range(60)]
    target = (rank + 1) % size
    values = np.arange(60, dtype="i4") + 100 * rank
    for w in windows:
        w.win.Lock_all()
    for i, w in enumerate(windows):
        w.win.Put(values[i : i + 1], target, w.at(target, 2))
    for w in reversed(windows):
        w.win.Unlock_all()
    world.Barrier()
    for i, w in enumerate(windows):
        same(w.mine, [0, 0, i + 100 * ((rank - 1) % size), 0])
    world.Barrier()
    for w in windows[::2] + windows[1::2]:
        w.free()


@case
def other_sizes_and_units_on_each_rank(flavour):
    """Displacements are in the target's unit; sizes differ, one part is empty."""
    if flavour == "dynamic":
        return
    units = [1, 4, 8, 2, 16, 1, 4]
    count = 8 * rank
    w = Window(flavour, count, "i4", disp_unit=units[rank])
    w.win.Fence()
    for target in range(size):
        if target:
            place = 16 // units[target]  # 4 elements from the beginning
            w.win.Accumulate(np.array([rank + 1], "i4"), target, place)
    w.win.Fence()
    if count:
        expected = np.zeros(count)
        expected[4] = size * (size + 1) // 2
        same(w.mine, expected)
    assert w.win.attrs[1:] == (4 * count, units[rank])
    w.free()


@once
def shared_parts_are_seen_by_load_and_store():
    """The ranks of a node share memory, others can't."""
    if "shared" not in FLAVOURS:
        with fails(MPI.ERR_RMA_SHARED):
            MPI.Win.Allocate_shared(8, 8, comm=world)
    comm = world.Split_type(MPI.COMM_TYPE_SHARED)
    shared_parts(comm, comm.rank, comm.size)
    comm.Free()


def shared_parts(comm, rank, size):
    for counts in ([3] * size, [0] + [4] * (size - 1), [r % 2 * 5 for r in range(size)]):
        win = MPI.Win.Allocate_shared(8 * counts[rank], 8, comm=comm)
        win.Lock_all()
        part, unit = win.Shared_query(rank)
        assert unit == 8 and len(part) == 8 * counts[rank]
        np.frombuffer(part, "i8")[:] = rank + 1 if counts[rank] else 0
        win.Sync()
        comm.Barrier()
        win.Sync()
        for r in range(size):
            part, unit = win.Shared_query(r)
            if counts[r]:
                same(np.frombuffer(part, "i8"), [r + 1] * counts[r])
                assert unit == 8
        first, _ = win.Shared_query(MPI.PROC_NULL)
        lowest = next((r for r in range(size) if counts[r]), None)
        if lowest is not None:
            assert np.frombuffer(first, "i8")[0] == lowest + 1
            # without a hint the parts lie one behind the other
            parts = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * sum(counts)).from_address(first.address))
            same(parts, [r + 1 for r in range(size) for _ in range(counts[r])])
        comm.Barrier()
        # a put is seen by a load, a store by a get
        target = (rank + 1) % size
        if counts[target]:
            win.Put(np.array([50 + rank]), target)
            win.Flush(target)
        comm.Barrier()
        win.Sync()
        if counts[rank]:
            mine = np.frombuffer(win.Shared_query(rank)[0], "i8")
            assert mine[0] == 50 + (rank - 1) % size
            mine[1] = 70 + rank
        win.Sync()
        comm.Barrier()
        if counts[target]:
            got = np.zeros(1, "i8")
            win.Get(got, target, 1)
            win.Flush(target)
            same(got, [70 + target])
        win.Unlock_all()
        win.Free()


main()
