"""The programs of test_dead_target.py."""

import os
import signal
import time

import numpy as np

from gormapy import MPI


def after_the_end_of_rank_1():
    """Return the communicator, and a window, once rank 0 knows that rank 1 was killed."""
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        comm.Send(np.zeros(1), 1)
    else:
        comm.Recv(np.zeros(1), 0)
    win = MPI.Win.Create(np.full(1 << 16, comm.rank + 1.0), 8, comm=comm)
    comm.Barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.Recv(np.zeros(1), 1)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    return comm, win


def each_request_is_told():
    _comm, win = after_the_end_of_rank_1()
    win.Lock(1, MPI.LOCK_SHARED, MPI.MODE_NOCHECK)
    told = 0
    requests = []
    for _ in range(3):
        try:
            requests.append(win.Rget(np.zeros(1000), 1))
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            told += 1
    for request in requests:
        try:
            request.Wait()
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            told += 1
    print("told", told, flush=True)
    os._exit(0)


def an_idle_rank_burns_no_core():
    comm, _win = after_the_end_of_rank_1()
    for n in 1, 1 << 20:
        try:
            comm.Send(np.zeros(n), 1)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    before = os.times()
    time.sleep(1)
    after = os.times()
    print("used", after.user + after.system - before.user - before.system, flush=True)
    os._exit(0)


def puts_end_without_a_flush():
    """A program that only puts, or accumulates, learns of the end of its target, every time it goes on."""
    _comm, win = after_the_end_of_rank_1()
    win.Lock(1, MPI.LOCK_SHARED, MPI.MODE_NOCHECK)
    one = np.ones(1)
    for call in (win.Put, win.Accumulate, win.Put):
        for _ in range(2000):
            try:
                call(one, 1)
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
                break
        else:
            raise AssertionError(f"{call} has told nothing")
    print("told", flush=True)
    os._exit(0)
