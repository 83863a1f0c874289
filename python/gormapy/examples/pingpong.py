"""Send a token back and forth by two channels, and print the time that it takes.

mpiexec -n 2 python -m gormapy.examples.pingpong CAPACITY REPETITIONS BYTES
"""

import argparse
import time

from gormapy import MPI, slots
from gormapy.examples._hicr import natural, require


def main(args=None):
    """Push, and pop what comes back."""
    parser = argparse.ArgumentParser(prog="pingpong", description=__doc__.split("\n")[0])
    parser.add_argument("capacity", type=natural, help="how many tokens each channel has room for")
    parser.add_argument("repetitions", type=natural, help="how many times the token goes and comes back")
    parser.add_argument("bytes", type=natural, help="size of the token")
    options = parser.parse_args(args)
    comm = MPI.COMM_WORLD
    require(comm, comm.Get_size() == 2, "exactly 2")
    with slots.Space(comm) as space:
        there = slots.spsc(space, "ping", 0, 1, options.capacity, nbytes=options.bytes)
        back = slots.spsc(space, "pong", 1, 0, options.capacity, nbytes=options.bytes)
        token = bytes(i % 251 for i in range(options.bytes))
        space.fence("ping")
        began = time.perf_counter()
        if space.rank == 0:
            for _ in range(options.repetitions):
                there.push(token, timeout=None)
                got = back.pop(timeout=None)
            seconds = time.perf_counter() - began
            assert got == token
            print(f"Time: {seconds:.6f} seconds")
        else:
            for _ in range(options.repetitions):
                back.push(there.pop(timeout=None), timeout=None)


if __name__ == "__main__":
    main()
