"""The programs of test_environment.py."""

import os
import sys

import numpy as np

from gormapy import MPI


def errors_have_code_class_and_text():
    try:
        MPI.COMM_WORLD.Send(bytearray(1), 99)
    except MPI.Exception as error:
        assert error.Get_error_class() == error.error_class == MPI.ERR_RANK
        assert error.Get_error_code() == int(error) == error.error_code
        assert "99" in str(error) == error.Get_error_string()
        assert MPI.Get_error_class(int(error)) == MPI.ERR_RANK
        assert isinstance(error, RuntimeError) and error == int(error) and bool(error)
    else:
        raise AssertionError("no error")
    null = MPI.COMM_NULL
    for call in (null.Get_rank, null.Barrier, lambda: null.send(1, 0), lambda: null.bcast(1)):
        try:
            call()
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_COMM, error
        else:
            raise AssertionError("no error")
    new = MPI.Add_error_class()
    code = MPI.Add_error_code(new)
    MPI.Add_error_string(code, "something of our own")
    assert MPI.Get_error_class(code) == new and str(MPI.Exception(code)) == "something of our own"


def unhandled_exception_names_the_rank_once():
    def work():
        raise ValueError("in all ranks")

    work()


def exit_status_of_one_rank_ends_the_job():
    if MPI.COMM_WORLD.rank == 1:
        sys.exit(3)
    MPI.COMM_WORLD.Barrier()


def abort():
    if MPI.COMM_WORLD.rank == 1:
        MPI.COMM_WORLD.Abort(7)
    MPI.COMM_WORLD.Barrier()


def lines_appear_when_they_are_printed():
    print("line of", MPI.COMM_WORLD.rank)
    MPI.COMM_WORLD.Barrier()
    os._exit(0)  # nothing is flushed at exit


def singleton_has_everything():
    world = MPI.COMM_WORLD
    assert world.size == 1
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock(0)
    win.Put(np.arange(4.0), 0)
    win.Unlock(0)
    assert np.frombuffer(win, float)[3] == 3
    win.Free()
    assert world.allreduce(2) == 2 and world.sendrecv("x", 0) == "x"


def rank_size_and_versions(n):
    assert MPI.COMM_WORLD.Get_size() == MPI.COMM_WORLD.size == n
    assert 0 <= MPI.COMM_WORLD.rank < n
    assert MPI.COMM_SELF.size == 1 and MPI.COMM_SELF.rank == 0
    assert MPI.Is_initialized() and not MPI.Is_finalized()
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE and MPI.Is_thread_main()
    assert MPI.Get_version() == (4, 1)
    assert MPI.Get_library_version().startswith("gormapy")
    assert MPI.get_vendor()[0] == "gormapy"
    assert MPI.Get_processor_name()
    a = MPI.Wtime()
    b = MPI.Wtime()
    assert 0 <= b - a < 1 and 0 < MPI.Wtick() < 1
    assert MPI.COMM_WORLD.Get_attr(MPI.UNIVERSE_SIZE) == n
    assert MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) >= 32767
    MPI.Finalize()
    assert MPI.Is_finalized()


def size_of_a_status():
    """All that tells the size of a status tells that of its memory."""
    status = MPI.Status()
    memory = status.tomemory()
    assert memory.nbytes == MPI._sizeof(MPI.Status) == MPI._sizeof(status)
    assert len(memory) == MPI.F_STATUS_SIZE == len(status.py2f())
    status.source, status.tag, status.count = 3, 4, 1 << 40
    assert MPI.Status.f2py(status.py2f()) == status
