"""The programs of test_hostile_threads.py."""

import contextlib
import json
import random
import signal
import sys
import threading
import time

import numpy as np
from rankside import world

from gormapy import MPI
from gormapy._ext import core


def together(seconds, *functions):
    """Call each function again and again in a thread of its own until the time is over; MPI may refuse what they do."""
    sys.setswitchinterval(1e-5)
    errors = []
    end = time.monotonic() + seconds

    def run(function, seed):
        chance = random.Random(seed)
        while time.monotonic() < end and not errors:
            try:
                function(chance)
            except MPI.Exception:
                pass
            except BaseException as e:
                errors.append(e)
                raise

    threads = [threading.Thread(target=run, args=(f, k)) for k, f in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


# Calls with a list of receives from this process itself, which somebody changes while it is waited for.
CALLS = {
    "Waitall": MPI.Request.Waitall,
    "Waitall, statuses": lambda requests: MPI.Request.Waitall(requests, []),
    "waitall": MPI.Request.waitall,
    "Waitany": MPI.Request.Waitany,
    "waitany": MPI.Request.waitany,
    "Waitsome": MPI.Request.Waitsome,
    "waitsome": MPI.Request.waitsome,
    "Testall": MPI.Request.Testall,
    "Testany": MPI.Request.Testany,
    "Testsome": MPI.Request.Testsome,
    "Get_status_all": MPI.Request.Get_status_all,
    "Get_status_any": MPI.Request.Get_status_any,
    "Get_status_some": MPI.Request.Get_status_some,
}

PAIRS = {
    "Wait, Wait": (lambda r: r.Wait(), lambda r: r.Wait()),
    "Wait, Test": (lambda r: r.Wait(), lambda r: r.Test()),
    "Wait, Free": (lambda r: r.Wait(), lambda r: r.Free()),
    "Wait, Cancel": (lambda r: r.Wait(), lambda r: r.Cancel()),
    "Waitall, Waitany": (lambda r: MPI.Request.Waitall([r]), lambda r: MPI.Request.Waitany([r])),
    "Waitsome, Free": (lambda r: MPI.Request.Waitsome([r]), lambda r: r.Free()),
    "wait, wait": (lambda r: MPI.Request.waitall([r]), lambda r: r.wait()),
    "Free, Free": (lambda r: r.Free(), lambda r: r.Free()),
    "copies": (lambda r: MPI.Request(r).Wait(), lambda r: MPI.Request(r).Free()),
}


def four_receives():
    arrays = [np.zeros(1, "i8") for _ in range(4)]
    return arrays, [world.Irecv(a, 0, tag) for tag, a in enumerate(arrays)]


def send_four():
    for tag in range(4):
        world.Send(np.full(1, tag + 1), 0, tag)


def all_have_come(arrays, receives):
    MPI.Request.Waitall([r for r in receives if r])
    assert [a[0] for a in arrays] == [1, 2, 3, 4], arrays


def change_a_list(call):
    arrays, mine = four_receives()
    requests = list(mine)
    testing = call.startswith(("Test", "Get_status"))

    def change():
        while not testing and not json.loads(core.Waits())["waits"]:
            time.sleep(0.0001)
        time.sleep(0.002)
        requests.clear()
        requests.extend([1, "two", None, object()] * 50)
        send_four()

    thread = threading.Thread(target=change)
    thread.start()
    if testing:
        with contextlib.suppress(TypeError):  # by the call that began after the change
            for _ in range(5000):
                CALLS[call](requests)
    else:
        CALLS[call](requests)
    thread.join()
    all_have_come(arrays, mine)


def list_that_changes(call):
    sys.setswitchinterval(1e-5)
    for _ in range(20):
        change_a_list(call)


def change_a_list_by_a_signal_handler(call):
    arrays, mine = four_receives()
    requests = list(mine)

    def handler(number, frame):
        requests[:] = [7] * 100
        send_four()

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    while not arrays[3][0]:
        with contextlib.suppress(TypeError):  # the signal came before the call
            CALLS[call](requests)
        requests = [r for r in mine if r] or list(mine)
    all_have_come(arrays, mine)


def list_that_a_signal_handler_changes(call):
    sys.setswitchinterval(1e-5)
    for _ in range(10):
        change_a_list_by_a_signal_handler(call)


def what_is_no_request(call):
    function = MPI.Prequest.Startall if call == "Startall" else CALLS[call]
    array = np.zeros(1)
    request = MPI.COMM_SELF.Irecv(array, 0)
    for requests in [1], [None], ["x", request], [request, object()], (request, 3.5), 7, None, request:
        try:
            function(requests)
        except TypeError as e:
            assert "expecting" in str(e), e
        else:
            raise AssertionError(f"nothing was said of {requests}")
    MPI.COMM_SELF.Send(np.ones(1), 0)
    request.Wait()
    assert array[0] == 1


def two_threads_and_one_request(pair, seconds):
    first, second = PAIRS[pair]
    current = [world.Irecv(np.zeros(1), MPI.PROC_NULL)]

    def one(chance):
        first(current[0])

    def other(chance):
        second(current[0])

    def sender(chance):
        n = chance.choice([1, 100, 5000, 100_000])
        array = np.zeros(n, "i8")
        current[0] = world.Irecv(array, 0, 5) if chance.random() < 0.7 else world.Isend(array, 0, 6)
        del array
        time.sleep(chance.choice([0, 0, 0.0001]))
        if chance.random() < 0.9:
            world.Isend(np.full(n, 9), 0, 5).Free()
            world.Irecv(np.zeros(n, "i8"), 0, 6).Free()
        witness = np.full(n, 3, "i8")
        time.sleep(chance.choice([0, 0, 0.0001]))
        assert (witness == 3).all()

    def feeder(chance):
        # whatever waits gets on
        world.Iprobe(0, 6)
        r = world.Isend(np.zeros(1, "i8"), 0, 5)
        r.Free()
        world.Irecv(np.zeros(100_000, "i8"), 0, 6).Free()
        time.sleep(0.0005)

    together(seconds, one, other, one, other, sender, feeder)


def persistent_requests_in_several_threads(seconds):
    array = np.zeros(1000, "i8")
    current = [world.Recv_init(array, 0, 5), world.Send_init(np.ones(1000, "i8"), 0, 5)]

    def start(chance):
        chance.choice(current).Start()

    def startall(chance):
        MPI.Prequest.Startall(current)

    def wait(chance):
        r = chance.choice(current)
        for _ in range(100):
            if r.Test():
                break

    def feed(chance):
        world.Isend(np.ones(1000, "i8"), 0, 5).Free()
        time.sleep(0.0003)

    def renew(chance):
        time.sleep(0.01)
        old = current[0]
        current[0] = world.Recv_init(np.zeros(1000, "i8"), 0, 5)
        old.Free()

    together(seconds, start, startall, wait, wait, feed, renew)


def windows_that_are_freed_meanwhile(seconds):
    def make():
        win = MPI.Win.Allocate(1 << 16, 8, comm=MPI.COMM_SELF)
        win.Lock_all()
        return win

    current = [make()]
    one, big = np.ones(1, "i8"), np.ones(1 << 13, "i8")

    def put(chance):
        current[0].Put(chance.choice([one, big]), 0)

    def get(chance):
        got = np.zeros(chance.choice([1, 1 << 13]), "i8")
        current[0].Get(got, 0)

    def add(chance):
        current[0].Fetch_and_op(one, np.zeros(1, "i8"), 0)
        current[0].Flush(0)

    def renew(chance):
        time.sleep(0.002)
        old, current[0] = current[0], make()
        old.Unlock_all()
        old.Free()

    together(seconds, put, get, add, put, renew)


def lists_that_their_items_change():
    world = MPI.COMM_SELF
    win = MPI.Win.Allocate(1 << 12, 1, comm=world)
    win.Lock_all()
    junk = []

    def change():
        items.clear()
        junk.append([[k] * 3 for k in range(50)])

    class Integer:
        def __index__(self):
            change()
            return 0

    class Window(MPI.Win):
        def tomemory(self):
            memory = super().tomemory()
            change()
            return memory

    window, array = Window(win), np.zeros(8, "u1")
    for k in range(100):
        for items in [Integer(), 8, MPI.BYTE.Dup().Commit()], [0, Integer(), MPI.BYTE.Dup().Commit()]:
            with contextlib.suppress(IndexError, TypeError, ValueError, MPI.Exception):
                win.Put(array, 0, items)
        items = [window, 8, MPI.BYTE.Dup().Commit()]
        with contextlib.suppress(IndexError, TypeError, ValueError, MPI.Exception):
            world.Isend(items, MPI.PROC_NULL).Wait()
        for items in [Integer()] + [1] * k, [1] * k + [Integer()]:
            with contextlib.suppress(IndexError, TypeError, ValueError, MPI.Exception):
                world.Alltoallv([array, items, [0], MPI.BYTE], [np.zeros(8, "u1"), [0], [0], MPI.BYTE])
