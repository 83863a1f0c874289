"""The programs of test_channel_ends.py."""

import random
import time

from rankside import rank, signal_after, size, world

from gormapy import slots


def producers_that_die_with_the_lock():
    space = slots.Space(world)
    end = slots.mpsc(space, "c", None, 0, 3, payload=64)
    space.fence("c")
    if rank == 0:
        seen, over = dict.fromkeys(range(1, size), 0), time.monotonic() + 20
        while seen[1] < 2000:
            source, number = map(int, end.pop(timeout=20).split())
            assert number == seen[source], (source, number, seen)
            seen[source] += 1
            assert time.monotonic() < over
        print("whole", flush=True)
    else:
        if rank > 1:
            signal_after(random.uniform(0.0, 0.3), "KILL")
        for i in range(2000 if rank == 1 else 10**9):
            end.push(b"%d %d" % (rank, i), None)
