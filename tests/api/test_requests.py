"""Modes of sending, and the completion of one, some and all of several requests."""

import pytest


def test_buffered_sends_need_no_receiver(mpirun, n):
    mpirun(
        n,
        """
        import numpy as np
        from rankside import *
        room = bytearray(MPI.BSEND_OVERHEAD + 100)
        MPI.Attach_buffer(room)
        right, left = (rank + 1) % size, (rank - 1) % size
        for count in (0, 1, 1000, 300_000):
            world.Bsend(np.full(count, rank, "i4"), right, 5)  # all ranks send first
            request = world.Ibsend(np.full(count, rank, "i4"), right, 6)
            request.Wait()
            world.bsend([rank] * 10, right, 7)
            into = np.full(count, -1, "i4")
            for tag in (5, 6):
                world.Recv(into, left, tag)
                assert (into == left).all()
            assert world.recv(source=left, tag=7) == [left] * 10
        MPI.Flush_buffer()
        MPI.Iflush_buffer().Wait()
        assert MPI.Detach_buffer().nbytes == len(room)
        assert MPI.Detach_buffer() is None
        """,
    )


def test_exchanges_without_blocking(mpirun, n):
    mpirun(
        n,
        """
        import numpy as np
        from rankside import *
        right, left = (rank + 1) % size, (rank - 1) % size
        status = MPI.Status()
        for count in (1, 1000, 300_000):
            into = np.full(count, -1)
            request = world.Isendrecv(np.full(count, rank), right, 3, into, left, 3)
            request.Wait(status)
            assert request == MPI.REQUEST_NULL
            assert (into == left).all()
            assert (status.source, status.tag, status.Get_count(MPI.LONG)) == (left, 3, count)
            both = np.full(count, rank)
            request = world.Isendrecv_replace(both, right, source=left)
            while not request.Test(status):
                pass
            assert (both == left).all() and status.source == left
            both = np.full(count, rank)
            world.Sendrecv_replace(both, left, 1, right, 1, status)
            assert (both == right).all() and status.tag == 1
        request = world.Isendrecv(None, MPI.PROC_NULL, 0, None, MPI.PROC_NULL)
        request.Wait(status)
        assert status.source == MPI.PROC_NULL
        with fails(MPI.ERR_RANK):
            world.Isendrecv(np.zeros(1), size, 0, np.zeros(1), 0)
        short = np.zeros(1)
        request = world.Isendrecv(np.zeros(3), rank, 0, short, rank)
        with fails(MPI.ERR_TRUNCATE):
            request.Wait()
        """,
    )


def test_some_of_several(mpirun):
    mpirun(
        2,
        """
        import numpy as np
        from rankside import *
        Request = MPI.Request
        if rank == 0:
            into = np.full((4, 10), -1)
            requests = [world.Irecv(into[tag], 1, tag) for tag in range(4)]
            statuses = [MPI.Status() for _ in requests]
            assert Request.Testany(requests) == (MPI.UNDEFINED, False)
            assert Request.Testsome(requests) == []
            assert not requests[2].Get_status()
            world.send("go", 1)
            done = []
            while len(done) < 2:
                done += Request.Waitsome(requests, statuses)
            assert sorted(done) == [0, 2]
            assert (into[0] == 0).all() and (into[2] == 2).all() and (into[1] == -1).all()
            assert requests[0] == MPI.REQUEST_NULL and requests[1] != MPI.REQUEST_NULL
            world.send("go", 1)
            while not requests[3].Get_status(statuses[0]):
                pass
            assert statuses[0].tag == 3 and (into[3] == 3).all()
            assert requests[3] != MPI.REQUEST_NULL  # which Get_status leaves
            index, flag = Request.Testany(requests, statuses[1])
            assert (index, flag, statuses[1].Get_count(MPI.LONG)) == (3, True, 10)
            requests[1].Cancel()
            requests[1].Wait(statuses[0])
            assert statuses[0].Is_cancelled() and (into[1] == -1).all()
            assert Request.Testsome(requests) is None and Request.Waitsome(requests) is None
            assert Request.Testany(requests) == (MPI.UNDEFINED, True)
        else:
            world.recv(source=0)
            for tag in (2, 0):
                world.Send(np.full(10, tag), 0, tag)
            world.recv(source=0)
            world.Send(np.full(10, 3), 0, 3)
        """,
    )


def test_requests_of_the_program(mpirun):
    mpirun(
        2,
        """
        import threading
        import time
        import numpy as np
        from rankside import *
        said = []
        def query(status, *args, **kwargs):
            said.append(("query", args, kwargs))
            status.Set_source(7)
            status.Set_elements(MPI.INT, 3)
        def start():
            free = lambda *args, **kwargs: said.append(("free", args, kwargs))
            cancel = lambda completed, *args, **kwargs: said.append(("cancel", completed))
            return MPI.Grequest.Start(query, free, cancel, (1,), {"two": 2})
        both = ((1,), {"two": 2})
        status = MPI.Status()
        request = start()
        assert not request.Test() and not request.Get_status()
        request.Cancel()
        assert said == [("cancel", False)]
        # completed by a thread, while this one waits with a receive
        into = np.zeros(1)
        receive = world.Irecv(into, 1 - rank)
        def finish():
            time.sleep(0.1)
            request.Complete()
        thread = threading.Thread(target=finish)
        thread.start()
        world.Send(np.ones(1), 1 - rank)
        statuses = [MPI.Status(), MPI.Status()]
        MPI.Request.Waitall([receive, request], statuses)
        thread.join()
        assert into[0] == 1 and statuses[1].source == 7 and statuses[1].Get_count(MPI.INT) == 3
        assert said[1:] == [("query", *both), ("free", *both)]
        assert request == MPI.REQUEST_NULL
        request = start()
        request.complete({"an": "object"})
        said.clear()
        assert request.Get_status(status) and status.source == 7
        assert said == [("query", *both)]
        assert request.wait() == {"an": "object"}
        assert said[1:] == [("query", *both), ("free", *both)]
        with fails(MPI.ERR_REQUEST):
            request.Complete()
        def wrong(status):
            raise ValueError("of the program")
        request = MPI.Grequest.Start(wrong)
        request.Complete()
        with fails(MPI.ERR_OTHER):
            request.Wait()
        """,
    )


WAITS = {
    "Waitall": "MPI.Request.Waitall(requests)",
    "Waitall, statuses": "MPI.Request.Waitall(requests, statuses)",
    "waitall": "MPI.Request.waitall(requests)",
}


@pytest.mark.parametrize("call", WAITS)
def test_interrupted_wait_for_all_is_repeated(mpirun, call):
    """A signal handler raises an exception once one of two messages has come: the program waits again."""
    mpirun(
        2,
        f"""
        import numpy as np
        from rankside import *
        if rank == 0:
            arrays = np.zeros((2, 4))
            objects = "{call}" == "waitall"
            requests = [world.irecv(source=1, tag=k) if objects else world.Irecv(arrays[k], 1, k) for k in range(2)]
            statuses = []
            with interrupted():
                {WAITS[call]}
            world.Barrier()
            result = {WAITS[call]}
            if objects:
                assert result == [[1], [2]], result
            else:
                assert arrays.tolist() == [[1] * 4, [2] * 4], arrays
            if statuses:
                assert [s.tag for s in statuses] == [0, 1], statuses
        else:
            objects = "{call}" == "waitall"
            for k in range(2):
                world.send([k + 1], 0, k) if objects else world.Send(np.full(4, k + 1.0), 0, k)
                if k == 0:
                    world.Barrier()
        """,
    )


def test_failures_while_waiting_for_all(mpirun):
    """The statuses tell which of them failed, and what failed is not completed."""
    mpirun(
        2,
        """
        import numpy as np
        from rankside import *
        if rank == 0:
            calls = []
            op = MPI.Op.Create(lambda a, b, t: calls.append(1), True)
            array, folded, gone = np.ones(4, "i8"), np.full(4, -5, "i8"), np.zeros(4)
            statuses = []
            mine = np.zeros(4)
            requests = [world.Irecv(gone, 1, 1), world.Iallreduce(array, folded, op), world.Irecv(mine, 0, 2)]
            world.Send(np.ones(4), 0, 2)
            with fails(MPI.ERR_PROC_FAILED):
                MPI.Request.Waitall(requests, statuses)
            assert [s.Get_error() for s in statuses] == [MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED, MPI.SUCCESS]
            assert not calls and (folded == -5).all() and (mine == 1).all()
            assert not any(requests)
            import os
            os._exit(0)
        """,
    )


INITS = {
    "Bcast_init": "[array, 1, T]",
    "Allreduce_init": "[array, 1, T], [into, 1, T], add",
    "Allgather_init": "[array, 1, T], [into, 1, T]",
    "Alltoallv_init": "[array, [1], [0], T], [into, [1], [0], T]",
    "Alltoallw_init": "[array, [1], [0], [T]], [into, [1], [0], [T]]",
    "Send_init": "[array, 1, T], MPI.PROC_NULL",
    "Send": "[array, 1, T], MPI.PROC_NULL",
    "Isend": "[array, 1, T], MPI.PROC_NULL",
    "Recv": "[array, 1, T], MPI.PROC_NULL",
}


@pytest.mark.parametrize(("call", "arguments"), INITS.items())
def test_datatypes_that_are_not_committed(mpirun, call, arguments):
    """The call that is given one refuses it, before the operation is started and whoever it is for."""
    mpirun(
        1,
        f"""
        import numpy as np
        from rankside import *
        array, into = np.zeros(2), np.zeros(2)
        add = MPI.Op.Create(lambda a, b, datatype: None, True)
        T = MPI.DOUBLE.Create_contiguous(2)
        with fails(MPI.ERR_TYPE, "commit"):
            world.{call}({arguments})
        T.Commit()
        request = world.{call}({arguments})
        if "{call}".endswith("_init"):
            request.Start()
        if isinstance(request, MPI.Request):
            request.Wait()
        """,
    )
