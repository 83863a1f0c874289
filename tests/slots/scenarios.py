"""The channels and locks whose interleavings are explored: worlds of a few ranks, and what must hold at every end."""

import numpy as np
from interleaving import DIED
from worddoubles import World

from gormapy import MPI
from gormapy.slots import Closed, HolderDied, SlotError, fixed, lock, locking, nonlocking, variable
from gormapy.slots.token import Kind


def push_all(space, end, tokens):
    """Push tokens and close; return how that ended."""
    try:
        for token in tokens:
            space.forget()
            end.push(token, None)
        space.forget()
        end.close()
    except (MPI.Exception, SlotError):
        return "error"
    return "closed"


def pop_all(space, end):
    """Return all tokens that come, and how that ended."""
    got = []
    while True:
        space.forget()
        try:
            got.append(bytes(end.pop(None)))
        except Closed:
            return got, "closed"
        except MPI.Exception:
            return got, "error"


class Single:
    """A channel of one producer (rank 0) and one consumer (rank 1), and the tokens that are pushed."""

    def __init__(self, capacity, tokens, payload=None, array=False, producer=None, consumer=None):
        self.tokens = tokens
        if payload is not None:
            kind, more = Kind(None, None, (), payload), (payload,)
            producer, consumer = producer or variable.VariableProducer, consumer or variable.VariableConsumer
            nbytes = variable.ring_bytes(capacity, payload)
        else:
            size = len(tokens[0])
            kind, more = Kind(None, "u1", size, None) if array else Kind(size, None, (), None), ()
            producer, consumer = producer or fixed.FixedProducer, consumer or fixed.FixedConsumer
            nbytes = fixed.ring_bytes(capacity, size)
        self.world = World()
        ring, tail = self.world.slot(1, nbytes), self.world.slot(0)
        self.head = ring[1]

        def push(space, ring, tail):
            end = producer(space, "c", capacity, kind, *more, ring, tail)
            return push_all(space, end, [np.frombuffer(t, "u1") for t in tokens] if array else tokens)

        def pop(space, ring, tail):
            return pop_all(space, consumer(space, "c", capacity, kind, *more, ring, tail))

        self.world.process(push, ring, tail)
        self.world.process(pop, ring, tail)

    def check(self, ending):
        """Everything that was announced has come, whole and in order, and the end is known."""
        head = ending.word(self.head)
        pushed, popped = ending.results
        if popped is not DIED:
            assert popped == (self.tokens[: head >> 1], "closed" if head & 1 else "error")
            assert pushed in ("closed", DIED)
        elif pushed is not DIED:
            assert pushed in ("closed", "error")

    def explore(self, **options):
        return self.world.explore(self.check, **options)


class Many:
    """A channel of several producers (ranks from 0), each with so many tokens, and one consumer (the last rank)."""

    def __init__(self, tokens, capacity=1, payload=None, mapped=True, producer=None, consumer=None):
        count = len(tokens)
        kind = Kind(len(tokens[0][0]) if payload is None else None, None, (), payload)
        self.tokens = tokens
        self.world = World(mapped)
        ring = self.world.slot(count, locking.ring_bytes(capacity, kind.nbytes, payload))
        self.heads = [ring[1]]

        def push(space, ring):
            end = (producer or locking.LockingProducer)(space, "c", capacity, kind, payload, ring, count)
            return push_all(space, end, tokens[space.rank])

        def pop(space, ring):
            end = (consumer or locking.LockingConsumer)(space, "c", capacity, kind, payload, ring, range(count))
            return pop_all(space, end)

        for _ in range(count):
            self.world.process(push, ring)
        self.world.process(pop, ring)

    def check(self, ending):
        """Each producer's tokens have come in order, all that were announced."""
        *pushed, popped = ending.results
        heads = [ending.word(head) for head in self.heads]
        if popped is DIED:
            assert all(how in ("closed", "error", DIED) for how in pushed)
            return
        got, how = popped
        assert len(got) == sum(head >> 1 for head in heads)
        assert all(any(token in tokens for tokens in self.tokens) for token in got)
        assert how == ("closed" if all(head & 1 for head in heads) else "error")
        for tokens, end in zip(self.tokens, pushed):
            came = [token for token in got if token in tokens]
            assert came == tokens[: len(came)]
            assert end is DIED or (end == "closed" and came == tokens)
        assert how == "closed" or DIED in pushed

    def explore(self, **options):
        return self.world.explore(self.check, **options)


class Bells(Many):
    """The same, where each producer has a ring of its own."""

    def __init__(self, tokens, capacity=1, producer=nonlocking.BellProducer):
        self.tokens = tokens
        count = len(tokens)
        kind = Kind(len(tokens[0][0]), None, (), None)
        self.world = World()
        rings = [self.world.slot(count, fixed.ring_bytes(capacity, kind.nbytes)) for _ in tokens]
        tails = [self.world.slot(rank) for rank in range(count)]
        bell = self.world.slot(count)
        self.heads = [ring[1] for ring in rings]

        def push(space, ring, tail, bell):
            end = fixed.FixedProducer(space, "c", capacity, kind, ring, tail)
            return push_all(space, producer(end, bell.word(0)), tokens[space.rank])

        def pop(space, bell, *slots):
            ends = [
                fixed.FixedConsumer(space, "c", capacity, kind, ring, tail)
                for ring, tail in zip(slots[:count], slots[count:])
            ]
            return pop_all(space, nonlocking.NonlockingConsumer(space, "c", capacity, kind, ends, bell.word(0)))

        for ring, tail in zip(rings, tails):
            self.world.process(push, ring, tail, bell)
        self.world.process(pop, bell, *rings, *tails)


class Locks:
    """Ranks that each take a lock so many times, and do what must not be done by two at a time."""

    def __init__(self, ranks, times, mapped=True, kind=lock.Lock):
        self.times = times
        self.world = World(mapped)
        slot = self.world.slot(0)
        self.count = slot[1]
        self.inside = [self.count + 8 + 8 * rank for rank in range(ranks)]
        self.lock = slot[1] + slot[2]

        def contend(space, slot):
            count, inside, died = slot.word(0), slot.word(8 + 8 * space.rank), 0
            slot._lock.__class__ = kind
            for _ in range(times):
                space.forget()
                while True:
                    try:
                        slot._lock.acquire()
                        break
                    except HolderDied:
                        died += 1
                inside.store(1)
                count.store(count.load() + 1)
                inside.store(0)
                slot._lock.release()
            return died

        for _ in range(ranks):
            self.world.process(contend, slot)

    def check(self, ending):
        """Nobody was lost, and who died inside was told to one of the others."""
        told = [end for end in ending.results if end is not DIED]
        dead = len(ending.results) - len(told)
        count, inside = ending.word(self.count), sum(ending.word(word) for word in self.inside)
        assert len(told) * self.times <= count <= len(ending.results) * self.times
        assert dead or count == len(ending.results) * self.times
        assert sum(told) <= dead
        if inside and ending.word(self.lock) == 0:  # else nobody came after the death
            assert sum(told) >= inside

    def explore(self, **options):
        return self.world.explore(self.check, **options)
