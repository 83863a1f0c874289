"""Hot calls with what C reads and with what Python reads: the results are the same."""

import mmap
import pickle
from array import array

import numpy as np
import pytest

from gormapy import MPI as mpi


def groups_of_any_sequence():
    """The extension reads short lists and tuples of ranks, Python everything else: the results are the same."""
    group = mpi.COMM_WORLD.Get_group()
    for ranks in [0], (0,), range(1), np.zeros(1, "i4"), array("i", [0]), [np.int64(0)], [True - 1]:
        one = group.Incl(ranks)
        assert one.Compare(group) == mpi.IDENT, ranks
        assert one.Translate_ranks(ranks, group) == [0], ranks
        one.Free()
        assert not one
    assert group.Translate_ranks([0, mpi.PROC_NULL] * 100, group) == [0, mpi.PROC_NULL] * 100
    assert group.Translate_ranks([0, mpi.PROC_NULL], mpi.GROUP_EMPTY) == [mpi.UNDEFINED, mpi.PROC_NULL]
    assert group.Translate_ranks(ranks=[0], group=group) == group.Translate_ranks([0]) == group.Translate_ranks() == [0]
    assert group.Incl([]) == mpi.GROUP_EMPTY
    assert (group.size, group.rank) == (group.Get_size(), group.Get_rank()) == (1, 0)
    assert (mpi.GROUP_EMPTY.size, mpi.GROUP_EMPTY.rank) == (0, mpi.UNDEFINED)
    for wrong, error in ([0.5], TypeError), ([1 << 40], OverflowError), (None, TypeError):
        with pytest.raises(error):
            group.Incl(wrong)
    for call in (
        lambda: group.Incl([1]),
        lambda: group.Incl([0, 0]),
        lambda: group.Translate_ranks([7], group),
        lambda: group.Translate_ranks([0], mpi.GROUP_NULL),
        mpi.GROUP_NULL.Get_size,
        mpi.GROUP_NULL.Free,
        mpi.COMM_NULL.Get_group,
        mpi.COMM_NULL.Get_rank,
    ):
        with pytest.raises(mpi.Exception):
            call()
    other = mpi.Group(group)
    group.Free()
    for call in other.Get_size, other.Get_rank, other.Free, lambda: other.Incl([0]):
        with pytest.raises(mpi.Exception, match="has been freed"):
            call()


def counts_of_a_status():
    status, none, three = mpi.Status(), mpi.BYTE.Create_contiguous(0), mpi.BYTE.Create_contiguous(3)
    assert (status.Get_source(), status.Get_tag(), status.Get_error()) == (mpi.ANY_SOURCE, mpi.ANY_TAG, mpi.SUCCESS)
    status.Set_elements(mpi.BYTE, 24)
    assert [status.Get_count(t) for t in (mpi.DOUBLE, mpi.INT, three)] == [3, 6, 8]
    assert status.Get_count() == status.Get_count(datatype=mpi.BYTE) == 24
    assert status.Get_count(none) == mpi.UNDEFINED
    status.Set_elements(mpi.BYTE, 25)
    assert status.Get_count(mpi.DOUBLE) == mpi.UNDEFINED
    status.Set_elements(mpi.BYTE, 0)
    assert status.Get_count(none) == status.Get_count(mpi.DOUBLE) == 0
    with pytest.raises(mpi.Exception):
        status.Get_count(mpi.DATATYPE_NULL)
    for call in mpi.DATATYPE_NULL.Get_size, mpi.DATATYPE_NULL.Get_extent:
        with pytest.raises(mpi.Exception):
            call()
    none.Free(), three.Free()


def packing_of_items_without_gaps():
    """The extension packs them; a type with gaps, and what has no room, is Python's."""
    three, spaced = mpi.INT.Create_contiguous(3).Commit(), mpi.INT.Create_vector(2, 1, 2).Commit()
    items, packed, back = np.arange(1, 8, dtype="i4"), np.zeros(40, "u1"), np.zeros(8, "i4")
    world = mpi.COMM_WORLD
    assert three.Pack(items, packed, 4, comm=world) == 28  # two whole items
    assert packed[4:28].tobytes() == items[:6].tobytes()
    assert not packed[:4].any()
    assert not packed[28:].any()
    assert three.Unpack(packed, 4, back, world) == 28
    assert back.tolist() == [1, 2, 3, 4, 5, 6, 0, 0]
    assert mpi.INT.Unpack(packed[:13], 4, back, world) == 12
    assert spaced.Pack(items, packed, 0, world) == 16  # two items of three
    assert packed[:16].tobytes() == np.array([1, 3, 4, 6], "i4").tobytes()
    for position in -1, 30, 1 << 40:
        with pytest.raises(mpi.Exception):
            three.Pack(items, packed, position, world)
    for position in -1, 41:
        with pytest.raises(mpi.Exception):
            three.Unpack(packed, position, back, world)
    assert three.Unpack(packed, 40, back, world) == 40
    for call in (
        lambda: mpi.INT.Pack(items, bytes(40), 0, world),
        lambda: mpi.INT.Pack(items[::2], packed, 0, world),
        lambda: mpi.INT.Unpack(packed, 0, bytes(8), world),
        lambda: mpi.INT.Pack(None, packed, 0, world),
    ):
        with pytest.raises((BufferError, TypeError, ValueError)):
            call()
    with pytest.raises(TypeError):
        mpi.INT.Pack(items, packed, 0)
    for datatype in three, spaced:
        datatype.Free()
    with pytest.raises(mpi.Exception):
        three.Pack(items, packed, 0, world)


def a_call_that_is_refused_leaves_the_status_as_it_is():
    """Go says what is wrong before it knows anything of a message."""
    world, status = mpi.COMM_WORLD, mpi.Status()
    a, b = np.zeros(3), np.zeros(3)
    for call in (
        lambda: world.Recv(a, 7, 0, status),
        lambda: world.Sendrecv(a, 7, 0, b, 0, 0, status),
        lambda: world.Sendrecv(a, 0, 0, b, 0, -5, status),
        lambda: world.Sendrecv_replace(a, 7, 0, 0, 0, status),
        lambda: world.Sendrecv_replace(a, 0, -1, 0, 0, status),
    ):
        status.Set_source(3)
        status.Set_tag(5)
        status.Set_elements(mpi.BYTE, 9)
        with pytest.raises(mpi.Exception):
            call()
        assert (status.source, status.tag, status.error, status.count, status.cancelled) == (3, 5, 0, 9, False)


def the_memory_of_an_object_is_used_again_only_if_little_of_it_has_been_touched():
    """A request that somebody has tested has no status that says how much has arrived."""

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * mmap.PAGESIZE >> 20  # MiB

    world, data = mpi.COMM_SELF, np.ones(4 << 20, "u1")
    before = resident()
    for _ in range(2):
        requests = [world.irecv(source=0, tag=tag) for tag in range(32)]
        for tag in range(32):
            world.Send(data, 0, tag)
        assert all(request.Test() for request in requests)
        assert [request.wait() for request in requests] == [None] * 32
        del requests
    assert resident() - before < 64


def an_object_is_for_the_thread_that_completes_its_request():
    """A thread that finds the request complete has no status of it: it leaves the object to the one that has."""
    world = mpi.COMM_SELF
    request = world.irecv(source=0)
    world.send("object", 0)
    status = mpi.Status()
    while not request.Test(status):  # as test does
        pass
    assert request.wait() is None  # as another thread does, before test takes the object
    assert mpi.Request.waitall([request]) == [None]
    assert request.test() == (True, None)
    assert request._take(status) == "object"
    assert request._take(status) is None


def a_file_is_left_alone_if_there_is_no_status(folder):
    file = mpi.File.Open(mpi.COMM_SELF, folder + "/file", mpi.MODE_CREATE | mpi.MODE_RDWR)
    data = np.ones(4, "u1")
    for call in (
        lambda: file.Write(data, "status"),
        lambda: file.Write_at(0, data, 1),
        lambda: file.Write_all(data, data),
        lambda: file.Write_at_all(0, data, mpi.Status),
        lambda: file.Write_ordered(data, ()),
        lambda: file.Write_shared(data, False),
    ):
        with pytest.raises(TypeError, match="status: expecting a Status"):
            call()
    assert file.size == file.Get_position() == file.Get_position_shared() == 0
    file.Close()


def a_refused_access_to_a_file_leaves_the_status_as_it_is(folder):
    """As a refused receive does: nothing has been read or written that the status could tell of."""
    path, data, status = folder + "/file", np.ones(4, "u1"), mpi.Status()
    file = mpi.File.Open(mpi.COMM_SELF, path, mpi.MODE_CREATE | mpi.MODE_WRONLY)
    read_only = mpi.File.Open(mpi.COMM_SELF, path, mpi.MODE_RDONLY)
    for call in (
        lambda: file.Write_at(-1, data, status),
        lambda: file.Write_at(1 << 62, data, status),
        lambda: file.Write_at_all(-1, data, status),
        lambda: file.Read_at(0, data, status),
        lambda: file.Read(data, status),
        lambda: read_only.Read_at(-1, data, status),
        lambda: read_only.Write_at(0, data, status),
        lambda: read_only.Write_shared(data, status),
    ):
        status.Set_source(3)
        status.Set_tag(5)
        status.Set_elements(mpi.BYTE, 9)
        with pytest.raises(mpi.Exception):
            call()
        assert (status.source, status.tag, status.error, status.count) == (3, 5, 0, 9)
    assert file.size == 0
    file.Close()
    read_only.Close()


def a_message_is_still_there_if_there_is_no_status():
    world, data = mpi.COMM_SELF, np.zeros(4, "u1")
    world.Send(np.ones(4, "u1"), 0)
    message = world.Mprobe()
    with pytest.raises(TypeError, match="status: expecting a Status"):
        message.Recv(data, "status")
    message.Recv(data)
    assert data.all()
    world.send("object", 0)
    message = world.mprobe()
    with pytest.raises(TypeError, match="status: expecting a Status"):
        message.recv("status")
    assert message.recv() == "object"


def first_calls_that_find_no_memory(call):
    """The first calls make what the next ones keep: each piece of memory that they ask for is missing once."""
    import _testcapi

    def receive():
        return mpi.COMM_SELF.recv(source=0)

    def request():
        mpi.COMM_SELF.irecv(source=0).Cancel()

    def send():
        mpi.COMM_SELF.send(1, 0)

    def gather():
        return mpi.COMM_SELF.allgather(1)

    calls, failed = {"recv": receive, "irecv": request, "send": send, "allgather": gather}, 0
    for start in range(40):
        if call == "recv":
            mpi.COMM_SELF.Send(np.frombuffer(pickle.dumps(1), "u1"), 0)
        _testcapi.set_nomemory(start, start + 1)
        try:
            calls[call]()
        except MemoryError:
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
    assert failed > 1
    while mpi.COMM_SELF.Iprobe():
        mpi.COMM_SELF.Recv(np.zeros(100, "u1"))
