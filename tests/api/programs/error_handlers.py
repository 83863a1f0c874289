"""The programs of test_error_handlers.py."""

import contextlib

import numpy as np
from rankside import fails, rank, size, world

from gormapy import MPI


def errors_are_exceptions():
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


def a_function_of_the_program():
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
    heard(MPI.ERR_RANK, lambda: comm.Send(short, 7))  # in the extension
    heard(MPI.ERR_RANK, lambda: comm.send({}, dest=7))  # in Python, and calls others
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
    with contextlib.suppress(BufferError):
        comm.Send(np.zeros((3, 3))[:, 0], 0)  # no error of MPI's
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


ENDS = {
    "world.Isend(np.zeros(1), 5)": lambda win: world.Isend(np.zeros(1), 5),
    "world.Dup().Bcast(np.zeros(1), 5)": lambda win: world.Dup().Bcast(np.zeros(1), 5),
    "win.Put(np.zeros(9), 0)": lambda win: win.Put(np.zeros(9), 0),
}


def job_ends(obj, call, handler):
    win = MPI.Win.Allocate(8, comm=world)
    win.name = "window"
    win.Fence()
    on = world if obj == "world" else win
    on.Set_errhandler(getattr(MPI, handler))
    assert on.Get_errhandler() == getattr(MPI, handler)
    print("before")
    world.Barrier()  # the end may come before the other rank gets so far
    if rank == 1 or "Dup" in call:
        ENDS[call](win)
    else:
        world.recv()
    print("after")
