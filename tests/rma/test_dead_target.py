"""What a rank is told of, and is spared, after the target of its operations was killed."""

import sys
import textwrap

import pytest
from support.windows import WAYS

# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)

KILLED = """
import os, signal, time
import numpy as np
from gormapy import MPI

comm = MPI.COMM_WORLD
comm.Send(np.zeros(1), 1 - comm.rank) if comm.rank == 0 else comm.Recv(np.zeros(1), 0)
win = MPI.Win.Create(np.full(1 << 16, comm.rank + 1.0), 8, comm=comm)
comm.Barrier()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.Recv(np.zeros(1), 1)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
"""


@pytest.mark.parametrize("way", ["default", "messages"])
def test_each_request_is_told(mpirun, way):
    """A request to a rank that has ended must not look complete because another one was given up."""
    program = """
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
    """
    result = mpirun(
        2, KILLED + textwrap.dedent(program), python=UNNOTICED, env=WAYS["messages"] if way == "messages" else {}
    )
    assert "told 3" in result.stdout, str(result)


def test_an_idle_rank_burns_no_core(mpirun):
    """What can't be sent to a rank that has ended is not tried again and again."""
    program = """
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
    """
    result = mpirun(2, KILLED + textwrap.dedent(program), python=UNNOTICED)
    used = float(result.stdout.split()[1])
    assert used < 0.1, str(result)
