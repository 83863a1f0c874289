"""Round trips of tokens through two channels of gormapy.slots."""

from .label import label
from .pair import pair_of
from .timing import BUDGET, absent, batches, row

SIZES = (8, 256, 64 << 10)
CAPACITY = 5  # as HiCR's ping-pong has in its documentation


def channel(MPI, comm, budget=BUDGET):
    """Time round trips of tokens by channels of gormapy.slots between ranks 0 and 1, and counted copies."""
    if MPI.__name__ != "gormapy.MPI":
        yield absent("channel", "channels are gormapy's own")
        return
    from gormapy import slots

    pair = pair_of(MPI, comm, "channel")
    if pair != MPI.COMM_NULL:
        with slots.Space(pair) as space:
            for size in SIZES:
                yield row(f"push, pop and back {label(size)}", batches(pair, _round_trip(space, size), budget))
            for size in SIZES:
                yield row(f"memcpy to a global slot {label(size)}", batches(pair, _put(space, size), budget))
        pair.Free()
    comm.Barrier()


def _round_trip(space, size):
    from gormapy.slots import spsc

    ends = [spsc(space, (size, r), r, 1 - r, CAPACITY, nbytes=size) for r in range(2)]
    out, back = ends[space.rank], ends[1 - space.rank]
    token = bytes(size)

    def call():
        if space.rank == 0:
            out.push(token, None)
            back.pop(None)
        else:
            out.push(back.pop(None), None)

    return call


def _put(space, size):
    mine, source = space.allocate(size), space.allocate(size)
    space.exchange(("put", size), {space.rank: mine})
    theirs = space.get(("put", size), 1 - space.rank)
    return lambda: space.memcpy(theirs, 0, source, 0, size)
