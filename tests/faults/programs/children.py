"""The programs of test_children.py."""

import math
import multiprocessing as mp
import os
import subprocess
import sys
import threading
import time

import numpy as np
from rankside import rank, say, world

from gormapy import MPI


def forked_child_gets_a_clear_error():
    win = MPI.Win.Allocate(8, 1, comm=world)
    req = world.Irecv(np.zeros(1), source=rank, tag=9)
    child = os.fork()
    if child == 0:
        calls = [
            world.Barrier,
            lambda: world.send(1, dest=0),
            world.recv,
            lambda: world.Send(np.zeros(1), dest=0),
            world.Dup,
            lambda: world.allreduce(1),
            world.Iprobe,
            req.Test,
            lambda: win.Lock(0),
            lambda: win.Put(np.zeros(1, "i1"), 0),
            win.Fence,
            lambda: MPI.Win.Allocate(8, comm=MPI.COMM_SELF),
        ]
        status = 0
        for i, call in enumerate(calls):
            try:
                call()
                say("no error in call", i)
                status = 1
            except RuntimeError as error:
                if "fork" not in str(error):
                    say("unclear", i, error)
                    status = 1
            except BaseException as error:
                say("another error in call", i, repr(error))
                status = 1
        import sys

        sys.exit(status)  # through the whole exit of Python
    _pid, status = os.waitpid(child, 0)
    assert status == 0, status
    world.Send(np.ones(1), dest=rank, tag=9)
    req.Wait()
    assert world.allreduce(1) == 2
    win.Fence()
    win.Free()


def end_of_forked_children_leaves_the_job_unharmed():
    for end in (lambda: os._exit(0), lambda: sys.exit(0), lambda: os._exit(3), lambda: os.kill(os.getpid(), 9)):
        child = os.fork()
        if child == 0:
            import sys

            end()
        os.waitpid(child, 0)
        assert world.allreduce(1) == 2


def traceback_of_a_forked_child():
    child = os.fork()
    if child == 0:
        raise ValueError("of the child")
    assert os.waitpid(child, 0)[1] == 1 << 8
    assert world.allreduce(1) == 2


def fork_while_another_thread_waits():
    got = []
    t = threading.Thread(target=lambda: got.append(world.recv(source=1 - rank, tag=1)))
    t.start()
    time.sleep(0.1)
    for _i in range(5):
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    world.send("x", dest=1 - rank, tag=1)
    t.join(10)
    assert got == ["x"]


def subprocess_is_a_singleton():
    code = "from gormapy import MPI; w = MPI.COMM_WORLD; print(w.rank, w.size, w.allreduce(5))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done
    assert done.stdout == "0 1 5\n", done
    assert world.allreduce(1) == 2


def failing_subprocess_leaves_the_job_unharmed():
    for code in ("1 / 0", "import sys; sys.exit(3)", "MPI.COMM_WORLD.Abort(4)"):
        done = subprocess.run(
            [sys.executable, "-c", "from gormapy import MPI\n" + code], capture_output=True, text=True, timeout=20
        )
        assert done.returncode in (1, 3, 4), done
    assert world.allreduce(1) == 2


def multiprocessing_fork_without_mpi():
    with mp.get_context("fork").Pool(2) as pool:
        assert pool.map(math.factorial, range(5)) == [1, 1, 2, 6, 24]
    assert world.allreduce(1) == 2


def subprocess_that_outlives_its_rank_when_the_job_fails():
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    subprocess.Popen(["sleep", "60"])
    world.Barrier()
    if rank:
        sys.exit(3)
    world.Barrier()
