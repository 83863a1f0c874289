"""What becomes of an error: an exception, the end of the job, or a function of the program."""

import pytest
from support.mpirun import ANY


def test_errors_are_exceptions(mpirun):
    mpirun(
        2,
        """
        import numpy as np
        from rankside import *
        win = MPI.Win.Allocate(8, comm=world)
        for obj in (world, MPI.COMM_SELF, world.Dup(), win):
            assert obj.Get_errhandler() == MPI.ERRORS_RETURN
            obj.Set_errhandler(MPI.ERRORS_RETURN)
            obj.Call_errhandler(MPI.ERR_OTHER)
            with fails(MPI.ERR_ERRHANDLER):
                obj.Set_errhandler(MPI.ERRHANDLER_NULL)
        with fails(MPI.ERR_RANK):
            world.Send(np.zeros(1), 2)
        with fails(MPI.ERR_COMM):
            MPI.COMM_NULL.Set_errhandler(MPI.ERRORS_RETURN)
        """,
    )


def test_a_function_of_the_program(mpirun):
    mpirun(
        2,
        """
        import numpy as np
        from rankside import *
        seen = []
        note = MPI.Comm.Create_errhandler(lambda comm, code: seen.append((comm.name, MPI.Get_error_class(code))))
        comm = world.Dup()
        comm.name = "mine"
        comm.Set_errhandler(note)
        assert comm.Get_errhandler() == note and world.Get_errhandler() == MPI.ERRORS_RETURN
        note.Free()
        assert note == MPI.ERRHANDLER_NULL

        def heard(error_class, call, name="mine"):
            with fails(error_class):
                call()
            assert seen == [(name, error_class)], seen
            seen.clear()

        short = np.zeros(1)
        heard(MPI.ERR_RANK, lambda: comm.Send(short, 7))            # in the extension
        heard(MPI.ERR_RANK, lambda: comm.send({}, dest=7))          # in Python, and calls others
        heard(MPI.ERR_ROOT, lambda: comm.Bcast(short, root=7))
        heard(MPI.ERR_ROOT, lambda: comm.bcast(short, root=7))
        heard(MPI.ERR_TRUNCATE, comm.Isendrecv(np.zeros(3), rank, 0, short, rank).Wait)
        requests = [comm.Isend(np.zeros(3), rank), comm.Irecv(short, rank)]
        heard(MPI.ERR_TRUNCATE, lambda: MPI.Request.Waitall(requests))
        requests = [comm.Isend(np.zeros(3), rank), comm.Irecv(short, rank)]
        heard(MPI.ERR_TRUNCATE, lambda: MPI.Request.Waitall(requests, [MPI.Status(), MPI.Status()]))
        heard(MPI.ERR_RANK, lambda: comm.Dup().Send(short, 7), "")  # which it has inherited
        heard(MPI.ERR_RANK, lambda: comm.Split(0, rank).Send(short, 7), "")
        heard(MPI.ERR_RANK, lambda: comm.Create_cart([size]).Send(short, 7), "")
        with fails(MPI.ERR_RANK):
            world.Send(short, 7)
        try:
            comm.Send(np.zeros((3, 3))[:, 0], 0)  # no error of MPI's
        except BufferError:
            pass
        comm.Call_errhandler(MPI.ERR_OTHER)
        assert seen.pop() == ("mine", MPI.ERR_OTHER) and not seen
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        with fails(MPI.ERR_RANK):
            comm.Send(short, 7)
        assert not seen

        win = MPI.Win.Allocate(8, comm=comm)
        win.name = "window"
        win.Set_errhandler(MPI.Win.Create_errhandler(lambda win, code: seen.append((win.name, code))))
        with fails(MPI.ERR_RMA_SYNC):
            win.Put(short, 0)
        assert len(seen) == 1 and seen[0][0] == "window"
        win.Free()
        into = np.zeros(3)
        comm.Allreduce(np.ones(3), into)  # what is right is as before
        assert comm.sendrecv(rank, 1 - rank, source=1 - rank) == 1 - rank and (into == size).all()
        """,
    )


@pytest.mark.parametrize("handler", ["ERRORS_ARE_FATAL", "ERRORS_ABORT"])
@pytest.mark.parametrize(
    ("obj", "call", "said"),
    [
        ("world", "world.Isend(np.zeros(1), 5)", "Intracomm.Isend on MPI_COMM_WORLD: MPI_ERR_RANK: the destination"),
        ("world", "world.Dup().Bcast(np.zeros(1), 5)", "Intracomm.Bcast: MPI_ERR_ROOT: the root 5"),
        ("win", "win.Put(np.zeros(9), 0)", "Win.Put on window: MPI_ERR_RMA_RANGE"),
    ],
)
def test_the_job_ends(mpirun, handler, obj, call, said):
    result = mpirun(
        2,
        f"""
        import numpy as np
        from rankside import *
        win = MPI.Win.Allocate(8, comm=world)
        win.name = "window"
        win.Fence()
        {obj}.Set_errhandler(MPI.{handler})
        assert {obj}.Get_errhandler() == MPI.{handler}
        print("before")
        world.Barrier()  # the end may come before the other rank gets so far
        if rank == 1 or "Dup" in {call!r}:
            {call}
        else:
            world.recv()
        print("after")
        """,
        expect=ANY,
    )
    assert result.status not in (0, None), str(result)
    assert result.lines == ["before"] * 2
    assert said in result.stderr, str(result)
    assert f"is {handler}: the job ends" in result.stderr, str(result)
    assert "Traceback" not in result.stderr, str(result)


@pytest.mark.parametrize(
    ("errors", "handler"),
    [
        ("exception", "ERRORS_RETURN"),
        ("default", "ERRORS_ARE_FATAL"),
        ("fatal", "ERRORS_ARE_FATAL"),
        ("abort", "ERRORS_ABORT"),
    ],
)
def test_rc_errors(mpirun, errors, handler):
    result = mpirun.alone(
        f"""
        import gormapy
        gormapy.rc.errors = {errors!r}
        from gormapy import MPI
        assert MPI.COMM_WORLD.Get_errhandler() == MPI.{handler}
        assert MPI.Win.Allocate(8).Get_errhandler() == MPI.{handler}
        MPI.COMM_SELF.send(1, dest=5)
        """,
        expect=ANY,
    )
    assert result.status not in (0, None), str(result)
    assert ("Traceback" in result.stderr) == (errors == "exception"), str(result)
    assert "MPI_ERR_RANK" in result.stderr, str(result)


def test_rc_errors_that_do_not_exist(mpirun):
    result = mpirun.alone("import gormapy; gormapy.rc.errors = 'ignore'; from gormapy import MPI", expect=1)
    assert "expecting one of exception, default, fatal, abort, got 'ignore'" in result.stderr
