"""The programs of test_error_handlers.py."""

import contextlib
import sys
import threading
import warnings

import numpy as np
from rankside import fails, rank, size, world

from gormapy import MPI


@contextlib.contextmanager
def refused(kind, text):
    try:
        yield
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"there was no {kind.__name__}")


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
    handler = MPI.Win.Create_errhandler(lambda win, code: seen.append((win.name, code)))
    win.Set_errhandler(handler)
    handler.Free()
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


def at_most_so_many():
    """The limit counts error handlers that the program has not freed and no object uses."""
    comm = world.Dup()
    many = [MPI.Comm.Create_errhandler(lambda comm, code: None) for _ in range(32)]
    with refused(RuntimeError, "free those"):
        MPI.Comm.Create_errhandler(print)
    MPI.Win.Create_errhandler(print).Free()  # of another kind
    comm.Set_errhandler(many[0])
    used = comm.Get_errhandler()
    for handler in (*many, used):
        handler.Free()
    many = [MPI.Comm.Create_errhandler(print) for _ in range(31)]  # comm still uses one
    with refused(RuntimeError, "free those"):
        MPI.Comm.Create_errhandler(print)
    comm.Free()
    many.append(MPI.Comm.Create_errhandler(print))
    for handler in many:
        handler.Free()


def warnings_that_are_errors():
    """Guarded methods take arguments of any kind without a warning of Python's."""
    comm = world.Dup()
    handler = MPI.Comm.Create_errhandler(lambda comm, code: None)
    comm.Set_errhandler(handler)
    handler.Free()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert comm.sendrecv({"a": 1}, rank, 0, None, rank, 0) == {"a": 1}
        comm.Sendrecv(np.zeros(1), rank, 0, bytearray(8), rank, 0)
    comm.Free()


def _fails_to_free_comm(note):
    comm = world.Dup()
    comm.Set_errhandler(note)
    return comm.Free if rank == 0 else comm.Barrier


def _fails_to_disconnect(note):
    comm = world.Dup()
    comm.Set_errhandler(note)
    return comm.Disconnect if rank == 0 else comm.Barrier


def _fails_to_free_win(note):
    win = MPI.Win.Allocate(8, comm=world)
    win.Set_errhandler(note)
    win.Lock(rank)
    return win.Free


FREES = {
    "Comm.Free": (MPI.Comm, _fails_to_free_comm),
    "Comm.Disconnect": (MPI.Comm, _fails_to_disconnect),
    "Win.Free": (MPI.Win, _fails_to_free_win),
}


def freed_before_the_object(call):
    """A handler that the program has freed is called by the call that frees its last object."""
    seen = []
    kind, prepare = FREES[call]
    note = kind.Create_errhandler(lambda obj, code: seen.append(MPI.Get_error_class(code)))
    fail = prepare(note)
    note.Free()
    try:
        fail()
    except MPI.Exception as error:
        assert seen == [error.Get_error_class()], (seen, error)
    else:
        raise AssertionError(f"{call} did not fail")


def copies_of_a_freed_handler():
    comm = world.Dup()
    handler = MPI.Comm.Create_errhandler(lambda comm, code: None)
    again = MPI.Errhandler(handler)
    comm.Set_errhandler(handler)
    handler.Free()
    for call in (again.Free, lambda: world.Set_errhandler(again)):
        with fails(MPI.ERR_ERRHANDLER, "has been freed"):
            call()
    used = comm.Get_errhandler()  # the communicator still has it
    assert used == again
    used.Free()
    comm.Free()
    with fails(MPI.ERR_ERRHANDLER, "has been freed"):
        world.Set_errhandler(again)


def handler_of_another_kind():
    handler = MPI.Win.Create_errhandler(lambda win, code: None)
    with fails(MPI.ERR_ARG, "is one for a window, not for a communicator"):
        world.Set_errhandler(handler)
    assert world.Get_errhandler() == MPI.ERRORS_RETURN
    handler.Free()


def threads_make_handlers():
    wrong = []

    def work():
        try:
            for _ in range(5000):
                handler = MPI.Comm.Create_errhandler(print)
                handler.Free()
        except BaseException as error:
            wrong.append(repr(error))

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(often)
    assert not wrong, wrong
