"""The programs of test_spawned.py."""

import os
import signal
import sys
import time
from concurrent.futures import BrokenExecutor

from gormapy import MPI
from gormapy.futures import MPIPoolExecutor


def square(x):
    return x * x


def pid(seconds=0.1):
    time.sleep(seconds)
    return os.getpid()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def flag(name):
    return getattr(sys.flags, name)


def in_ranks():
    rank = MPI.COMM_WORLD.rank
    with MPIPoolExecutor(2) as executor:
        assert list(executor.map(square, range(rank, rank + 20))) == [x * x for x in range(rank, rank + 20)]
    assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size


def worker_killed():
    with MPIPoolExecutor(2) as executor:
        assert executor.submit(square, 2).result() == 4
        futures = [executor.submit(pid, 30), executor.submit(die), executor.submit(square, 3)]
        for future in futures:
            assert isinstance(future.exception(20), BrokenExecutor), future
        try:
            executor.submit(square, 1)
        except BrokenExecutor as error:
            assert "killed" in str(error), error
        else:
            raise AssertionError("a broken executor takes tasks")
    with MPIPoolExecutor(1) as executor:
        assert executor.submit(square, 5).result() == 25


def manager_that_ends_while_it_is_woken():
    """It finds by itself that nothing is left to do, and frees the communicator that another thread is about to use."""
    from rankside import await_flag, raise_flag  # a worker with Python's option -I does not find it

    executor = MPIPoolExecutor(1)
    executor.submit(pid).result(20)
    future = executor.submit(await_flag, "woken")
    manager = executor._pool._manager
    while manager._woken:
        time.sleep(0.01)
    wake, late = manager.link.wake, []

    def woken_late():
        raise_flag("woken")
        manager._thread.join(20)
        assert not manager._thread.is_alive()
        late.append(True)
        wake()

    manager.link.wake = woken_late
    executor.shutdown()
    assert future.done() and late
    executor.shutdown()


def program_fails(how):
    executor = MPIPoolExecutor(2)
    print(*{future.result() for future in [executor.submit(pid) for _ in range(4)]}, flush=True)
    executor.submit(pid, 1)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise LookupError("the program fails")


def options_of_python():
    for option, name, value in (("-OO", "optimize", 2), ("-I", "isolated", 1), ("-Xdev", "dev_mode", True)):
        with MPIPoolExecutor(1, python_args=[option]) as executor:
            assert executor.submit(flag, name).result() == value


def over_a_network():
    with MPIPoolExecutor(1) as executor:
        try:
            executor.submit(square, 1)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION, error
        else:
            raise AssertionError("it has workers")


if __name__ == "__main__" and len(sys.argv) > 1 and sys.argv[1] in globals():
    globals()[sys.argv[1]](*sys.argv[2:])
