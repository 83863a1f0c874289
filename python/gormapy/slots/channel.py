"""The collective calls that make channels and give each rank its end."""

from .cells import CELL
from .fixed import FixedConsumer, FixedProducer
from .fixed import ring_bytes as fixed_bytes
from .locking import LockingConsumer, LockingProducer
from .locking import ring_bytes as locking_bytes
from .nonlocking import BellProducer, NonlockingConsumer
from .token import Kind
from .variable import VariableConsumer, VariableProducer
from .variable import ring_bytes as variable_bytes


def spsc(space, tag, producer=0, consumer=1, capacity=16, *, nbytes=None, dtype=None, shape=(), payload=None):
    """Make a channel from one rank to another; collective over the space.

    Tokens are bytes, `nbytes` each, or arrays of `dtype` and `shape`. With `payload`, a number of bytes, tokens have
    any size, as many at a time as fit into these bytes. The channel has room for `capacity` tokens.

    Returns a producer on the one rank, a consumer on the other, both as a tuple if they are the same rank, and
    None elsewhere. `tag` names the channel in its space: a second one by the same tag is a ValueError.
    """
    kind = Kind(nbytes, dtype, shape, payload)
    _check(space, capacity, payload, (producer,), consumer)
    pushing, popping = _rings(space, tag, (producer,), consumer, capacity, kind, payload)
    return _ends(pushing[0] if pushing else None, popping[0] if popping else None)


def mpsc(
    space,
    tag,
    producers=None,
    consumer=0,
    capacity=16,
    *,
    locking=True,
    nbytes=None,
    dtype=None,
    shape=(),
    payload=None,
):
    """Make a channel from several ranks (all others, unless given) to one; collective over the space.

    With `locking` the producers share one ring, in which tokens have one order; otherwise each has a ring of its own,
    of `capacity` tokens and `payload` bytes, and never waits for another producer. The rest is as in `spsc`.
    """
    kind = Kind(nbytes, dtype, shape, payload)
    others = producers is None  # in a space of one rank there are no producers: the channel is closed from the start
    producers = tuple(rank for rank in range(space.size) if rank != consumer) if others else tuple(producers)
    _check(space, capacity, payload, producers or (consumer,) if others else producers, consumer)
    if not locking:
        ends = _rings(space, tag, producers, consumer, capacity, kind, payload)
        return _with_bell(space, tag, consumer, capacity, kind, *ends)
    slots = {}
    if space.rank == consumer:
        slots["ring"] = space.allocate(locking_bytes(capacity, kind.nbytes, payload))
    space.exchange(("channel", tag), slots)
    ring = space.get(("channel", tag), "ring")
    ring._check()
    mine = theirs = None
    if space.rank in producers:
        mine = LockingProducer(space, tag, capacity, kind, payload, ring, len(producers))
    if space.rank == consumer:
        theirs = LockingConsumer(space, tag, capacity, kind, payload, ring, producers)
        if not producers:
            theirs._words.head.store(1)
    return _ends(mine, theirs)


def _check(space, capacity, payload, producers, consumer):
    if capacity < 1:
        raise ValueError(f"channel: the capacity is {capacity}; a channel needs room for one token at least")
    if payload is not None and payload < 1:
        raise ValueError(f"channel: the payload is {payload} bytes; it has to have one at least")
    if not producers:
        raise ValueError("channel: there is no producer; give the ranks that push")
    if len(set(producers)) < len(producers):
        raise ValueError(f"channel: a rank is given twice as producer: {list(producers)}")
    for rank in (*producers, consumer):
        if not 0 <= rank < space.size:
            raise ValueError(f"channel: there is no rank {rank}, the space has {space.size} ranks")


def _rings(space, tag, producers, consumer, capacity, kind, payload):
    """Make a ring for each producer, and return this rank's ends: of producers, of consumers."""
    nbytes = fixed_bytes(capacity, kind.nbytes) if payload is None else variable_bytes(capacity, payload)
    slots = {}
    if space.rank in producers:
        slots["tail", space.rank] = space.allocate(CELL)
    if space.rank == consumer:
        for rank in producers:
            slots["ring", rank] = space.allocate(nbytes)
        slots["bell"] = space.allocate(CELL)
    space.exchange(("channel", tag), slots)
    pushing, popping = [], []
    for rank in producers:
        if space.rank not in (rank, consumer):
            continue
        ring, tail = space.get(("channel", tag), ("ring", rank)), space.get(("channel", tag), ("tail", rank))
        if payload is None:
            args, classes = (space, tag, capacity, kind, ring, tail), (FixedProducer, FixedConsumer)
        else:
            args, classes = (space, tag, capacity, kind, payload, ring, tail), (VariableProducer, VariableConsumer)
        if space.rank == rank:
            pushing.append(classes[0](*args))
        if space.rank == consumer:
            popping.append(classes[1](*args))
    return pushing, popping


def _with_bell(space, tag, consumer, capacity, kind, pushing, popping):
    mine = theirs = None
    if pushing or space.rank == consumer:
        bell = space.get(("channel", tag), "bell").word(0, "pop: channel is empty")
        if pushing:
            mine = BellProducer(pushing[0], bell)
        if space.rank == consumer:
            theirs = NonlockingConsumer(space, tag, capacity, kind, popping, bell)
    return _ends(mine, theirs)


def _ends(mine, theirs):
    if mine is not None and theirs is not None:
        return mine, theirs
    return theirs if mine is None else mine
