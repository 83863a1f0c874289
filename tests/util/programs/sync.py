"""The programs of test_sync.py."""

import os
import time

from rankside import error_of, rank, say, size, world

from gormapy.util.sync import Condition, Counter, Mutex, Semaphore, Sequential


def one_after_the_other():
    counter = Counter(comm=world)
    for k in range(20):
        with Sequential(world):
            assert next(counter) == k * size + rank
        world.Barrier()
    counter.free()
    assert isinstance(error_of(counter.next), RuntimeError)


def exclusion():
    """No two ranks are in the block, whether they wait for it or try."""
    mutex = Mutex(comm=world)
    inside = Counter(comm=world)
    for k in range(100):
        if (k + rank) % 3:
            with mutex:
                assert inside.next(1) == 0
                assert inside.next(-1) == 1
        elif mutex.acquire(blocking=False):
            assert inside.next(1) == 0
            assert inside.next(-1) == 1
            mutex.release()
    inside.free()
    mutex.free()


def producer_and_consumers():
    condition = Condition(comm=world)
    there, taken = Counter(comm=world), Counter(comm=world)
    world.Barrier()
    if rank == 0:
        for _ in range(50 * (size - 1)):
            with condition:
                there.next(1)
                condition.notify()
        with condition:
            condition.notify_all()
    else:
        for _ in range(50):
            with condition:
                condition.wait_for(lambda: there.next(0) > 0)
                there.next(-1)
                taken.next(1)
    world.Barrier()
    assert taken.next(0) == 50 * (size - 1) and there.next(0) == 0
    for thing in (condition, there, taken):
        thing.free()


def limited():
    semaphore = Semaphore(2, comm=world)
    inside = Counter(comm=world)
    for _ in range(20):
        with semaphore:
            assert inside.next(1) < 2
            time.sleep(0.001)
            inside.next(-1)
    world.Barrier()
    if rank == 0:
        assert isinstance(error_of(semaphore.release), ValueError)
    semaphore.free()
    inside.free()


def waiting_costs_nothing():
    mutex, condition = Mutex(comm=world), Condition(comm=world)
    world.Barrier()
    if rank == 0:
        with mutex:
            world.Barrier()
            time.sleep(1.5)
        ready = 0
        while ready < size - 1:
            with condition:
                ready += condition.notify_all()
            time.sleep(0.1)
    else:
        world.Barrier()
        before = time.process_time()
        with mutex:
            pass
        used = time.process_time() - before
        say(f"{os.getpid()} {used}")
        assert used < 0.2, used
        with condition:
            condition.wait()
    mutex.free()
    condition.free()
