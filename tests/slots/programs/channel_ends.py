"""The programs of test_channel_ends.py."""

import os
import random
import signal

from rankside import rank, signal_after, size, world

from gormapy import MPI, slots


def producers_that_die_with_the_lock():
    space = slots.Space(world)
    end = slots.mpsc(space, "c", None, 0, 3, payload=64)
    space.fence("c")
    if rank == 0:
        seen = dict.fromkeys(range(1, size), 0)
        while seen[1] < 2000:
            source, number = map(int, end.pop(timeout=20).split())
            assert number == seen[source], (source, number, seen)
            seen[source] += 1
        print("whole", flush=True)
    else:
        if rank > 1:
            signal_after(random.uniform(0.0, 0.3), "KILL")
        for i in range(2000 if rank == 1 else 10**9):
            end.push(b"%d %d" % (rank, i), None)


def a_consumer_goes_on_while_one_producer_lives(locking):
    space = slots.Space(world)
    end = slots.mpsc(space, "c", None, 0, 2, locking=locking, dtype="i4")
    if rank == 0:
        got = []
        try:
            for value in end:
                got.append(int(value))
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            print("told", sorted(set(got)), len([v for v in got if v == 3]), flush=True)
    else:
        for _ in range(200 if rank == 3 else 10):
            end.push(rank, None)
        if rank != 2:  # one dies without closing
            end.close()
        else:
            os.kill(os.getpid(), signal.SIGKILL)
