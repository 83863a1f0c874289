"""The programs of test_options.py."""

import os
import sys
import time

from rankside import rank, say, size, world


def bind_to_core():
    for _ in range(50):
        assert world.allreduce(1) == size
    mine = sorted(os.sched_getaffinity(0))
    everyone = world.gather(mine)
    if rank == 0:
        say("sets", len({tuple(cpus) for cpus in everyone}), "cpus", len({c for cpus in everyone for c in cpus}))


def output_dir():
    print("out", rank)
    print("err", rank, file=sys.stderr)
    world.Barrier()
    if rank == 1:
        raise ValueError("a mistake")
    world.recv(source=1)


def summary():
    _memory = bytearray(100 << 20) if rank == 1 else None
    end = time.process_time() + 0.3
    while rank == 1 and time.process_time() < end:
        pass
