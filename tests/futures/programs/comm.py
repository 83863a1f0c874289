"""The programs of test_comm.py, which all ranks run."""

import os
import threading
import time

from rankside import error_of, hello, raise_flag, rank, say, size, world

from gormapy.futures import BrokenExecutor, MPICommExecutor, get_comm_workers


def square(x):
    return x * x


def nap(seconds):
    time.sleep(seconds)


def fail():
    raise LookupError("no licence")


def every_root():
    for root in range(size):
        with MPICommExecutor(world, root) as executor:
            assert (executor is not None) == (rank == root)
            if executor is not None:
                assert executor.num_workers == max(1, size - 1)
                assert list(executor.map(square, range(50))) == [x * x for x in range(50)]
        world.Barrier()
    assert isinstance(error_of(get_comm_workers), RuntimeError)


def parts_of_the_world():
    comm = world.Split(rank % 2, rank)
    with MPICommExecutor(comm, comm.size - 1) as executor:
        if executor is not None:
            found = [executor.submit(ranks_of_workers) for _ in range(executor.num_workers)]
            others = [k for k in range(rank % 2, size, 2) if k != rank]
            assert all(f.result() == (others or [rank]) for f in found), found
    comm.Free()


def ranks_of_workers():
    return get_comm_workers().allgather(rank)


def arguments():
    assert isinstance(error_of(lambda: MPICommExecutor(world, size)), ValueError)
    assert isinstance(error_of(lambda: MPICommExecutor(world, -1)), ValueError)
    executor = MPICommExecutor(initializer=square, initargs=(3,))
    for _ in range(3):
        with executor as inner:
            if inner is not None:
                assert inner.submit(square, 4).result() == 16
                assert isinstance(error_of(executor.__enter__), RuntimeError)


def broken_initializer():
    for _ in range(2):
        with MPICommExecutor(world, initializer=fail) as executor:
            if executor is not None:
                executor.bootup()
                assert isinstance(error_of(lambda e=executor: e.submit(square, 1)), BrokenExecutor)
    assert world.allreduce(1) == size


def pending_tasks():
    """Leaving the block waits for what was submitted, whoever has dropped the executor."""
    with MPICommExecutor(world) as executor:
        if executor is not None:
            found = [executor.submit(square, k) for k in range(200)]
            del executor
    if rank == 0:
        assert all(f.done() for f in found) and found[7].result() == 49


def exception_in_the_block():
    try:
        with MPICommExecutor(world) as executor:
            if executor is not None:
                executor.submit(nap, 0.1)
                raise KeyError("mine")
    except KeyError:
        assert rank == 0
    assert world.allreduce(1) == size


def two_at_a_time():
    """Threads of all ranks, each with an executor on a communicator of its own."""
    comms = [world.Dup() for _ in range(3)]
    failures = []

    def work(comm, root):
        try:
            with MPICommExecutor(comm, root) as executor:
                if executor is not None:
                    assert list(executor.map(square, range(200))) == [x * x for x in range(200)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(comm, k % size)) for k, comm in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for comm in comms:
        comm.Free()


def waits():
    hello()
    with MPICommExecutor(world) as executor:
        if executor is not None:
            found = [executor.submit(report_and_nap, k) for k in range(size - 1)]
            found[0].result()


def report_and_nap(k):
    raise_flag(f"begun-{k}")
    say("begun", k, os.getpid())
    time.sleep(60)
