"""The programs of test_executors.py, run at rank 0 by ``python -m gormapy.futures``."""

import os
import sys
import threading
import time
from contextlib import suppress

import numpy as np
from rankside import await_flag, raise_flag

from gormapy import MPI, futures
from gormapy.futures import MPIPoolExecutor, wait

VALUE = 1
SPAWNED = "GORMAPY_FUTURES_MAX_WORKERS" in os.environ
WORKERS = int(os.environ.get("GORMAPY_FUTURES_MAX_WORKERS", max(1, MPI.COMM_WORLD.size - 1)))


def square(x):
    return x * x


def nap(seconds):
    time.sleep(seconds)
    return seconds


def hold(flag):
    """Last until a flag is raised, if one is named."""
    if flag:
        await_flag(flag, 60)
    return flag


def fail(text):
    raise LookupError(text)


def pid():
    return os.getpid()


def error_of(call, *args):
    try:
        call(*args)
    except BaseException as error:
        return error
    raise AssertionError("no error")


def outcome(call, *args):
    """Return what a call returns or raises."""
    try:
        return call(*args)
    except BaseException as error:
        return error


def calls():
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == WORKERS
        assert executor.submit(square, 7).result() == 49
        assert executor.submit(pow, 2, exp=5).result() == 32
        assert list(executor.map(square, range(100))) == [x * x for x in range(100)]
        assert list(executor.map(pow, range(9), range(9), chunksize=4)) == [x**x for x in range(9)]
        assert sorted(executor.map(square, range(50), unordered=True)) == [x * x for x in range(50)]
        assert list(executor.starmap(pow, [(2, 3), (3, 2)])) == [8, 9]
        assert executor.submit(pid).result() != os.getpid() or WORKERS == 1
    assert executor.num_workers == 0
    assert "after shutdown" in str(error_of(executor.submit, abs, 1))


def many_tasks():
    with MPIPoolExecutor() as executor:
        found = [executor.submit(square, x) for x in range(10_000)]
        assert [f.result() for f in found] == [x * x for x in range(10_000)]
        assert sum(executor.map(square, range(10_000))) == sum(x * x for x in range(10_000))


def long_arguments():
    for use_pkl5 in (False, True):
        with MPIPoolExecutor(use_pkl5=use_pkl5) as executor:
            for size in (1, 4096, 1 << 15, (1 << 15) + 1, 1 << 21):
                data = np.arange(size)
                found = executor.submit(np.negative, data).result()
                assert (found == -data).all()
                found[0] = 5  # it can be written to
                assert executor.submit(len, bytes(size)).result() == size
            pairs = executor.map(np.add, [np.ones(1 << 16)] * 20, [np.ones(1 << 16)] * 20)
            assert all((pair == 2).all() for pair in pairs)


def lazy_results():
    taken = []

    def endless():
        k = 0
        while True:
            taken.append(k)
            yield k
            k += 1

    with MPIPoolExecutor() as executor:
        found = executor.map(square, endless(), buffersize=5)
        assert [next(found) for _ in range(20)] == [x * x for x in range(20)]
        assert len(taken) <= 26, taken
        found.close()


def timeouts():
    with MPIPoolExecutor() as executor:
        executor.bootup()  # the time-out is for the tasks, not for the start of their workers
        for unordered in (False, True):
            for timeout in (1, 5, 25):  # a longer one if the first result was late, too
                flag = f"late-{unordered}-{timeout}"
                found = executor.map(hold, ["", flag], timeout=timeout, unordered=unordered)
                first, second = outcome(next, found), outcome(next, found)
                raise_flag(flag)
                executor.submit(nap, 0).result()
                if first == "":
                    break
            assert first == "" and isinstance(second, futures.TimeoutError), (first, second)
        held = executor.submit(hold, "held")
        assert isinstance(error_of(held.result, 0.05), futures.TimeoutError)
        raise_flag("held")


def exceptions():
    with MPIPoolExecutor() as executor:
        error = executor.submit(fail, "nothing here").exception()
        assert isinstance(error, LookupError) and error.args == ("nothing here",), error
        if MPI.COMM_WORLD.size > 1:
            text = str(error.__cause__)
            assert "in fail" in text and "LookupError: nothing here" in text and "worker.py" not in text, text
        assert isinstance(executor.submit(sys.exit, 3).exception(), SystemExit)
        found = executor.map(divmod, [1, 1], [1, 0])
        assert next(found) == (1, 0)
        assert isinstance(error_of(next, found), ZeroDivisionError)
        assert executor.submit(square, 3).result() == 9


class NeverOut:
    def __reduce__(self):
        raise ValueError("stays where it is")


class NeverIn:
    def __reduce__(self):
        return int, ("not a number",)


class HasState(Exception):
    def __init__(self, first, second):
        super().__init__("two arguments")


class HasLock(Exception):
    def __init__(self):
        super().__init__("with a lock")
        self.lock = threading.Lock()


class HasHorrors(Exception):
    def __reduce__(self):
        raise HasLock

    def __str__(self):
        raise ValueError("no text")


def raise_it(kind, *args):
    raise kind(*args)


def make(kind):
    return kind()


def unpicklable():
    with MPIPoolExecutor() as executor:
        kinds = {
            executor.submit(square, NeverOut()): ValueError,  # a task that can't be sent
            executor.submit(lambda: 1): None,
            executor.submit(square, NeverIn()): ValueError,  # one that can't be received
            executor.submit(make, NeverOut): ValueError,  # results
            executor.submit(make, NeverIn): ValueError,
            executor.submit(make, threading.Lock): TypeError,
            executor.submit(raise_it, HasState, 1, 2): TypeError,  # exceptions
            executor.submit(raise_it, HasLock): TypeError,
            executor.submit(raise_it, HasHorrors): RuntimeError,
        }
        for future, kind in kinds.items():
            error = future.exception(timeout=60)
            assert kind is None or isinstance(error, kind), (error, kind)
            assert error is not None
        text = str(executor.submit(raise_it, HasState, 1, 2).exception().__cause__)
        assert "HasState: two arguments" in text, text
        text = str(executor.submit(raise_it, HasLock).exception().__cause__)
        assert "HasLock: with a lock" in text and "cannot pickle" in text, text
        assert executor.submit(square, 3).result() == 9
        assert list(executor.map(square, range(10))) == [x * x for x in range(10)]


def cancelled():
    with MPIPoolExecutor() as executor:
        executor.bootup()
        running = [executor.submit(hold, "cancelled") for _ in range(WORKERS)]
        waiting = [executor.submit(nap, 5) for _ in range(20)]
        last = executor.submit(square, 2)
        while not all(f.running() for f in running):
            time.sleep(0.01)
        assert not any(f.cancel() for f in running)
        assert all(f.cancel() for f in waiting)
        raise_flag("cancelled")
        assert last.result() == 4 and [f.result() for f in running] == ["cancelled"] * WORKERS
        assert isinstance(error_of(waiting[0].result), futures.CancelledError)
        found = executor.map(nap, [0, *[0.3] * 20 * WORKERS])
        assert next(found) == 0
        found.close()  # which cancels what has not begun
        executor.shutdown(cancel_futures=True)


def shutdowns():
    executor = MPIPoolExecutor()
    fs = [executor.submit(nap, 0.02) for _ in range(20)]
    executor.shutdown(wait=False)
    assert isinstance(error_of(executor.submit, nap, 0), RuntimeError)
    assert [f.result() for f in fs] == [0.02] * 20
    executor = MPIPoolExecutor()
    fs = [executor.submit(nap, 0.2) for _ in range(WORKERS * 50)]
    executor.shutdown(cancel_futures=True)
    assert all(f.done() for f in fs) and sum(f.cancelled() for f in fs) >= WORKERS * 20
    with MPIPoolExecutor() as executor:
        pass  # it was not used
    assert executor.num_workers == 0


def several_executors():
    executors = [MPIPoolExecutor() for _ in range(8)]
    fs = [executor.submit(square, x) for x in range(100) for executor in executors]
    assert sum(f.result() for f in fs) == 8 * sum(x * x for x in range(100))
    # one with much to do leaves the others their turns
    slow = [executors[0].submit(nap, 0.02) for _ in range(500 * WORKERS)]
    before, other = [], executors[1].submit(square, 3)
    other.add_done_callback(lambda _: before.append(sum(f.done() for f in slow)))
    assert other.result() == 9
    while not before:  # it may be called after this thread has the result
        time.sleep(0.001)
    assert before[0] < 400 * WORKERS, before
    for f in slow:
        f.cancel()
    for executor in executors:
        executor.shutdown()


def several_threads():
    failures = []

    def work(k):
        try:
            with MPIPoolExecutor() if k % 2 else shared as executor:
                assert list(executor.map(square, range(k, k + 300))) == [x * x for x in range(k, k + 300)]
        except BaseException as error:
            failures.append(error)

    class Lasting:
        def __enter__(self):
            return common

        def __exit__(self, *args):
            pass

    shared = Lasting()
    with MPIPoolExecutor() as common:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures


def callbacks():
    done = threading.Event()
    found = []
    executor = MPIPoolExecutor()

    def second(future):
        found.append(future.result())
        executor.shutdown()  # in the thread that would have to end first
        done.set()

    def first(future):
        found.append(future.result())
        executor.submit(square, future.result()).add_done_callback(second)

    executor.submit(square, 3).add_done_callback(first)
    assert done.wait(60) and found == [9, 81], found


def dropped():
    executor = MPIPoolExecutor()
    fs = [executor.submit(nap, 0.02) for _ in range(10)]
    pool = executor._pool
    del executor
    assert [f.result() for f in fs] == [0.02] * 10
    assert pool.ended.wait(60)


def initializers():
    with MPIPoolExecutor(initializer=set_value, initargs=(5,), env={"COLOUR": "red"}, path=["/nowhere"]) as executor:
        executor.bootup()
        found = list(executor.map(look, range(WORKERS * 3)))
        assert found == [(5, "red", True)] * (WORKERS * 3), found
    with MPIPoolExecutor(globals={"VALUE": 7}) as executor:
        # new workers have it before they run this script, which then sets it
        assert executor.submit(look, 0).result()[0] in ((1,) if SPAWNED else (5, 7))


def set_value(value):
    global VALUE
    VALUE = value


def look(_):
    return VALUE, os.environ.get("COLOUR"), "/nowhere" in sys.path


def failing_initializers():
    for kind, args in ((fail, ("no licence",)), (sys.exit, (1,)), (square, (NeverIn(),)), (raise_it, (HasLock,))):
        executor = MPIPoolExecutor(initializer=kind, initargs=args)
        with suppress(futures.BrokenExecutor):  # it may be known at once
            for f in [executor.submit(square, k) for k in range(20)]:
                assert isinstance(f.exception(timeout=60), futures.BrokenExecutor), f
        error = error_of(executor.submit, square, 1)
        assert isinstance(error, futures.BrokenExecutor)
        assert kind is not fail or "no licence" in str(error), error
        assert executor.num_workers == 0
        executor.shutdown()
    executor = MPIPoolExecutor(initializer=fail, initargs=("again",)).bootup()
    del executor
    with MPIPoolExecutor() as executor:  # the workers go on
        assert executor.submit(square, 3).result() == 9
    if MPI.COMM_WORLD.size > 1:
        executor = MPIPoolExecutor(initializer=lambda: None).bootup()
        assert isinstance(error_of(executor.submit, square, 1), futures.BrokenExecutor)


def parallel_tasks():
    with MPIPoolExecutor() as executor:
        for _ in range(20):
            found = [executor.submit(sum_of_ranks) for _ in range(executor.num_workers)]
            assert {f.result(60) for f in found} == {(WORKERS, WORKERS * (WORKERS - 1) // 2)}
    assert isinstance(error_of(futures.get_comm_workers), RuntimeError)


def sum_of_ranks():
    comm = futures.get_comm_workers()
    comm.Barrier()
    return comm.size, comm.allreduce(comm.rank)


def nested():
    with MPIPoolExecutor() as executor:
        if MPI.COMM_WORLD.size > 1:
            assert executor.submit(inner_pool).result() == 49
        assert executor.submit(inner_comm).result() == 49
        found = [executor.submit(inner_parallel) for _ in range(executor.num_workers)]
        assert sorted(f.result() or 0 for f in found) == [*[0] * (WORKERS - 1), 285]


def inner_pool():
    with MPIPoolExecutor(1) as executor:  # a worker spawns
        return executor.submit(square, 7).result()


def inner_comm():
    with futures.MPICommExecutor(MPI.COMM_SELF) as executor:
        assert executor.submit(sum_of_ranks).result() == (1, 0)
        return executor.submit(square, 7).result()


def inner_parallel():
    with futures.MPICommExecutor(futures.get_comm_workers()) as executor:
        if executor is not None:
            return sum(executor.map(square, range(10)))


def pending_at_exit():
    executor = MPIPoolExecutor()
    for k in range(10):
        executor.submit(tell, k)


def pending_at_exit_status():
    executor = MPIPoolExecutor()
    for k in range(10):
        executor.submit(tell, k)
    sys.exit(3)


def tell(k):
    time.sleep(0.02)
    print(f"task {k}", flush=True)


def fails_with_pending():
    executor = MPIPoolExecutor()
    for _ in range(100):
        executor.submit(nap, 60)  # longer than the job may last
    raise LookupError("the script has failed")


def waits():
    executor = MPIPoolExecutor()
    print("pid 0", os.getpid(), flush=True)
    found = [executor.submit(report_and_nap, k) for k in range(WORKERS)]
    found += [executor.submit(nap, 60) for _ in range(10)]
    wait(found)


def report_and_nap(k):
    print(f"pid {MPI.COMM_WORLD.rank} {os.getpid()}", flush=True)
    raise_flag(f"begun-{k}")
    time.sleep(60)


def worker_ends_quietly():
    executor = MPIPoolExecutor()
    lost = executor.submit(os._exit, 0)
    error = lost.exception(timeout=60)
    assert isinstance(error, futures.BrokenExecutor) and "ended with exit status 0" in str(error), error
    assert isinstance(error_of(executor.submit, square, 2), futures.BrokenExecutor)
    assert isinstance(error_of(MPIPoolExecutor().submit, square, 2), futures.BrokenExecutor)


def finalizes():
    executor = MPIPoolExecutor()
    fs = [executor.submit(nap, 0.05) for _ in range(4)]
    MPI.Finalize()
    assert [f.result() for f in fs] == [0.05] * 4
    assert isinstance(error_of(executor.submit, square, 2), RuntimeError)


def idle():
    executor = MPIPoolExecutor().bootup()
    executor.submit(square, 2).result()
    time.sleep(0.3)
    before = [time.process_time(), *executor.map(processor_time, range(1))]
    time.sleep(2)
    after = [time.process_time(), *executor.map(processor_time, range(1))]
    used = [now - was for now, was in zip(after, before)]
    assert max(used) < 0.1, used


def processor_time(_):
    return time.process_time()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
