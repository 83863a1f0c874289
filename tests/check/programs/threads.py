"""Several threads of a rank: order by threading and queue, and by nothing."""

import functools
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _together(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# from: RMARaceBench hybrid-007
def get_in_one_thread_and_load_in_another():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, begun = np.zeros(1), threading.Event()

    def fetch():
        win.Lock(1)
        win.Get(got, 1)  # 1: Get
        begun.set()
        time.sleep(0.05)
        win.Unlock(1)

    def use():
        begun.wait()
        print(got[0])  # 2: load

    if rank == 0:
        _together(fetch, use)
    win.Free()


# from: RMARaceBench hybrid-008
def get_in_one_thread_then_load_in_another():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got, done = np.zeros(1), threading.Event()

    def fetch():
        win.Lock(1)
        win.Get(got, 1)
        win.Unlock(1)
        done.set()

    def use():
        done.wait()
        print(got[0])

    if rank == 0:
        _together(fetch, use)
    win.Free()


# from: RMARaceBench hybrid-001
def unordered_load_after_the_get():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)

    def fetch():
        win.Lock(1)
        win.Get(got, 1)  # 1: Get
        win.Unlock(1)

    def use():
        time.sleep(0.2)
        print(got[0])  # 2: load

    if rank == 0:
        _together(fetch, use)
    win.Free()


# from: RMARaceBench hybrid-002
def load_after_the_join():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)

    def fetch():
        win.Lock(1)
        win.Get(got, 1)
        win.Unlock(1)

    if rank == 0:
        _together(fetch)
        print(got[0])
    win.Free()


# from: RMARaceBench hybrid-009
def task_gets_and_the_caller_loads():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)

    def fetch(begun):
        win.Lock(1)
        win.Get(got, 1)  # 1: Get
        begun.set()
        time.sleep(0.05)
        win.Unlock(1)

    if rank == 0:
        begun = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            task = pool.submit(fetch, begun)
            begun.wait()
            print(got[0])  # 2: load
            task.result()
    win.Free()


# from: RMARaceBench hybrid-010
def task_gets_and_its_result_is_awaited():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(1)

    def fetch():
        win.Lock(1)
        win.Get(got, 1)
        win.Unlock(1)
        return got

    if rank == 0:
        with ThreadPoolExecutor(1) as pool:
            print(pool.submit(fetch).result()[0])
    win.Free()


# from: RMARaceBench hybrid-017
def load_in_a_thread_without_the_barrier():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")

    def use():
        print(part[0])  # 2: load

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)
        world.Barrier()
    else:
        _together(world.Barrier, use)
    win.Free()


# from: RMARaceBench hybrid-018
def load_in_a_thread_after_the_barrier():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, passed = np.frombuffer(win, "f8"), threading.Event()

    def wait():
        world.Barrier()
        passed.set()

    def use():
        passed.wait()
        assert part[0] == 1.0

    if rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        world.Barrier()
    else:
        _together(wait, use)
    win.Free()


# from: RMARaceBench hybrid-021
def put_and_barrier_in_two_threads():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")

    def put():
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)

    def barrier():
        time.sleep(0.2)
        world.Barrier()

    if rank == 0:
        _together(put, barrier)
    else:
        world.Barrier()
        print(part[0])  # 2: load
    win.Free()


# from: RMARaceBench hybrid-022
def put_and_send_in_two_threads():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)

    def put():
        win.Lock(1)
        win.Put(np.ones(1), 1)  # 1: Put
        win.Unlock(1)

    def send():
        time.sleep(0.2)
        world.Send(token, 1)

    if rank == 0:
        _together(put, send)
    else:
        world.Recv(token, 0)
        print(part[0])  # 2: load
    win.Free()


def put_then_send_in_two_threads():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token, done = np.frombuffer(win, "f8"), np.zeros(1), threading.Semaphore(0)

    def put():
        win.Lock(1)
        win.Put(np.ones(1), 1)
        win.Unlock(1)
        done.release()

    def send():
        done.acquire()
        world.Send(token, 1)

    if rank == 0:
        _together(put, send)
    else:
        world.Recv(token, 0)
        assert part[0] == 1.0
    win.Free()


def buffer_filled_by_another_thread():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, full, sent = np.zeros(1), queue.Queue(), queue.Queue()

    def fill():
        for step in range(3):
            mine[0] = step  # 2: store
            full.put(step)
            sent.get()

    def send():
        win.Lock(1)
        for _ in range(3):
            step = full.get()
            win.Put(mine, 1, step)  # 1: Put
            sent.put(step)
        win.Unlock(1)

    if rank == 0:
        _together(fill, send)
    win.Free()


def buffer_filled_by_another_thread_after_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, full, sent = np.zeros(1), queue.Queue(), queue.Queue()

    def fill():
        for step in range(3):
            mine[0] = step
            full.put(step)
            sent.get()

    def send():
        win.Lock(1)
        for _ in range(3):
            step = full.get()
            win.Put(mine, 1, step)
            win.Flush_local(1)
            sent.put(step)
        win.Unlock(1)

    if rank == 0:
        _together(fill, send)
    win.Free()


def arrays_through_a_queue():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    work = queue.Queue()

    def fill():
        for step in range(8):
            work.put((step, np.full(1, float(step))))
        work.put(None)

    def send():
        win.Lock(1)
        while (item := work.get()) is not None:
            win.Put(item[1], 1, item[0])
        win.Unlock(1)

    if rank == 0:
        _together(fill, send)
    world.Barrier()
    assert rank == 0 or np.frombuffer(win, "f8").tolist() == list(range(8))
    win.Free()


def two_threads_put_to_one_place():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)

    def put(value):
        win.Put(np.full(1, value), 1)  # 1: Put, 2: Put
        win.Flush(1)

    win.Lock_all()
    if rank == 0:
        _together(lambda: put(1.0), lambda: put(2.0))
    win.Unlock_all()
    win.Free()


def two_threads_put_side_by_side():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)

    def put(value):
        win.Put(np.full(1, float(value)), 1, value)
        win.Flush(1)

    win.Lock_all()
    if rank == 0:
        _together(lambda: put(1), lambda: put(2))
    win.Unlock_all()
    win.Free()


def two_threads_put_in_turn():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    turn = threading.Lock()

    def put(value):
        with turn:
            win.Put(np.full(1, value), 1)
            win.Flush(1)

    win.Lock_all()
    if rank == 0:
        _together(lambda: put(1.0), lambda: put(2.0))
    win.Unlock_all()
    win.Free()


def two_threads_put_in_turn_unflushed():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    turn = threading.Lock()

    def put(value):
        with turn:
            win.Put(np.full(1, value), 1)  # 1: Put, 2: Put

    win.Lock_all()
    if rank == 0:
        _together(lambda: put(1.0), lambda: put(2.0))
    win.Unlock_all()
    win.Free()


def threads_take_tickets():  # check: clean n=2
    win = MPI.Win.Create(np.zeros(9, "i8"), 8, comm=world)

    def work():
        ticket = np.zeros(1, "i8")
        for _ in range(2):
            win.Fetch_and_op(np.ones(1, "i8"), ticket, 0)
            win.Flush(0)
            win.Put(np.full(1, rank), 0, 1 + ticket[0])

    win.Lock_all()
    _together(work, work)
    win.Unlock_all()
    win.Free()


def temporary_origins_of_several_threads():  # check: clean n=2
    win = MPI.Win.Allocate(8 * 1200, 8, comm=world)

    def puts(mine):
        for k in range(60):
            for i in range(5):
                win.Put(np.full(1, k + i), 1, mine * 300 + 5 * k + i)
            win.Flush_local(1)

    win.Lock_all()
    if rank == 0:
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # while one thread frees memory, others release buffers
        _together(*(functools.partial(puts, mine) for mine in range(4)))
        sys.setswitchinterval(before)
    win.Unlock_all()
    win.Free()
