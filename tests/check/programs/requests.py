"""Requests of operations that are completed, and those that are lost."""

import threading

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def _allocated():
    return MPI.Win.Allocate(64, 8, comm=world)


def rput_dropped():  # check: request-lost n=2
    win = _allocated()
    win.Lock_all()
    win.Rput(np.ones(1), 1 - rank)  # 1: Rput
    win.Unlock_all()
    win.Free()


def rput_awaited():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    win.Rput(np.ones(1), 1 - rank).Wait()
    win.Unlock_all()
    win.Free()


def rget_overwritten():  # check: request-lost n=2
    win, got = _allocated(), np.zeros(4)
    win.Lock_all()
    for i in range(4):
        request = win.Rget(got[i : i + 1], 1 - rank, i)  # 1: Rget
    request.Wait()
    win.Unlock_all()
    win.Free()


def rget_appended():  # check: clean n=2
    win, got, requests = _allocated(), np.zeros(4), []
    win.Lock_all()
    for i in range(4):
        requests.append(win.Rget(got[i : i + 1], 1 - rank, i))
    MPI.Request.Waitall(requests)
    win.Unlock_all()
    win.Free()


def first_of_two_awaited():  # check: request-lost n=2
    win = _allocated()
    win.Lock_all()
    first = win.Raccumulate(np.ones(1), 1 - rank, 0)
    second = win.Raccumulate(np.ones(1), 1 - rank, 1)  # 1: Raccumulate
    first.Wait()
    win.Flush_all()
    del second
    win.Unlock_all()
    win.Free()


def both_awaited_in_another_order():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    first = win.Raccumulate(np.ones(1), 1 - rank, 0)
    second = win.Raccumulate(np.ones(1), 1 - rank, 1)
    second.Wait()
    first.Wait()
    win.Unlock_all()
    win.Free()


def flushed_and_dropped():  # check: request-lost n=2
    win, got = _allocated(), np.zeros(4)
    win.Lock_all()
    request = win.Rget(got, 1 - rank)  # 1: Rget
    win.Flush(1 - rank)
    print(got)
    win.Unlock_all()
    del request
    win.Free()


def unlocked_then_awaited():  # check: clean n=2
    win, got = _allocated(), np.zeros(4)
    win.Lock_all()
    request = win.Rget(got, 1 - rank)
    win.Unlock_all()
    request.Wait()
    print(got)
    win.Free()


def freed_by_the_program():  # check: request-lost n=2
    win = _allocated()
    win.Lock_all()
    request = win.Rput(np.ones(1), 1 - rank)  # 2: Rput
    request.Free()  # 1: Free
    win.Unlock_all()
    win.Free()


def cleared_list():  # check: request-lost n=2
    win, old = _allocated(), np.zeros(4)
    win.Lock_all()
    requests = [win.Rget_accumulate(np.ones(4), old, 1 - rank)]  # 1: Rget_accumulate
    requests.clear()
    win.Unlock_all()
    win.Free()


def list_given_to_waitsome():  # check: clean n=2
    win, old = _allocated(), np.zeros(4)
    win.Lock_all()
    requests = [win.Rget_accumulate(np.ones(4), old, 1 - rank)]
    while any(requests):
        MPI.Request.Waitsome(requests)
    win.Unlock_all()
    win.Free()


def lost_in_a_function():  # check: request-lost n=2
    def begin(win, value):
        request = win.Rput(value, 1 - rank)  # 1: Rput
        assert request

    win = _allocated()
    win.Lock_all()
    begin(win, np.ones(1))
    win.Unlock_all()
    win.Free()


def returned_by_a_function():  # check: clean n=2
    def begin(win, value):
        return win.Rput(value, 1 - rank)

    win = _allocated()
    win.Lock_all()
    request = begin(win, np.ones(1))
    request.Wait()
    win.Unlock_all()
    win.Free()


def tested_to_the_end():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    request = win.Rput(np.ones(1), 1 - rank)
    while not request.Test():
        pass
    win.Unlock_all()
    win.Free()


def request_of_nobody():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    request = win.Rput(np.ones(1), MPI.PROC_NULL)
    request.Wait()
    win.Unlock_all()
    win.Free()


def awaited_in_another_thread():  # check: clean n=2
    win = _allocated()
    win.Lock_all()
    request = win.Rput(np.ones(1), 1 - rank)
    thread = threading.Thread(target=request.Wait)
    thread.start()
    thread.join()
    win.Unlock_all()
    win.Free()
