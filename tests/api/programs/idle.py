"""The programs of test_idle.py."""

import os
import time

import numpy as np
from rankside import await_flag, near, raise_flag, rank, say, size, world

import gormapy
from gormapy import MPI
from gormapy.bench.idle import threads

peer = (rank + 1) % size
node = near()
shared = gormapy.shared_zeros(100)
region = np.zeros(100)
wins = [
    MPI.Win.Create(np.zeros(100), 8, comm=world),
    MPI.Win.Create(shared, 8, comm=world),
    MPI.Win.Allocate(800, 8, comm=world),
    MPI.Win.Allocate_shared(800, 8, comm=node),
    MPI.Win.Create_dynamic(comm=world),
]
wins[4].Attach(region)
places = [0, 0, 0, 0, world.sendrecv(MPI.Get_address(region), peer, source=peer)]
peers = [peer, peer, peer, (node.rank + 1) % node.size, peer]


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def beside(work):
    """Return what the other threads of this process do meanwhile: wake-ups, seconds of a core, and how long it took."""
    before, begin = threads(), time.monotonic()
    work()
    took = time.monotonic() - begin
    changes = [(now, before.get(thread, (0, 0))) for thread, now in threads().items()]
    used, switches = (sum(now[i] - was[i] for now, was in changes) for i in (0, 1))
    return switches, used, took


def rates(found, i):
    """Return one of the numbers of `beside`, by the second."""
    return [measured[i] / measured[2] for measured in found]


def idle_engine_neither_wakes_nor_computes():
    for win, target, place in zip(wins, peers, places):
        win.Lock(target)
        win.Put(np.full(3, rank + 1.0), target, place)
        win.Unlock(target)
        win.Lock_all()
        win.Accumulate(np.ones(3), target, place)
        win.Unlock_all()
    posted = world.Irecv(np.zeros(1), peer)
    world.Barrier()
    compute(0.3)
    # An engine that polls does so in each sample. What is seldom is not in all of them: every 10 s a look at what may have
    # been missed, every 2 s a timer that bounds stops of Go's world, and now and then memory that is returned. The timer
    # alone takes some 60 wake-ups if no core is free for it, since Go's monitor then looks every 20 us.
    found = []
    while len(found) < 5 or (min(rates(found, 0)) >= 10 and len(found) < 20):
        found.append(beside(lambda: compute(0.8)))
    say(f"{found}")
    assert min(rates(found, 0)) < 10, f"wake-ups a second: {rates(found, 0)}"
    assert min(rates(found, 1)) < 0.01, found
    world.Barrier()
    world.Send(np.ones(1), peer)
    posted.Wait()
    for win in wins:
        win.Fence()
        win.Free()


def wake_ups_are_counted_where_there_is_traffic():
    rounds = 100
    world.Barrier()
    if rank == 0:
        await_flag("counting")
        for _ in range(rounds):
            wins[0].Lock(1)
            wins[0].Put(np.ones(3), 1)
            wins[0].Unlock(1)
            time.sleep(0.005)
        raise_flag("done")
    else:

        def until_done():
            raise_flag("counting")
            while not os.path.exists("flag-done"):
                sum(range(1000))

        switches, used, _ = beside(until_done)
        # The engine sleeps before each round, so that each wakes it, which takes a microsecond or more.
        assert switches >= rounds and used >= 1e-6 * switches, (switches, used)
    world.Barrier()
