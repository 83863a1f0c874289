"""The programs of test_communicators.py."""

import pickle
from copy import copy as shallow_copy

import numpy as np
from rankside import fails, node_ranks, rank, refused, size, world

from gormapy import MPI


def duplicate_split_and_create():
    dup = world.Dup()
    assert type(dup) is MPI.Intracomm and dup != world and MPI.Comm.Compare(dup, world) == MPI.CONGRUENT
    # messages do not mix
    request = world.isend("world", rank, 0)
    other = dup.isend("dup", rank, 0)
    assert dup.recv(source=rank) == "dup" and world.recv(source=rank) == "world"
    MPI.Request.Waitall([request, other])
    dup.Free()
    assert dup == MPI.COMM_NULL and not dup
    parity = world.Split(rank % 2, -rank)
    assert parity.size == len(range(rank % 2, size, 2))
    assert parity.allgather(rank) == sorted(range(rank % 2, size, 2), reverse=True)
    parity.Free()
    assert (world.Split(0 if rank else MPI.UNDEFINED) == MPI.COMM_NULL) == (rank == 0)
    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    assert node.allgather(rank) == node_ranks
    node.Free()
    group = world.Get_group()
    even = group.Range_incl([(0, size - 1, 2)])
    comm = world.Create(even)
    assert (comm == MPI.COMM_NULL) == (rank % 2 == 1)
    if comm:
        assert comm.size == even.size and comm.rank == even.rank == rank // 2
        comm.Free()
    assert world.Get_group().Compare(group) == MPI.IDENT


def groups():
    group = world.group
    assert group.size == size and group.rank == rank
    first, rest = group.Incl([0]), group.Excl([0])
    assert MPI.Group.Union(first, rest).Compare(group) == MPI.IDENT
    assert MPI.Group.Intersection(first, rest).size == 0
    assert MPI.Group.Difference(group, first).Compare(rest) == MPI.IDENT
    backwards = group.Incl(list(range(size))[::-1])
    assert backwards.Compare(group) == (MPI.SIMILAR if size > 1 else MPI.IDENT)
    assert backwards.Translate_ranks([0], group) == [size - 1]
    assert first.rank == (0 if rank == 0 else MPI.UNDEFINED)
    assert rest.Translate_ranks(None, first) == [MPI.UNDEFINED] * (size - 1)
    assert MPI.GROUP_EMPTY.size == 0 and not MPI.GROUP_NULL
    with fails(MPI.ERR_RANK):
        group.Incl([size])
    with fails(MPI.ERR_GROUP):
        MPI.GROUP_NULL.Get_size()
    for g in (first, rest, backwards):
        g.Free()
        assert g == MPI.GROUP_NULL


def names_hints_and_attributes():
    assert world.name == "MPI_COMM_WORLD" and MPI.COMM_SELF.Get_name() == "MPI_COMM_SELF"
    comm = world.Dup(MPI.Info.Create({"key": "value"}))
    comm.name = "mine"
    assert comm.Get_name() == "mine" and dict(comm.info.items())["key"] == "value"
    deleted = []
    key = MPI.Comm.Create_keyval(lambda c, k, v: v + 1, lambda c, k, v: deleted.append(v))
    comm.Set_attr(key, 41)
    copy = comm.Dup()
    assert copy.Get_attr(key) == 42 and comm.Get_attr(key) == 41
    copy.Free()
    comm.Delete_attr(key)
    assert deleted == [42, 41] and comm.Get_attr(key) is None
    MPI.Comm.Free_keyval(key)
    comm.Free()
    info = MPI.Info.Create([("a", "1")])
    info["b"] = "2"
    assert dict(info) == {"a": "1", "b": "2"}
    assert info.Get_nkeys() == len(info) == 2 and info.pop("a") == "1" and "a" not in info
    info.Free()
    assert world.Get_errhandler() == MPI.ERRORS_RETURN
    world.Set_errhandler(MPI.ERRORS_RETURN)
    for thing in (MPI.COMM_WORLD, MPI.COMM_NULL, MPI.INT, MPI.SUM, MPI.IN_PLACE, MPI.WIN_NULL):
        assert pickle.loads(pickle.dumps(thing)) is thing and shallow_copy(thing) is thing


def calls_that_raise_leave_no_communicator():
    def slot():
        comm = MPI.COMM_SELF.Dup()
        number = comm.handle & 0xFFFFFFFF
        comm.Free()
        return number

    def fail(comm, keyval, value):
        raise ZeroDivisionError("expected")

    me, everyone = world.group.Incl([rank]), world.group
    other = world.group.Incl([rank ^ 1]) if rank ^ 1 < size else None
    freed = MPI.Comm.Create_errhandler(lambda comm, code: None)
    copy = MPI.Errhandler(freed)
    freed.Free()
    deleted = []
    keys = [MPI.Comm.Create_keyval(True, lambda c, k, v: deleted.append(v)), MPI.Comm.Create_keyval(fail)]
    before = slot()
    for call in (world.Dup, world.Idup, world.Dup_with_info, world.Idup_with_info):
        refused(TypeError, lambda call=call: call(5), "expecting an Info, got int")
    for handler, kind in (("a", TypeError), (MPI.ERRHANDLER_NULL, MPI.Exception), (copy, MPI.Exception)):
        tail = ("tag", MPI.INFO_NULL, handler)
        refused(kind, lambda tail=tail: MPI.Intracomm.Create_from_group(everyone, *tail))
        if other is not None:
            refused(kind, lambda tail=tail: MPI.Intercomm.Create_from_groups(me, 0, other, 0, *tail))
    assert slot() == before
    for key in keys:
        world.Set_attr(key, key)
    for call in (world.Dup, world.Idup):
        for _ in range(3):
            with fails(MPI.ERR_OTHER):
                call()
    assert deleted == [keys[0]] * 6, "what had been copied is deleted"
    assert slot() == before
    for key in keys:
        world.Delete_attr(key)
    comm = world.Dup()
    comm.Barrier()
    comm.Free()
    datatype, key = MPI.INT.Create_contiguous(2), MPI.Datatype.Create_keyval(fail)
    datatype.Set_attr(key, 1)
    handles = set()
    for _ in range(20):
        made = MPI.INT.Dup()
        handles.add(made.handle & 0xFFFFFFFF)
        made.Free()
        with fails(MPI.ERR_OTHER):
            datatype.Dup()
    assert len(handles) < 5, handles


def duplicate_without_blocking():
    key = MPI.Comm.Create_keyval(lambda c, k, v: v + 1)
    world.Set_attr(key, 1)
    made = [world.Idup() for _ in range(3)]
    early = made[0][0]
    for comm, request in reversed(made):
        request.Wait()
        assert request == MPI.REQUEST_NULL and comm.Get_attr(key) == 2
        assert MPI.Comm.Compare(comm, world) == MPI.CONGRUENT
    assert early.allgather(rank) == list(range(size))
    assert made[1][0].allreduce(1) == size  # contexts of their own
    for comm, _ in made:
        comm.Free()
    comm, request = world.Idup_with_info(MPI.Info.Create({"key": "value"}))
    request.Wait()
    assert comm.info["key"] == "value"
    world.Delete_attr(key)


def group_that_makes_its_communicator_alone():
    group = world.group
    odd = group.Incl([r for r in reversed(range(size)) if r % 2])
    comm = world.Create_group(odd, tag=7)  # of no interest to the others, who may not even call it
    assert (comm == MPI.COMM_NULL) == (rank % 2 == 0)
    if rank % 2:
        assert comm.allgather(rank) == [r for r in reversed(range(size)) if r % 2]
        again = comm.Create_group(comm.group)
        assert again.allreduce(1) == comm.size
        again.Free()
        comm.Free()
    pairs = [group.Incl([r, r + 1]) for r in range(size - 1)]
    made = [world.Create_group(pair, tag=k) for k, pair in enumerate(pairs) if rank in (k, k + 1)]
    for comm in made:
        comm.Barrier()
        comm.Free()
    by_name = MPI.Intracomm.Create_from_group(group, "org.example.test")
    assert by_name.allgather(rank) == list(range(size))
    by_name.Free()
    if size > 1:
        with fails(MPI.ERR_GROUP):
            MPI.COMM_SELF.Create_group(group)
    with fails(MPI.ERR_TAG):
        world.Create_group(group, -1)


def attributes_of_windows_and_datatypes():
    win = MPI.Win.Allocate(24, 8, comm=world)
    assert win.Get_attr(MPI.WIN_SIZE) == 24 and win.Get_attr(MPI.WIN_DISP_UNIT) == 8
    assert win.Get_attr(MPI.WIN_BASE) == MPI.Get_address(win.tomemory()) == win.attrs[0]
    assert win.Get_attr(MPI.WIN_CREATE_FLAVOR) == MPI.WIN_FLAVOR_ALLOCATE == win.flavor
    assert win.Get_attr(MPI.WIN_MODEL) == MPI.WIN_UNIFIED == win.model
    gone = []
    key = MPI.Win.Create_keyval(delete_fn=lambda w, k, v: gone.append(v))
    win.Set_attr(key, "of the window")
    win.Set_name("a window")
    assert win.name == "a window" and win.Get_attr(key) == "of the window"
    win.Free()
    assert gone == ["of the window"]
    key = MPI.Datatype.Create_keyval(lambda t, k, v: [*v, "copy"], lambda t, k, v: gone.append(v))
    pair = MPI.INT.Create_contiguous(2)
    pair.Set_name("pair")
    assert pair.name == "pair" and MPI.INT.name == "MPI_INT"
    pair.Set_attr(key, ["first"])
    copy = pair.Dup()
    assert copy.Get_attr(key) == ["first", "copy"] and pair.Get_attr(key) == ["first"]
    copy.Free()
    pair.Set_attr(key, ["second"])
    pair.Free()
    assert gone[1:] == [["first", "copy"], ["first"], ["second"]]
    assert MPI.Datatype.Free_keyval(key) == MPI.KEYVAL_INVALID
    with fails(MPI.ERR_KEYVAL):
        MPI.INT.Set_attr(key, 1)


def cartesian_grid():
    dims = MPI.Compute_dims(size, 2)
    assert dims[0] * dims[1] == size and dims[0] >= dims[1]
    grid = world.Create_cart(dims, periods=[True, False])
    assert type(grid) is MPI.Cartcomm and grid.topology == MPI.CART and grid.dims == dims
    assert grid.coords == [grid.rank // dims[1], grid.rank % dims[1]]
    assert grid.Get_cart_rank(grid.coords) == grid.rank and grid.Get_coords(grid.rank) == grid.coords
    up, down = grid.Shift(0, 1)
    into = np.zeros(1, int)
    grid.Sendrecv(np.array([grid.rank]), down, recvbuf=into, source=up)
    assert into[0] == up == grid.Get_cart_rank([grid.coords[0] - 1, grid.coords[1]])
    left, right = grid.Shift(1, 1)
    assert (left == MPI.PROC_NULL) == (grid.coords[1] == 0)
    assert (right == MPI.PROC_NULL) == (grid.coords[1] == dims[1] - 1)
    assert grid.inedges == [up, down, left, right]
    row = grid.Sub([False, True])
    assert row.dims == [dims[1]] and row.rank == grid.coords[1]
    assert row.allgather(grid.coords[0]) == [grid.coords[0]] * dims[1]
    again = grid.Dup()
    assert again.coords == grid.coords
    for comm in (row, again, grid):
        comm.Free()
    if size > 1:
        part = world.Create_cart([size - 1])
        assert (part == MPI.COMM_NULL) == (rank == size - 1)
    with fails(MPI.ERR_DIMS):
        world.Create_cart([size + 1])


def keys_and_colours_are_not_cut():
    key = (size - rank) << 32
    for comm, members in (
        (world.Split_type(MPI.COMM_TYPE_SHARED, key), node_ranks),
        (world.Split(0, key), range(size)),
    ):
        assert comm.allgather(rank) == list(reversed(members))
        comm.Free()
    try:
        world.Split_type(MPI.COMM_TYPE_SHARED + (1 << 32))
    except (MPI.Exception, OverflowError):
        pass
    else:
        raise AssertionError("the type was cut")
