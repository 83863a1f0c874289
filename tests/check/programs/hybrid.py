"""Work of a rank shared out to threads: loops, sections, tasks, one thread for all."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _run(*functions):
    with ThreadPoolExecutor(len(functions)) as pool:
        for task in [pool.submit(function) for function in functions]:
            task.result()


# from: RMARaceBench hybrid-003
def one_thread_gets_and_all_load():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, begun = np.zeros(1), threading.Barrier(2)

    def single():
        win.Lock(1)
        win.Get(got, 1)  # 1: Get
        begun.wait()
        time.sleep(0.05)
        win.Unlock(1)

    def other():
        begun.wait()
        print(got[0])  # 2: load

    if rank == 0:
        _run(single, other)
    win.Free()


# from: RMARaceBench hybrid-004
def one_thread_gets_then_all_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, done = np.zeros(1), threading.Barrier(2)

    def single():
        win.Lock(1)
        win.Get(got, 1)
        win.Unlock(1)
        done.wait()
        print(got[0])

    def other():
        done.wait()
        print(got[0])

    if rank == 0:
        _run(single, other)
    win.Free()


# from: RMARaceBench hybrid-005
def iterations_in_order():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, turn = np.zeros(1), [threading.Event(), threading.Event()]

    def iteration(i):
        turn[i].wait()
        if i == 0:
            win.Lock(1)
            win.Get(got, 1)
            win.Unlock(1)
            turn[1].set()
        else:
            print(got[0])

    if rank == 0:
        turn[0].set()
        _run(lambda: iteration(0), lambda: iteration(1))
    win.Free()


# from: RMARaceBench hybrid-006
def iterations_in_any_order():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, begun = np.zeros(1), threading.Event()

    def iteration(i):
        if i == 0:
            win.Lock(1)
            win.Get(got, 1)  # 1: Get
            begun.set()
            time.sleep(0.05)
            win.Unlock(1)
        else:
            begun.wait()
            print(got[0])  # 2: load

    if rank == 0:
        _run(lambda: iteration(0), lambda: iteration(1))
    win.Free()


# from: RMARaceBench hybrid-012
def main_thread_waits_and_all_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Barrier()
    else:
        world.Barrier()
        _run(lambda: print(part[0]), lambda: print(part[0]))
    win.Free()


# from: RMARaceBench hybrid-011
def main_thread_waits_and_the_other_does_not():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")

    def other():
        print(part[0])  # 2: load

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.Barrier()
    else:
        thread = threading.Thread(target=other)
        thread.start()
        world.Barrier()
        thread.join()
    win.Free()


# from: RMARaceBench hybrid-015
def task_loads_and_the_caller_waits():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.Barrier()
    else:
        with ThreadPoolExecutor(1) as pool:
            task = pool.submit(lambda: float(part[0]))  # 2: load
            world.Barrier()
            task.result()
    win.Free()


# from: RMARaceBench hybrid-016
def task_begun_after_the_barrier():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Barrier()
    else:
        world.Barrier()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: float(part[0])).result() == 1.0
    win.Free()


# from: RMARaceBench hybrid-019
def barrier_in_one_iteration_and_load_in_the_next():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, turns = np.frombuffer(win, "f8"), queue.Queue()

    def iteration(i):
        if i == 0:
            world.Barrier()
            turns.put(1)
        else:
            turns.get()
            assert part[0] == 1.0

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Barrier()
    else:
        _run(lambda: iteration(0), lambda: iteration(1))
    win.Free()


# from: RMARaceBench hybrid-020
def barrier_in_one_iteration_and_load_in_another():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")

    def iteration(i):
        if i == 0:
            world.Barrier()
        else:
            print(part[0])  # 2: load

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.Barrier()
    else:
        _run(lambda: iteration(0), lambda: iteration(1))
    win.Free()


def rows_got_by_a_map():  # check: clean n=2
    win = MPI.Win.Create(np.arange(8.0), 8, comm=world)
    got = np.zeros((4, 2))

    def fetch(row):
        win.Rget(got[row], 1, 2 * row).Wait()
        return got[row].sum()

    win.Lock_all()
    if rank == 0:
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(fetch, range(4))) == 28.0
    win.Unlock_all()
    win.Free()


def rows_got_by_a_map_into_one_buffer():  # check: result-early n=2
    win = MPI.Win.Create(np.arange(8.0), 8, comm=world)
    got, both = np.zeros(2), threading.Barrier(2)

    def fetch(row):
        request = win.Rget(got, 1, 2 * row)  # 1: Rget, 2: Rget
        both.wait()
        request.Wait()

    win.Lock_all()
    if rank == 0:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(fetch, range(2)))
    win.Unlock_all()
    win.Free()


def callback_after_the_wait():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, found = np.zeros(4), []

    def fetch():
        win.Rget(got, 1).Wait()

    win.Lock_all()
    if rank == 0:
        with ThreadPoolExecutor(1) as pool:
            task = pool.submit(fetch)
            task.add_done_callback(lambda task: found.append(got.sum()))
        assert len(found) == 1
    win.Unlock_all()
    win.Free()


def sends_in_one_thread_and_waits_in_another():  # check: clean n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    requests = queue.Queue(2)
    buffers = np.zeros((10, 1))

    def begin():
        for step in range(10):
            buffers[step] = step
            requests.put((step, win.Rput(buffers[step], 1, step)))
        requests.put(None)

    def end():
        while (item := requests.get()) is not None:
            item[1].Wait()
            buffers[item[0]] = -1.0

    win.Lock_all()
    if rank == 0:
        _run(begin, end)
    win.Unlock_all()
    win.Free()


def sends_in_one_thread_and_stores_before_the_wait():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(80, 8, comm=world)
    requests = queue.Queue(2)
    buffers = np.zeros((10, 1))

    def begin():
        for step in range(10):
            requests.put((step, win.Rput(buffers[step], 1, step)))  # 1: Rput
        requests.put(None)

    def end():
        while (item := requests.get()) is not None:
            buffers[item[0]] = -1.0  # 2: store
            item[1].Wait()

    win.Lock_all()
    if rank == 0:
        _run(begin, end)
    win.Unlock_all()
    win.Free()


# from: RMARaceBench hybrid-013
def one_thread_waits_and_the_rest_load():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")

    def rest():
        print(part[:1])  # 2: load

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.Barrier()
    else:
        _run(world.Barrier, rest)
    win.Free()


# from: RMARaceBench hybrid-014
def one_thread_waits_for_the_rest():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, passed = np.frombuffer(win, "f8"), threading.Barrier(2)

    def single():
        world.Barrier()
        passed.wait()

    def rest():
        passed.wait()
        assert part[0] == 1.0

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Barrier()
    else:
        _run(single, rest)
    win.Free()


def condition_before_the_flush():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, told, ready = np.zeros(4), threading.Condition(), []

    def fetch():
        win.Get(got, 1)  # 1: Get
        with told:
            ready.append(True)
            told.notify()

    def use():
        with told:
            told.wait_for(lambda: ready)
        print(got.sum())  # 2: load

    win.Lock_all()
    if rank == 0:
        _run(fetch, use)
    win.Unlock_all()
    win.Free()


def condition_after_the_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, told, ready = np.zeros(4), threading.Condition(), []

    def fetch():
        win.Get(got, 1)
        win.Flush(1)
        with told:
            ready.append(True)
            told.notify()

    def use():
        with told:
            told.wait_for(lambda: ready)
        print(got.sum())

    win.Lock_all()
    if rank == 0:
        _run(fetch, use)
    win.Unlock_all()
    win.Free()


def barrier_of_threads():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, meet = np.zeros(2), threading.Barrier(2)

    def work(me):
        win.Get(got[me : me + 1], 1, me)
        win.Flush_local(1)
        meet.wait()
        print(got[1 - me])

    win.Lock_all()
    if rank == 0:
        _run(lambda: work(0), lambda: work(1))
    win.Unlock_all()
    win.Free()
