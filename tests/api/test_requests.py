"""Modes of sending, and the completion of one, some and all of several requests."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_buffered_sends_need_no_receiver(ranks, n):
    ranks(
        n,
        program.buffered_sends_need_no_receiver,
    )


def test_exchanges_without_blocking(ranks, n):
    ranks(
        n,
        program.exchanges_without_blocking,
    )


def test_some_of_several(ranks):
    ranks(
        2,
        program.some_of_several,
    )


def test_requests_of_the_program(ranks):
    ranks(
        2,
        program.requests_of_the_program,
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
        program.failures_while_waiting_for_all,
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
