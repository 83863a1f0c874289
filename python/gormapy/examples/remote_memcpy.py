"""Send a message and its answer by memory slots, as HiCR's "distributed memcpy".

    mpiexec -n 2 python -m gormapy.examples.remote_memcpy

The receiver makes its buffer known under a tag and a key. The sender copies its message there (a put), and later
the receiver's answer from there (a get); the receiver only takes part in the fences. Its slot counts the received
messages: 1. In HiCR's own program the receiver writes its answer while the sender may already read it; here another
fence separates the two.
"""

import argparse

from gormapy import MPI, slots
from gormapy.examples._hicr import require

TAG = 0
SIZE = 256


def text(slot):
    """Return the text in a slot's memory, which ends with a zero."""
    return slot.array.tobytes().split(b"\0", 1)[0].decode()


def write(slot, message):
    """Write a text to a slot's memory."""
    data = message.encode()
    slot.array[: len(data)] = list(data)
    slot.array[len(data) :] = 0


def main(args=None):
    """Put, count, answer and get."""
    argparse.ArgumentParser(prog="remote_memcpy", description=__doc__.split("\n")[0]).parse_args(args)
    comm = MPI.COMM_WORLD
    require(comm, comm.Get_size() == 2, "exactly 2")
    with slots.Space(comm) as space:
        sender, receiver = 0, 1
        mine = space.allocate(SIZE)
        space.exchange(TAG, {space.rank: mine} if space.rank == receiver else {})
        theirs = space.get(TAG, receiver)

        if space.rank == sender:
            write(mine, "Hello, receiver! This is sender.")
            space.memcpy(theirs, 0, mine, 0, SIZE)
        space.fence(TAG)  # the message is there

        if space.rank == receiver:
            _, received = space.query_updates(mine)
            print(f"[Receiver] Received Message Count: {received}")
            print(f"[Receiver] Received buffer: {text(mine)}", flush=True)
            write(mine, "Hello, sender! This is receiver.")
        space.fence(TAG)  # the answer is there: without this fence the sender might read the message again

        if space.rank == sender:
            space.memcpy(mine, 0, theirs, 0, SIZE)
            print(f"[Sender] Received buffer: {text(mine)}", flush=True)
        space.fence(TAG)  # no rank needs the slot any more

        if space.rank == receiver:
            space.destroy(theirs)
        space.fence(TAG)
        space.free(mine)


if __name__ == "__main__":
    main()
