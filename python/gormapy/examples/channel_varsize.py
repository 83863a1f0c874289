"""Push arrays of different sizes through a channel from one rank to another.

    mpiexec -n 2 python -m gormapy.examples.channel_varsize CAPACITY

The channel has room for CAPACITY arrays and for 32 bytes of elements. The last array only fits when the first one has
been popped, and then lies at the end of the ring and at its beginning.
"""

import argparse

import numpy as np

from gormapy import MPI, slots
from gormapy.examples._hicr import natural, require

PAYLOAD = 32
ARRAYS = [np.array(a, "u4") for a in ([0, 1, 2, 3], [4, 5, 6], [7, 8])]


def written(array):
    """Return the elements of an array as text."""
    return "".join(f"{x}," for x in array)


def main(args=None):
    """Push and pop."""
    parser = argparse.ArgumentParser(prog="channel_varsize", description=__doc__.split("\n")[0])
    parser.add_argument("capacity", type=natural, help="how many arrays the channel has room for")
    options = parser.parse_args(args)
    comm = MPI.COMM_WORLD
    require(comm, comm.Get_size() == 2, "exactly 2")
    with slots.Space(comm) as space:
        channel = slots.spsc(space, "arrays", 0, 1, options.capacity, dtype="u4", payload=PAYLOAD)
        if space.rank == 0:
            with channel:
                for array in ARRAYS:
                    channel.push(array, timeout=None)
                    print(f"PRODUCER sent:{written(array)}", flush=True)
        else:
            for array in channel:
                print(f"CONSUMER:{written(array)}", flush=True)


if __name__ == "__main__":
    main()
