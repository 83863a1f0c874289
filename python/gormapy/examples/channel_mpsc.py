"""Push values through a channel from all ranks but the first to the first.

    mpiexec -n 4 python -m gormapy.examples.channel_mpsc CAPACITY [--nonlocking]

The producers share one ring of CAPACITY values under a lock, or with --nonlocking have a ring each. Every one pushes
three values.
"""

import argparse

from gormapy import MPI, slots
from gormapy.examples._hicr import natural, require
from gormapy.examples.channel_spsc import VALUES


def main(args=None):
    """Push on all ranks but 0, pop there."""
    parser = argparse.ArgumentParser(prog="channel_mpsc", description=__doc__.split("\n")[0])
    parser.add_argument("capacity", type=natural, help="how many values the channel has room for")
    parser.add_argument("--nonlocking", action="store_true", help="a ring for each producer in place of a lock")
    options = parser.parse_args(args)
    comm = MPI.COMM_WORLD
    require(comm, comm.Get_size() >= 2, "at least 2", n=4)
    with slots.Space(comm) as space:
        channel = slots.mpsc(space, "values", None, 0, options.capacity, locking=not options.nonlocking, dtype="u4")
        if space.rank > 0:
            with channel:
                for value in VALUES:
                    channel.push(value, timeout=None)
                    print(f"[Producer {space.rank:03d}] Sent Value: {value}", flush=True)
        else:
            consume(channel, (space.size - 1) * len(VALUES))


def consume(channel, expected):
    """Pop until all producers have closed the channel."""
    got = 0
    while True:
        try:
            # wait for the next token; its place has to be read before it is popped
            place, value = pop(channel)
        except slots.Closed:
            break
        got += 1
        print(f"    [Consumer] Recv Value: {value}  ({got}/{expected}) {place}", flush=True)
    assert got == expected, f"{got} values came, {expected} were pushed"


def pop(channel):
    """Return the place of the next token, and the token."""
    channel.wait()
    place = f"Pos: {channel.position}"
    if hasattr(channel, "source"):
        place += f" @ SPSC Channel {channel.source}"
    return place, channel.pop()


if __name__ == "__main__":
    main()
