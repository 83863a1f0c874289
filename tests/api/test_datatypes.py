"""Datatypes: the predefined ones, derived ones, and what NumPy has."""

from support.programs import beside

program = beside(__file__)


def test_every_numpy_type_has_a_datatype(ranks):
    ranks(
        1,
        program.every_numpy_type_has_a_datatype,
    )


def test_derived_types(ranks):
    ranks(
        2,
        program.derived_types,
    )


def test_types_of_numpy_by_their_characters(ranks):
    ranks(
        1,
        program.types_of_numpy_by_their_characters,
    )


def test_distributed_arrays(ranks):
    ranks(
        1,
        program.distributed_arrays,
    )


def test_only_committed_types_communicate(mpirun):
    """Every call that communicates refuses a type that is not committed, and says what to do."""
    mpirun(
        1,
        """
        import tempfile
        import numpy as np
        from rankside import *

        me = MPI.COMM_SELF
        a, b = np.arange(8.0), np.zeros(8)
        packed = bytearray(64)
        win = MPI.Win.Allocate(64, 8, comm=me)
        win.Lock_all()
        file = MPI.File.Open(me, tempfile.mktemp(dir="."), MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
        tried = 0

        def refused(call, *args, **kwargs):
            global tried
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
        made = contiguous.Create_vector(1, 1, 1), contiguous.Dup(), MPI.Datatype(contiguous)  # of an uncommitted one: allowed
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
        """,
    )


def test_counts_that_wrap(ranks):
    """Counts whose bytes are 2^64 more than those of the origin."""
    ranks(
        1,
        program.counts_that_wrap,
    )
