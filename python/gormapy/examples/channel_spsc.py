"""Push three values through a channel from one rank to another.

    mpiexec -n 2 python -m gormapy.examples.channel_spsc CAPACITY

The channel has room for CAPACITY values. With room for fewer than three, the producer waits until the consumer has
popped one.
"""

import argparse
import sys

from gormapy import MPI, slots

VALUES = (42, 43, 44)


def natural(text):
    """Return the number that a text says, if it is 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 is expected, not {text}")
    return number


def main(args=None):
    """Push and pop."""
    parser = argparse.ArgumentParser(prog="channel_spsc", description=__doc__.split("\n")[0])
    parser.add_argument("capacity", type=natural, help="how many values the channel has room for")
    options = parser.parse_args(args)
    comm = MPI.COMM_WORLD
    if comm.Get_size() != 2:
        if comm.Get_rank() == 0:
            print(
                "[Error] This example requires exactly 2 HiCR instances to run: mpiexec -n 2 …",
                file=sys.stderr,
                flush=True,
            )
        comm.Barrier()  # said before the first one ends
        sys.exit(1)
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
