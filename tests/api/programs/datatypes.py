"""The programs of test_datatypes.py."""

import functools
import itertools
import pickle
import tempfile

import numpy as np
import pytest
from rankside import fails, rank, world

from gormapy import MPI


def every_numpy_type_has_a_datatype():
    for char in "?bhilqBHILQefdgFDG":
        dtype = np.dtype(char)
        datatype = MPI.Datatype.fromcode(char)
        assert datatype.Get_size() == datatype.extent == dtype.itemsize, char
        assert np.dtype(datatype.typechar).itemsize == dtype.itemsize
        assert MPI.Datatype.fromcode(dtype.str[1:]).size == dtype.itemsize
        assert np.dtype(datatype.typestr) == dtype
        into = np.zeros(3, dtype)
        MPI.COMM_SELF.Sendrecv(np.ones(3, dtype), 0, 0, into, 0)
        assert (into == 1).all()
    assert MPI.INT.Get_name() == "MPI_INT" and MPI.DOUBLE.is_predefined
    assert MPI.DOUBLE_INT.size == 12 and MPI.DOUBLE_INT.extent == 16


def derived_types():
    def exchange(datatype, count=1):
        source = np.arange(64, dtype="i4")
        into = np.full(64, -1, "i4")
        MPI.COMM_SELF.Sendrecv([source, count, datatype], 0, 0, [into, count, datatype], 0)
        return into

    column = MPI.INT.Create_vector(8, 1, 8).Commit()
    assert column.size == 32 and column.Get_extent() == (0, 4 * 57)
    assert np.flatnonzero(exchange(column) >= 0).tolist() == list(range(0, 64, 8))
    resized = column.Create_resized(0, 4).Commit()
    assert np.flatnonzero(exchange(resized, 2) >= 0).tolist() == sorted([*range(0, 64, 8), *range(1, 64, 8)])
    block = MPI.INT.Create_subarray([8, 8], [2, 3], [1, 2]).Commit()
    assert np.flatnonzero(exchange(block) >= 0).tolist() == [10, 11, 12, 18, 19, 20]
    indexed = MPI.INT.Create_indexed([1, 2], [3, 7]).Commit()
    assert np.flatnonzero(exchange(indexed) >= 0).tolist() == [3, 7, 8]
    struct = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    assert struct.size == 12 and struct.extent == 16
    for datatype in (column, resized, block, indexed, struct):
        copy = pickle.loads(pickle.dumps(datatype))
        assert copy.Get_extent() == datatype.Get_extent() and copy.size == datatype.size
        assert copy.decode()[1:] == datatype.decode()[1:] or datatype is struct
        copy.Free()
        assert copy == MPI.DATATYPE_NULL
    packed = bytearray(column.Pack_size(1, world))
    data = np.arange(64, dtype="i4")
    assert column.Pack(data[:57], packed, 0, world) == 32
    assert np.frombuffer(packed, "i4").tolist() == list(range(0, 64, 8))
    status = MPI.Status()
    request = world.Isend([data, 1, struct], rank)
    world.Recv([np.zeros(64), 1, struct], rank, 0, status)
    request.Wait()
    assert status.Get_count(struct) == 1 and status.Get_elements(struct) == 2 and status.Get_count(MPI.INT) == 3
    with fails(MPI.ERR_TYPE):
        MPI.INT.Free()


def types_of_numpy_by_their_characters():
    for code in "?bBhHiIlLqQfdgFDG":
        dtype = np.dtype(code)
        datatype = MPI._typedict[dtype.char]
        assert datatype.size == dtype.itemsize and np.dtype(datatype.tocode()) == dtype, code
    assert MPI._typedict_c["d"] == MPI.DOUBLE and MPI._typedict_f["d"] == MPI.DOUBLE_PRECISION


def distributed_arrays():
    kinds = [MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_NONE]
    default = MPI.DISTRIBUTE_DFLT_DARG

    def owners(size, kind, argument, parts):
        if kind == MPI.DISTRIBUTE_NONE:
            return np.zeros(size, int)
        if argument == default:
            argument = 1 if kind == MPI.DISTRIBUTE_CYCLIC else -(-size // parts)
        return np.arange(size) // argument % parts

    for order, (g0, g1), (k0, k1) in itertools.product(
        [MPI.ORDER_C, MPI.ORDER_F], [(7, 5), (4, 6), (1, 9)], itertools.product(kinds, kinds)
    ):
        p0, p1 = 1 if k0 == MPI.DISTRIBUTE_NONE else 2, 1 if k1 == MPI.DISTRIBUTE_NONE else 3
        a0 = 3 if k0 == MPI.DISTRIBUTE_CYCLIC else default
        a1 = 2 if k1 == MPI.DISTRIBUTE_CYCLIC and g0 == 7 else default
        seen = np.zeros(g0 * g1, int)
        for r in range(p0 * p1):
            arguments = (p0 * p1, r, [g0, g1], [k0, k1], [a0, a1], [p0, p1], order)
            mine = MPI.INT.Create_darray(*arguments).Commit()
            assert mine.Get_extent() == (0, 4 * g0 * g1)
            into = np.zeros((g0, g1), "i4", order="C" if order == MPI.ORDER_C else "F")
            ones = np.ones(mine.size // 4, "i4")
            MPI.COMM_SELF.Sendrecv(ones, 0, 0, [into, 1, mine], 0)
            want = (owners(g0, k0, a0, p0) == r // p1)[:, None] & (owners(g1, k1, a1, p1) == r % p1)
            assert (into.astype(bool) == want).all(), arguments
            seen += into.astype(bool).ravel()
            integers, _addresses, _counts, types = mine.Get_contents()
            assert integers == [p0 * p1, r, 2, g0, g1, k0, k1, a0, a1, p0, p1, order]
            assert mine.Get_envelope() == (12, 0, 0, 1, MPI.COMBINER_DARRAY) and types == [MPI.INT]
            base, name, parameters = mine.decode()
            assert base == MPI.INT and name == "DARRAY" and parameters["gsizes"] == [g0, g1]
            copy = pickle.loads(pickle.dumps(mine))
            assert copy.decode() == mine.decode()
            copy.Free()
            mine.Free()
        assert (seen == 1).all(), "each element has one owner"

    good = {"size": 2, "rank": 1, "gsizes": [4], "distribs": [kinds[0]], "dargs": [default], "psizes": [2]}
    for bad in (
        {"rank": 2},
        {"rank": -1},
        {"size": 3},
        {"gsizes": [0]},
        {"distribs": [5]},
        {"dargs": [1]},
        {"dargs": [0]},
        {"dargs": [-49767]},
        {"psizes": [0]},
        {"gsizes": [], "distribs": [], "dargs": [], "psizes": []},
    ):
        with pytest.raises(MPI.Exception) as e:
            MPI.INT.Create_darray(**{**good, **bad})
        assert e.value.Get_error_class() == MPI.ERR_ARG, bad
    with pytest.raises(ValueError, match="as many gsizes"):
        MPI.INT.Create_darray(**{**good, "psizes": [1, 2]})
    MPI.INT.Create_darray(**good).Free()


def counts_that_wrap():
    win = MPI.Win.Allocate(64, 8, comm=MPI.COMM_SELF)
    win.Lock(0)
    a = np.ones(1)
    big = MPI.DOUBLE.Create_contiguous(1 << 20).Commit()
    for call in win.Put, win.Get, win.Accumulate:
        for spec in [0, 2**61 + 1, MPI.DOUBLE], [0, 2**62 + 1, MPI.INT], [0, 2**41, big], [0, 2**63 - 1, MPI.DOUBLE]:
            try:
                call(a, 0, spec)
            except (MPI.Exception, OverflowError, ValueError):
                pass
            else:
                raise AssertionError((call, spec))
    assert not np.frombuffer(win, "f8").any()
    win.Unlock(0)
    win.Free()


def only_committed_types_communicate():
    me = MPI.COMM_SELF
    a, b = np.arange(8.0), np.zeros(8)
    packed = bytearray(64)
    win = MPI.Win.Allocate(64, 8, comm=me)
    win.Lock_all()
    file = MPI.File.Open(me, tempfile.mktemp(dir="."), MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    tried = 0

    def refused(call, *args, **kwargs):
        nonlocal tried
        tried += 1
        try:
            call(*args, **kwargs)
        except MPI.Exception as e:
            assert e.Get_error_class() == MPI.ERR_TYPE, (call, e)
            assert "Commit()" in str(e), (call, e)
        else:
            raise AssertionError(call)

    def all_calls(t):
        s, r = [a, 1, t], [b, 1, t]
        for call in me.Send, me.Ssend, me.Bsend, me.Rsend, me.Isend, me.Issend, me.Ibsend, me.Irsend:
            refused(call, s, 0)
        for call in me.Send_init, me.Ssend_init, me.Bsend_init, me.Rsend_init:
            refused(call, s, 0)
        for call in me.Recv, me.Irecv, me.Recv_init:
            refused(call, r, 0)
        for call in me.Sendrecv, me.Isendrecv:
            refused(call, s, 0, 0, b, 0)
            refused(call, a, 0, 0, r, 0)
        for call in me.Sendrecv_replace, me.Isendrecv_replace:
            refused(call, r, 0)
        me.Isend(a, 0)
        message = me.Mprobe()
        refused(message.Recv, r)
        message.Recv(b)  # it is still there
        for call in me.Bcast, me.Ibcast:
            refused(call, r, 0)
        for name in "Gather", "Scatter":
            for call in getattr(me, name), getattr(me, "I" + name.lower()):
                refused(call, s, b, 0)
                refused(call, a, r, 0)
        for name in "Allgather", "Alltoall":
            for call in getattr(me, name), getattr(me, "I" + name.lower()):
                refused(call, s, b)
                refused(call, a, r)
        for name in "Gatherv", "Scatterv":
            for call in getattr(me, name), getattr(me, "I" + name.lower()):
                refused(call, [a, [1], [0], t], b, 0) if name == "Scatterv" else refused(call, s, [b, [8]], 0)
        for name in "Alltoallv", "Ialltoallv":
            refused(getattr(me, name), [a, [1], [0], t], [b, [8]])
        for name in "Alltoallw", "Ialltoallw":
            refused(getattr(me, name), [a, [1], [0], [t]], [b, [1], [0], [t]])
        for name in "Allreduce", "Iallreduce", "Scan", "Iscan", "Exscan", "Iexscan", "Reduce_scatter_block":
            refused(getattr(me, name), s, r)
        for name in "Reduce", "Ireduce":
            refused(getattr(me, name), s, r)
        for call in win.Put, win.Get, win.Accumulate, win.Rput, win.Rget, win.Raccumulate:
            refused(call, s, 0)
            refused(call, a, 0, [0, 1, t])
        for call in win.Get_accumulate, win.Rget_accumulate:
            refused(call, s, r, 0)
        for name in "Write", "Read", "Write_all", "Read_all", "Iwrite", "Iread", "Iwrite_all", "Iread_all":
            refused(getattr(file, name), s)
        for name in "Write_at", "Read_at", "Write_at_all", "Iwrite_at", "Iread_at":
            refused(getattr(file, name), 0, s)
        for name in "Write_shared", "Read_shared", "Write_ordered", "Read_ordered":
            refused(getattr(file, name), s)
        refused(file.Set_view, 0, t, t)
        refused(file.Set_view, 0, MPI.DOUBLE, t)
        refused(t.Pack, a, packed, 0, me)
        refused(t.Unpack, packed, 0, b, me)
        refused(MPI.SUM.Reduce_local, s, r)

    contiguous, strided = MPI.DOUBLE.Create_contiguous(8), MPI.DOUBLE.Create_vector(4, 1, 2)
    made = (
        contiguous.Create_vector(1, 1, 1),
        contiguous.Dup(),
        MPI.Datatype(contiguous),
    )  # of an uncommitted one: allowed
    for t in contiguous, strided, *made:
        all_calls(t)
    assert tried > 400, tried
    assert not np.frombuffer(win, "f8").any() and file.Get_size() == 0 and not any(packed)
    assert contiguous.Commit() is contiguous and MPI.DOUBLE.Commit() is MPI.DOUBLE
    assert contiguous.Commit() is contiguous  # again: nothing
    for t in contiguous, contiguous.Dup(), MPI.Datatype(contiguous), contiguous.decode()[0]:
        b[:] = 0
        me.Sendrecv([a, 1 if t.extent == 64 else 8, t], 0, 0, [b, 1 if t.extent == 64 else 8, t], 0)
        assert (a == b).all()
    b[:] = 0
    win.Put([a, 1, contiguous], 0, [0, 1, contiguous])
    assert (np.frombuffer(win, "f8") == a).all()
    refused(me.Send, [a, 1, strided], 0)
    win.Unlock_all()
    win.Free()
    file.Close()


def every_constructor(old):
    """Return a datatype of each constructor, with its parameters."""
    lists = {"blocklengths": [2, 1], "displacements": [0, 32]}
    blocks = {"blocklength": 2, "displacements": [0, 32, 96]}
    subarray = {"sizes": [4, 6], "subsizes": [2, 3], "starts": [1, 2]}
    return [
        (old.Create_contiguous(3), "CONTIGUOUS", {"count": 3}),
        (old.Create_vector(3, 2, 4), "VECTOR", {"count": 3, "blocklength": 2, "stride": 4}),
        (old.Create_hvector(3, 2, stride=64), "HVECTOR", {"count": 3, "blocklength": 2, "stride": 64}),
        (old.Create_resized(-8, 64), "RESIZED", {"lb": -8, "extent": 64}),
        (old.Create_indexed([2, 1], (0, 32)), "INDEXED", lists),
        (old.Create_hindexed(np.array([2, 1]), [0, 32]), "HINDEXED", lists),
        (old.Create_indexed_block(2, [0, 32, 96]), "INDEXED_BLOCK", blocks),
        (old.Create_hindexed_block(2, range(0, 97, 32)[:2]), "HINDEXED_BLOCK", {**blocks, "displacements": [0, 32]}),
        (old.Create_subarray([4, 6], [2, 3], [1, 2]), "SUBARRAY", {**subarray, "order": MPI.ORDER_C}),
        (old.Create_subarray([4, 6], [2, 3], [1, 2], order=MPI.ORDER_F), "SUBARRAY", {**subarray, "order": 1}),
    ]


def how_datatypes_were_made():
    """A datatype tells of what it was made, also when the program has freed that, and made others."""
    for derived in False, True:
        old = MPI.INT.Create_vector(2, 1, 2) if derived else MPI.INT
        made = every_constructor(old)
        if derived:
            old.Free()
            others = [MPI.SHORT.Create_vector(count, 1, 2) for count in range(20)]
        for datatype, combiner, params in made:
            base, name, found = datatype.decode()
            assert (name, found) == (combiner, params)
            assert base.decode()[1] == ("VECTOR" if derived else "NAMED")
            assert base.decode()[0] == MPI.INT
            copied = pickle.loads(pickle.dumps(datatype))
            assert copied.size == datatype.size and copied.Get_true_extent() == datatype.Get_true_extent()
            datatype.Free()
            copied.Free()
            if derived:
                assert base.size == 8
                base.Free()
        if derived:
            for datatype in others:
                datatype.Free()


def how_structs_were_made():
    pair = MPI.INT.Create_contiguous(2)
    nested = pair.Create_vector(2, 1, 3)
    struct = MPI.Datatype.Create_struct([1, 2, 1], [0, 32, 64], [nested, MPI.DOUBLE, pair])
    nested.Free()
    pair.Free()
    _, _, _, types = struct.Get_contents()
    assert [t.combiner for t in types] == [MPI.COMBINER_VECTOR, MPI.COMBINER_NAMED, MPI.COMBINER_CONTIGUOUS]
    assert types[0].Get_contents()[3][0].decode()[2] == {"count": 2}
    assert struct.Get_contents()[:2] == ([3, 1, 2, 1], [0, 32, 64])
    struct.Free()
    empty = MPI.Datatype.Create_struct([], [], [])
    assert empty.size == 0 and empty.Get_contents() == ([0], [], [], [])
    empty.Free()


def datatypes_made_again():
    """A datatype that is made as one that was freed is another one."""
    keyval = MPI.Datatype.Create_keyval()
    for _ in range(3):
        first = MPI.INT.Create_vector(3, 1, 2)
        also = MPI.Datatype(first)
        first.Set_name("first")
        first.Set_attr(keyval, "attribute")
        first.Commit()
        stale = first.handle
        first.Free()
        again = MPI.INT.Create_vector(3, 1, 2)
        assert again.handle != stale and not first and again.Get_name() == "" and again.Get_attr(keyval) is None
        for use in also.Commit, also.Free, functools.partial(also.Create_contiguous, 1), also.Dup:
            with fails(MPI.ERR_TYPE, "has been freed"):
                use()
        with pytest.raises(MPI.Exception, match="not committed"):
            MPI.COMM_SELF.Send([np.zeros(8, "i4"), 1, again], MPI.PROC_NULL)
        again.Commit()
        MPI.COMM_SELF.Send([np.zeros(8, "i4"), 1, again], MPI.PROC_NULL)
        again.Free()
    # freed by another object, and used in the calls that the extension makes itself
    win = MPI.Win.Allocate(64, 4, comm=MPI.COMM_SELF)
    win.Lock(0)
    one = MPI.INT.Create_contiguous(2).Commit()
    also, data = MPI.Datatype(one), np.zeros(2, "i4")
    for _ in range(2):
        win.Put([data, 1, also], 0)
        win.Get([data, 1, also], 0, [0, 1, also])
        one.Free()
        for call in win.Put, win.Get:
            for spec, target in ([data, 1, also], 0), (data, [0, 1, also]):
                with fails(MPI.ERR_TYPE, "has been freed"):
                    call(spec, 0, target)
        with fails(MPI.ERR_TYPE, "has been freed"):
            MPI.COMM_SELF.Send([data, 1, also], MPI.PROC_NULL)
        one = MPI.INT.Create_contiguous(2).Commit()
        also = MPI.Datatype(one)
    one.Free()
    win.Unlock(0)
    win.Free()
    with fails(MPI.ERR_ARG, "there is no order 99"):
        MPI.INT.Create_subarray([4], [2], [1], 99)
    with pytest.raises(TypeError, match="expecting datatypes, got NoneType"):
        MPI.Datatype.Create_struct([1], [0], [None])
    empty = MPI.Group.Incl(MPI.COMM_SELF.group, [])
    empty.Free()
    MPI.GROUP_EMPTY.Free()
    assert MPI.GROUP_EMPTY and MPI.GROUP_EMPTY.size == 0
    # more than are kept
    made = [MPI.INT.Create_contiguous(count) for count in range(50)] + [MPI.INT.Create_indexed_block(1, range(99))]
    sizes = [datatype.size for datatype in made]
    for datatype in made:
        datatype.Free()
    made = [MPI.INT.Create_contiguous(count) for count in range(50)] + [MPI.INT.Create_indexed_block(1, range(99))]
    assert [datatype.size for datatype in made] == sizes
    assert len({datatype.handle for datatype in made}) == 51
    for datatype in made:
        datatype.Free()
    MPI.Datatype.Free_keyval(keyval)


class Column(MPI.Datatype):
    """A class of the program."""


def unusual_arguments_of_constructors():
    """The constructors say what is wrong with their arguments, and leave nothing behind."""
    old = MPI.INT
    for call, message in (
        (lambda: old.Create_contiguous("3"), "count: expecting an integer, got str"),
        (lambda: old.Create_vector(1, None, 2), "blocklength: expecting an integer, got NoneType"),
        (lambda: old.Create_resized(0, 1.5), "extent: expecting an integer, got float"),
        (lambda: old.Create_indexed_block([1], [0]), "blocklength: expecting an integer, got list"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    for call in (
        lambda: old.Create_indexed([1, 2], [0]),
        lambda: old.Create_subarray([4], [1, 2], [0]),
        lambda: MPI.Datatype.Create_struct([1], [0], [old, old]),
    ):
        with pytest.raises(ValueError, match=r"datatype|expecting"):
            call()
    for call in old.Create_contiguous, lambda: old.Create_indexed([1.5], [0]), lambda: old.Commit(1):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OverflowError):
        old.Create_contiguous(1 << 70)
    with fails(MPI.ERR_COUNT):
        old.Create_contiguous(-1)
    with fails(MPI.ERR_TYPE):
        MPI.DATATYPE_NULL.Create_contiguous(1)
    with fails(MPI.ERR_TYPE):
        MPI.Datatype.Create_struct([1], [0], [MPI.DATATYPE_NULL])
    with fails(MPI.ERR_TYPE):
        old.Free()
    column = Column(old).Create_vector(3, 1, 2).Commit()
    assert type(column) is Column and column.combiner == MPI.COMBINER_VECTOR
    column.Free()

    class Frees:
        def __init__(self, datatype):
            self.datatype = datatype

        def __index__(self):
            if self.datatype:
                self.datatype.Free()
            return 2

    pair = old.Create_contiguous(2)
    with fails(MPI.ERR_TYPE):
        pair.Create_indexed([1, Frees(pair)], [0, 2])
