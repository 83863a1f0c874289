"""The programs of test_kind_errors.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import inspect
import mmap
import os
import sys

import numpy as np
from rankside import rank, say, size, world

from gormapy import MPI


def says(kind, words, call):
    """Expect an error of a kind, or of an error class of MPI, whose text has all the words.

    Words that begin with "!" must not be there.
    """
    try:
        call()
    except Exception as error:
        if isinstance(kind, int):
            assert isinstance(error, MPI.Exception), repr(error)
            assert error.Get_error_class() == kind, error
        else:
            assert type(error) is kind, f"{type(error)}: {error}"
        text = str(error)
        for word in words.split("|"):
            missing = word[1:] in text if word.startswith("!") else word not in text
            assert not missing, f"{word!r} and the text: {text}"
    else:
        raise AssertionError(f"no error with {words!r}")


def still_well():
    "See that the job is well after the mistakes."
    win.Fence()
    assert world.allreduce(1) == size
    win.Free()


a, b, matrix, whole = np.zeros(4), np.zeros(4), np.zeros((4, 6)), np.zeros(4, "i4")
win = MPI.Win.Create(a, 8, comm=world)
win.Fence()


def one_sided_call_without_the_rank():
    i = np.zeros(1, "i8")
    says(
        TypeError,
        "Win.Put|target_rank|win.Put(origin, target_rank, target)|place in",
        lambda: win.Put([a, MPI.DOUBLE], target=1),
    )
    says(TypeError, "Win.Get|target_rank", lambda: win.Get(b, target=1))
    says(TypeError, "Win.Put|target_rank", lambda: win.Put(b))
    says(TypeError, "Win.Put|target_rank", lambda: win.Put(b, rank=1))
    says(TypeError, "Win.Accumulate|target_rank|op", lambda: win.Accumulate(b, target=1, op=MPI.SUM))
    says(TypeError, "Win.Get_accumulate|origin, result, target_rank", lambda: win.Get_accumulate(b, b.copy(), target=1))
    says(
        TypeError,
        "Win.Fetch_and_op|target_rank|target_disp is the place",
        lambda: win.Fetch_and_op(i, i.copy(), target_disp=1),
    )
    says(
        TypeError,
        "Win.Compare_and_swap|target_rank|target_disp",
        lambda: win.Compare_and_swap(i, i, i.copy(), target_disp=1),
    )
    says(TypeError, "target_rank: expecting an integer, got str|int('1')", lambda: win.Put(b, "1"))
    says(TypeError, "target_rank|got list", lambda: win.Put(b, [0, 4]))
    says(TypeError, "target_rank|got float", lambda: win.Put(b, 1.0))
    # the rank stays an argument that has to be given, for whoever looks at the signature
    for name in "Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap".split():
        rank_argument = inspect.signature(getattr(MPI.Win, name)).parameters["target_rank"]
        assert rank_argument.default is rank_argument.empty, name
    still_well()


def window_on_comm_self():
    for own in (MPI.Win.Create(b), MPI.Win.Allocate(32, 8)):
        own.Fence()
        hint = "rank 1|COMM_SELF|comm=MPI.COMM_WORLD"
        says(MPI.ERR_RANK, hint, lambda: own.Put(a, 1))
        says(MPI.ERR_RANK, hint, lambda: own.Get(a, 1))
        says(MPI.ERR_RANK, hint, lambda: own.Accumulate(a, 1))
        says(MPI.ERR_RANK, hint, lambda: own.Fetch_and_op(a[:1], b[:1], 1))
        says(MPI.ERR_RANK, hint, lambda: own.Lock(1))
        says(MPI.ERR_RANK, hint, lambda: own.Unlock(1))
        own.Put(a, 0)
        own.Fence(MPI.MODE_NOSUCCEED)
        own.Free()
    # a window that others made is told as it is
    says(MPI.ERR_RANK, "rank 2|window of 2 ranks|0 to 1|!COMM_SELF", lambda: win.Put(a, 2))
    still_well()


def process_that_nothing_started_more_of():
    says(MPI.ERR_RANK, "rank 1|!mpiexec", lambda: world.Send(a, 1))
    still_well()


def memory_that_is_not_contiguous():
    for call in (
        lambda: world.Send(matrix[:, 1], 0),
        lambda: world.Bcast(matrix[:, 1], rank),
        lambda: win.Put(matrix[:, 1], 0),
        lambda: world.Allreduce(matrix[:, 1], b),
    ):
        says(BufferError, "not contiguous|axis 0|stride of 48 bytes where 8 are|np.ascontiguousarray", call)
    for call in (
        lambda: world.Recv(matrix[:, 1], 0),
        lambda: win.Get(matrix[:, 1], 0),
        lambda: world.Irecv(matrix[:, 1], 0),
        lambda: world.Allreduce(b, matrix[:, 1]),
    ):
        # what ascontiguousarray makes would take the data and be thrown away
        says(BufferError, "not contiguous|axis 0|stride of 48 bytes where 8 are|copy from it|!ascontiguousarray", call)
    says(BufferError, "axis 0|stride of 48 bytes where 24 are", lambda: world.Send(matrix[:, :3], 0))
    says(BufferError, "axis 1|stride of 16 bytes where 8 are", lambda: world.Send(matrix[:, ::2], 0))
    says(BufferError, "axis 0|stride of -8 bytes", lambda: world.Send(a[::-1], 0))
    says(BufferError, "Win.Create|axis 0|window|!ascontiguousarray", lambda: MPI.Win.Create(matrix[:, 1]))
    world.Isend(matrix.T, MPI.PROC_NULL).Wait()  # in the order of Fortran, but without gaps
    still_well()


def objects_in_upper_case_calls():
    says(
        TypeError, "Send|[buffer, count, datatype]|int|comm.send|np.array([1, 2, 3])", lambda: world.Send([1, 2, 3], 0)
    )
    says(TypeError, "comm.isend", lambda: world.Isend([1, 2], 0))
    says(TypeError, "comm.bcast|np.array", lambda: world.Bcast([1, 2, 3], rank))
    says(TypeError, "comm.bcast|np.empty", lambda: world.Bcast([1, 2, 3], 1 - rank))
    says(TypeError, "comm.allgather", lambda: world.Allgatherv([1, 2], b))
    says(ValueError, "2 to 4 items, got 5|comm.send", lambda: world.Send([1, 2, 3, 4, 5], 0))
    says(ValueError, "2 to 4 items, got 1|comm.send", lambda: world.Send([b], 0))
    says(TypeError, "list|comm.send", lambda: world.Send([[1, 2], [3, 4]], 0))
    says(TypeError, "str|comm.send|encode", lambda: world.Send("text", 0))
    says(TypeError, "int|comm.send|np.array(5)", lambda: world.Send(5, 0))
    says(TypeError, "dict|comm.send", lambda: world.Send({"a": 1}, 0))
    says(TypeError, "got None", lambda: world.Send(None, 0))
    says(TypeError, "class float", lambda: world.Recv(float, 0))
    says(TypeError, "obj = comm.recv|np.empty|!np.array(", lambda: world.Recv(5, 0))
    says(TypeError, "int|comm.allreduce", lambda: world.Allreduce(5, b))
    says(TypeError, "np.array|!comm.", lambda: win.Put([1, 2, 3], 0))
    says(KeyError, "Python objects|lower-case", lambda: world.Send(np.array([{}, 1], dtype=object), 0))
    says(KeyError, "text", lambda: world.Send(np.array(["abc"]), 0))
    says(KeyError, "Create_struct", lambda: world.Send(np.zeros(2, "i4,f8"), 0))
    says(ValueError, "view('i8')", lambda: world.Send(np.zeros(2, "M8[s]"), 0))
    still_well()


def counts_and_datatypes():
    says(ValueError, "negative count -1", lambda: world.Send([a, -1, MPI.DOUBLE], 0))
    says(ValueError, "count 5|40 bytes|32", lambda: world.Send([a, 5, MPI.DOUBLE], 0))
    says(ValueError, "count 3|2 ranks|48 bytes|32", lambda: world.Allgather(a, [b, 3, MPI.DOUBLE]))
    says(TypeError, "count: expecting an integer, got float", lambda: world.Send([a, 2.5, MPI.DOUBLE], 0))
    says(TypeError, "count|ndarray", lambda: world.Send([a, b], 0))
    says(TypeError, "datatype|ndarray", lambda: world.Send([a, b[:1].astype("i4"), b], 0))
    for name in ("double", "float64", float, np.float64):
        says(KeyError, "MPI.DOUBLE", lambda: world.Send([a, 4, name], 0))
    says(TypeError, "MPI.DOUBLE", lambda: world.Send([a, np.float64], 0))
    says(TypeError, "MPI.DOUBLE", lambda: world.Send([a, a.dtype], 0))
    says(KeyError, "'quark'|MPI.DOUBLE|type code", lambda: world.Send([a, 4, "quark"], 0))
    says(ValueError, "12 is not a multiple|8", lambda: world.Send([np.zeros(3, "i4"), MPI.DOUBLE], 0))
    says(MPI.ERR_TYPE, "DATATYPE_NULL", lambda: world.Send([a, 4, MPI.DATATYPE_NULL], 0))
    says(MPI.ERR_TYPE, "MPI_DOUBLE|MPI_INT", lambda: world.Allreduce(a, whole))
    says(MPI.ERR_TYPE, "32 bytes|24 bytes", lambda: world.Allreduce(a, b[:3]))
    says(ValueError, "MPI_DOUBLE|MPI_INT", lambda: world.Scan(a, whole))
    says(ValueError, "MPI_DOUBLE and MPI_LONG", lambda: win.Fetch_and_op(a[:1], np.zeros(1, int), 0))
    says(BufferError, "read-only|bytearray", lambda: world.Recv(b"abc", 0))
    says(BufferError, "read-only|copy", lambda: world.Recv(np.broadcast_to(1.0, (1,)), 0))
    says(ValueError, "expecting 2 items as counts, got 3", lambda: world.Gatherv(a, [np.zeros(8), [1, 2, 3]], rank))
    still_well()


def operations():
    for op, meant in ((sum, "MPI.SUM"), (max, "MPI.MAX"), (min, "MPI.MIN"), (None, "None"), ("sum", "str")):
        says(TypeError, f"Allreduce: op|{meant}", lambda: world.Allreduce(a, b, op=op))
        says(TypeError, f"Win.Accumulate: op|{meant}", lambda: win.Accumulate(a, 0, op=op))
        says(TypeError, f"Reduce: op|{meant}", lambda: world.Reduce(a, b, op))
    says(TypeError, "Op.Create", lambda: world.Allreduce(a, b, op=lambda x, y: x))
    says(MPI.ERR_OP, "MPI_BAND|MPI_DOUBLE", lambda: world.Allreduce(a, b, op=MPI.BAND))
    still_well()


def ranks_roots_and_tags():
    says(MPI.ERR_RANK, "destination rank 7|0 to 1", lambda: world.Send(a, 7))
    says(MPI.ERR_RANK, "destination rank -1", lambda: world.Send(a, -1))
    says(MPI.ERR_RANK, "source rank 7", lambda: world.recv(source=7))
    says(MPI.ERR_ROOT, "root 7|0 to 1", lambda: world.Bcast(a, root=7))
    says(MPI.ERR_ROOT, "root -1", lambda: world.gather(a, root=-1))
    says(MPI.ERR_TAG, "tag -5", lambda: world.Send(a, 0, -5))
    says(MPI.ERR_TAG, "ANY_TAG", lambda: world.Send(a, 0, MPI.ANY_TAG))
    says(TypeError, "rank: expecting an integer, got str", lambda: world.Send(a, "1"))
    says(TypeError, "rank|float", lambda: world.Isend(a, 1.0))
    says(TypeError, "tag|str", lambda: world.Send(a, 0, "x"))
    says(TypeError, "source|str", lambda: world.Probe("1"))
    says(TypeError, "root|str", lambda: world.Bcast(a, root="0"))
    says(TypeError, "color|str", lambda: world.Split("red"))
    says(TypeError, "rank|str", lambda: win.Lock("0"))
    says(TypeError, "2 items|int", lambda: MPI.COMM_SELF.Dup() and world.scatter(7, root=rank))
    # nobody is there, so that nothing is looked at
    for call in (world.Send, world.Recv, world.Ssend, win.Put, win.Get, win.Accumulate):
        call(a, MPI.PROC_NULL)
        call([1, 2, 3], MPI.PROC_NULL)
    win.Lock(MPI.PROC_NULL)
    win.Unlock(MPI.PROC_NULL)
    still_well()


def truncated_and_out_of_range():
    send = world.Isend(a, 1 - rank, tag=5)
    says(MPI.ERR_TRUNCATE, f"32 bytes|16 bytes|rank {1 - rank}|tag 5", lambda: world.Recv(b[:2], 1 - rank, 5))
    send.Wait()
    send = world.isend(list(range(1000)), 1 - rank, tag=6)
    says(
        MPI.ERR_TRUNCATE,
        f"buffer of 10 bytes|rank {1 - rank}|tag 6",
        lambda: world.irecv(bytearray(10), 1 - rank, 6).wait(),
    )
    send.wait()
    says(MPI.ERR_RMA_RANGE, "bytes 24 to 56|rank 1|displacement 3|units of 8|32 bytes", lambda: win.Put(a, 1, 3))
    says(MPI.ERR_RMA_RANGE, "rank 0|32 bytes", lambda: win.Get(np.zeros(5), 0))
    says(MPI.ERR_DISP, "-3", lambda: win.Put(a, 1, -3))
    says(MPI.ERR_COUNT, "-3", lambda: win.Put(a, 1, [0, -3]))
    says(MPI.ERR_TYPE, "8 bytes|2 x MPI_INT|32", lambda: win.Put(a, 1, [0, 2, MPI.INT]))
    still_well()


def making_windows():
    says(TypeError, "disp_unit|comm=", lambda: MPI.Win.Create(a, world))
    says(TypeError, "comm|int", lambda: MPI.Win.Create(a, 8, MPI.INFO_NULL, 3))
    says(TypeError, "memory|list|np.array", lambda: MPI.Win.Create([1, 2, 3]))
    says(TypeError, "memory|Win.Allocate", lambda: MPI.Win.Create(80))
    says(BufferError, "read-only", lambda: MPI.Win.Create(b"abc"))
    says(TypeError, "bytes|ndarray", lambda: MPI.Win.Allocate(np.zeros(3)))
    says(TypeError, "bytes|float", lambda: MPI.Win.Allocate(8.0))
    says(MPI.ERR_SIZE, "-1", lambda: MPI.Win.Allocate(-1))
    says(MPI.ERR_DISP, "0", lambda: MPI.Win.Create(a, 0))
    still_well()


def what_is_freed_or_null():
    gone = MPI.Win.Allocate(8)
    gone.Lock(0)
    # a Free that is refused leaves the window as it is
    says(MPI.ERR_RMA_SYNC, "rank 0 is locked|unlock", gone.Free)
    gone.Put(a[:1], 0)
    gone.Unlock(0)
    gone.Free()
    for call in (
        gone.Fence,
        gone.Free,
        gone.tomemory,
        lambda: gone.Put(a, 0),
        lambda: gone.Lock(0),
        lambda: gone.flavor,
    ):
        says(MPI.ERR_WIN, "WIN_NULL|freed", call)
    comm = world.Dup()
    other = MPI.Intracomm(comm)
    comm.Free()
    says(MPI.ERR_COMM, "COMM_NULL|freed", comm.Free)
    says(MPI.ERR_COMM, "COMM_NULL", lambda: comm.Send(a, 0))
    says(MPI.ERR_COMM, "freed", lambda: other.Send(a, 0))
    says(MPI.ERR_COMM, "freed", other.Barrier)
    for call in (
        MPI.COMM_NULL.Get_rank,
        MPI.COMM_NULL.Barrier,
        lambda: MPI.COMM_NULL.bcast(1),
        lambda: MPI.COMM_NULL.Allreduce(a, b),
        lambda: MPI.Win.Create(a, comm=MPI.COMM_NULL),
    ):
        says(MPI.ERR_COMM, "COMM_NULL", call)
    says(MPI.ERR_COMM, "COMM_WORLD can't be freed", world.Free)
    request = world.Send_init(a, 0)
    again = MPI.Prequest(request)
    request.Free()
    says(MPI.ERR_REQUEST, "freed", request.Start)
    says(MPI.ERR_REQUEST, "freed", again.Start)
    says(TypeError, "Waitall|list of requests|NoneType", lambda: MPI.Request.Waitall(None))
    says(TypeError, "NoneType at index 1", lambda: MPI.Request.Waitall([MPI.REQUEST_NULL, None]))
    says(TypeError, "Wait and Test", lambda: MPI.Request.Waitall(MPI.Request()))
    still_well()


def after_finalize():
    MPI.Finalize()
    for call in (
        lambda: world.Send(a, 0),
        lambda: world.send(1, 0),
        world.Barrier,
        lambda: world.bcast(1),
        win.Fence,
        lambda: win.Put(a, 0),
        lambda: MPI.Win.Create(a),
        world.Dup,
        MPI.Init,
    ):
        says(MPI.ERR_OTHER, "MPI was finalized", call)


def objects_that_cannot_be_pickled():
    for obj, path, what in [
        (lambda: 0, "the object,", "function"),
        ({"a": [1, (2, lambda: 0)]}, "the object['a'][1][1],", "function"),
        ([1, (y for y in ())], "the object[1],", "generator"),
        ({"out": sys.stdin}, "the object['out'],", "TextIOWrapper"),
        ([1, win], "the object[1],", "Win"),
    ]:
        for call in (lambda: world.send(obj, 0), lambda: world.bcast(obj), lambda: world.allreduce(obj)):
            try:
                call()
            except Exception as error:
                if hasattr(error, "__notes__"):
                    (note,) = error.__notes__
                    assert path in note and what in note and "pickle" in note, note
                else:
                    assert sys.version_info < (3, 11)
            else:
                raise AssertionError(obj)
    still_well()


def array_that_is_received_as_an_object():
    for array in np.arange(3.0), np.full(9, 3, "b"):
        request = world.Isend(array, 0)
        try:
            world.recv(source=0)
        except Exception as error:
            if hasattr(error, "__notes__"):
                (note,) = error.__notes__
                assert note.startswith(f"recv: the {array.nbytes} bytes that came are no pickled object"), note
        else:
            raise AssertionError(array)
        request.Wait()

    class Bad:
        def __reduce__(self):
            return int, ("no number",)

    request = world.isend(Bad(), 0)
    try:
        world.recv(source=0)
    except ValueError as error:
        assert not getattr(error, "__notes__", None)
    request.wait()
    still_well()


def singleton():
    says(MPI.ERR_RANK, "rank 1|mpiexec -n", lambda: world.Send(a, 1))
    says(MPI.ERR_ROOT, "root 1|mpiexec -n", lambda: world.Bcast(a, 1))
    says(MPI.ERR_RANK, "rank 1|mpiexec -n", lambda: win.Put(a, 1))


def mistakes_of_the_documentation():
    seen = []

    def see(call):
        try:
            call()
        except Exception as error:
            seen.append(f"{type(error).__name__}: {error}")

    own = MPI.Win.Create(b)
    see(lambda: own.Lock(1))
    see(lambda: win.Put(a, 1, 3))
    see(lambda: win.Put(a, target=1))
    see(lambda: world.Send(a, 5))
    see(lambda: world.Send([1, 2, 3], 1))
    see(lambda: world.Send(matrix[:, 1], 1))
    see(lambda: world.Send([a, 1, MPI.DOUBLE.Create_vector(2, 1, 2)], 1))
    see(lambda: world.Allreduce(whole, b))
    file = os.memfd_create("truncated")
    os.truncate(file, 4096)
    mapped = np.frombuffer(mmap.mmap(file, 4096))
    os.truncate(file, 0)
    see(lambda: world.Send(mapped, rank))
    if rank == 0:
        world.Send(a, 1, 5)
    else:
        see(lambda: world.Recv(b[:2], 0, 5))
    win.Fence(MPI.MODE_NOSUCCEED)
    see(lambda: win.Put(a, 1))
    other = world.Dup()
    see(lambda: other.Bcast(a) if rank == 0 else other.Allreduce(a, b))
    if rank == 1:
        say("\n".join(seen))
    win.Fence()
    own.Free()
    win.Free()


def packed_data_of_wrong_arguments():
    out = bytearray(64)
    for wrong, got in ((2.5, "float"), ("x", "str"), (None, "NoneType")):
        expected = f"position|integer|{got}"
        says(TypeError, f"Pack:|{expected}", lambda: MPI.INT.Pack(a, out, wrong, world))
        says(TypeError, f"Unpack:|{expected}", lambda: MPI.INT.Unpack(out, wrong, a, world))
        says(TypeError, f"Pack_size: count|integer|{got}", lambda: MPI.INT.Pack_size(wrong, world))
        rep = "external32"
        says(TypeError, f"Pack_external:|{expected}", lambda: MPI.INT.Pack_external(rep, a, out, wrong))
        says(TypeError, f"Unpack_external:|{expected}", lambda: MPI.INT.Unpack_external(rep, out, wrong, a))
        says(TypeError, f"Pack_external_size: count|{got}", lambda: MPI.INT.Pack_external_size(rep, wrong))


def messages_of_wrong_arguments():
    uncommitted = MPI.INT.Create_contiguous(2)
    says(MPI.ERR_TYPE, "a derived datatype is not committed", lambda: world.Send([a, 1, uncommitted], 0))
    says(TypeError, "Psend_init|info|an Info|int", lambda: world.Psend_init(a, 1, 0, 0, 3))
    says(TypeError, "Precv_init|info|an Info|str", lambda: world.Precv_init(a, 1, 0, 0, "x"))


def communicators_of_wrong_arguments():
    """What makes communicators, or is kept for them, names the argument and its type."""
    one, group = MPI.COMM_SELF, MPI.COMM_SELF.Get_group()
    from_group, from_groups = MPI.Intracomm.Create_from_group, MPI.Intercomm.Create_from_groups
    says(TypeError, "Create_intercomm|peer_comm|NoneType", lambda: one.Create_intercomm(0, None, 0))
    says(TypeError, "Create_intercomm|local_leader|NoneType", lambda: one.Create_intercomm(None, one, 0))
    says(TypeError, "Create_intercomm|remote_leader|str", lambda: one.Create_intercomm(0, one, "x"))
    says(TypeError, "Create_intercomm|tag|float", lambda: one.Create_intercomm(0, one, 0, 1.5))
    says(TypeError, "Compare|communicator|NoneType", lambda: one.Compare(None))
    says(TypeError, "Create|group|NoneType", lambda: one.Create(None))
    says(TypeError, "Create_group|group|Intracomm", lambda: one.Create_group(one))
    says(TypeError, "Create_from_group|group|NoneType", lambda: from_group(None))
    says(TypeError, "Create_from_group|stringtag|NoneType", lambda: from_group(group, None))
    says(TypeError, "Create_from_groups|local_group|NoneType", lambda: from_groups(None, 0, group, 0))
    says(TypeError, "Create_from_groups|remote_group|NoneType", lambda: from_groups(group, 0, None, 0))
    says(TypeError, "Create_from_groups|stringtag|int", lambda: from_groups(group, 0, group, 0, 5))
    says(MPI.ERR_RANK, "rank 0|group, which is empty|!-1", lambda: from_groups(group, 0, MPI.GROUP_EMPTY, 0))
    says(TypeError, "Session.Init|info|str", lambda: MPI.Session.Init("x"))
    session = MPI.Session.Init()
    says(TypeError, "Get_nth_pset|n:|NoneType", lambda: session.Get_nth_pset(None))
    session.Finalize()
    says(TypeError, "Reduce_scatter|recvcounts|str", lambda: one.Reduce_scatter(a[:1], b[:1], ["x"]))
    says(TypeError, "communicator|NoneType", lambda: MPI._comm_lock(None))
    says(TypeError, "_commctx_inter|expecting an intercommunicator", lambda: MPI._commctx_inter(one))
    freed = one.Dup()
    again = MPI.Intracomm(freed)
    freed.Free()
    says(MPI.ERR_COMM, "freed", lambda: MPI._comm_lock(again))
    group.Free()
    still_well()
