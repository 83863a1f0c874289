"""Push three values through a channel from one rank to another.

    mpiexec -n 2 python -m gormapy.examples.channel_spsc CAPACITY

The channel has room for CAPACITY values. With room for fewer than three, the producer waits until the consumer has
popped one.
"""

import argparse

from gormapy import MPI, slots
from gormapy.examples._hicr import natural, require

VALUES = (42, 43, 44)


def main(args=None):
    """Push and pop."""
    parser = argparse.ArgumentParser(prog="channel_spsc", description=__doc__.split("\n")[0])
    parser.add_argument("capacity", type=natural, help="how many values the channel has room for")
    options = parser.parse_args(args)
    comm = MPI.COMM_WORLD
    require(comm, comm.Get_size() == 2, "exactly 2")
    with slots.Space(comm) as space:
        channel = slots.spsc(space, "values", 0, 1, options.capacity, dtype="u4")
        if space.rank == 0:
            with channel:
                for value in VALUES:
                    channel.push(value, timeout=None)
                    print(f"Sent Value: {value}", flush=True)
        else:
            for value in channel:
                print(f"Received Value: {value}", flush=True)


if __name__ == "__main__":
    main()
