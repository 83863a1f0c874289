"""The programs of test_wakeups.py."""

import threading
import time

import numpy as np
from rankside import rank, world

from gormapy import MPI, notify

# A sleep ends by itself after 50 ms. The others act this long after a wait began, so that a wake-up that is lost shows as
# one of 40 ms and more, unless the machine is late.
MOMENT, LATE = 0.105, 0.025


win = MPI.Win.Allocate(8, 8, comm=world)
win.Lock_all()


def message(length):
    here = np.empty(length)
    return lambda: world.Recv(here, rank, 1), lambda: world.Send(np.zeros(length), rank, 1)


def objects():
    return lambda: world.recv(source=rank, tag=1), lambda: world.send({}, rank, 1)


def cancelled():
    request = world.Irecv(np.empty(1), rank, 2)
    return request.Wait, request.Cancel


def partitions():
    mine, into = np.ones(2), np.zeros(2)
    receive, send = world.Precv_init(into, 2, rank, 3), world.Psend_init(mine, 2, rank, 3)
    MPI.Prequest.Startall([receive, send])

    def wait():
        MPI.Request.Waitall([receive, send])
        assert (into == 1).all()

    return wait, lambda: send.Pready_list([0, 1])


def generalized():
    request = MPI.Grequest.Start()
    return request.Wait, request.Complete


def notified():
    return lambda: notify.win_notified(win, 0), lambda: notify.put_notify(win, np.ones(1), rank, 0, 0)


WAYS = {
    "message": lambda: message(1),
    "long": lambda: message(100_000),
    "object": objects,
    "cancelled": cancelled,
    "partitions": partitions,
    "generalized": generalized,
    "notified": notified,
}


def woken(what):
    latencies, end = [], time.monotonic() + 20
    while len(latencies) < 8 or (min(latencies) >= LATE and time.monotonic() < end):
        wait, act = WAYS[what]()
        ended = []
        thread = threading.Thread(target=lambda wait=wait, ended=ended: (wait(), ended.append(time.perf_counter())))
        thread.start()
        time.sleep(MOMENT)
        begun = time.perf_counter()
        act()
        thread.join(20)
        assert ended, "it does not end"
        latencies.append(ended[0] - begun)
    assert min(latencies) < LATE, latencies
    win.Unlock_all()
    win.Free()
