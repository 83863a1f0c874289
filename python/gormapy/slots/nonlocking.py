"""Channels of many producers, each with a ring of its own.

No producer waits for another one. Each ring is that of one producer and one consumer. One word at the consumer is
the *bell*: a producer adds one to it after each token, so that the consumer can wait for all of them at once. The
consumer takes tokens from the rings in turn.
"""

from gormapy import MPI

from .endpoint import Consumer, Producer
from .errors import Empty
from .wait import Deadline

_LOOK = 0.5  # seconds after which the rings are checked without a bell: a producer that died may not have rung it


class BellProducer(Producer):
    """One of many producers, with a ring of its own."""

    _words_of = ("_bell",)

    def __init__(self, producer, bell):
        super().__init__(producer._space, producer.tag, producer.capacity, producer._kind, producer._peers)
        self._producer, self._bell = producer, bell

    def push(self, token, timeout=0):
        self._producer.push(token, timeout)
        self._bell.add(1)

    def close(self):
        self._producer.close()
        self._bell.add(1)

    @property
    def depth(self):
        """Number of this producer's tokens that were not popped."""
        return self._producer.depth


class NonlockingConsumer(Consumer):
    """The consumer of the rings of many producers."""

    _words_of = ("_bell",)

    def __init__(self, space, tag, capacity, kind, consumers, bell):
        super().__init__(space, tag, capacity * len(consumers), kind, tuple(c._peers[0] for c in consumers))
        self._consumers, self._bell = consumers, bell
        self._next = 0  # the ring to check first

    def _find(self, timeout=0):
        """Return the ring that the next token is in."""
        deadline, gone = Deadline(timeout), None
        while True:
            heard = self._bell.load()
            closed = 0
            for i in range(len(self._consumers)):
                at = (self._next + i) % len(self._consumers)
                if self._consumers[at].depth:
                    self._next = at
                    return self._consumers[at]
                closed += self._consumers[at].is_closed
            if closed == len(self._consumers):
                if any(c.depth for c in self._consumers):  # a token came after the check and before the close
                    continue
                raise self._closed()
            if gone is not None:
                raise gone
            if deadline.over():
                raise self._empty(timeout)
            left = deadline.left()
            waiting = tuple(c._peers[0] for c in self._consumers if not c.is_closed)
            try:
                self._bell.wait(heard + 1, _LOOK if left is None else min(left, _LOOK), waiting)
            except MPI.Exception as error:
                gone = error  # but a producer that died may not have rung for its last token: check once more

    def pop(self, timeout=0):
        token = self._find(timeout).pop()
        self._next = (self._next + 1) % len(self._consumers)
        return token

    def wait(self, timeout=None):
        self._find(timeout)

    def peek(self, index=0):
        if index:
            raise Empty("peek: of a channel with a ring for each producer only the next token can be looked at")
        return self._find().peek()

    def drop(self, count=1):
        if count < 0 or count > self.depth:
            raise Empty(f"drop: {count} tokens are to be dropped, the channel has {self.depth}")
        for _ in range(count):
            self._find().drop()
            self._next = (self._next + 1) % len(self._consumers)

    @property
    def source(self):
        """Which ring the next token is in, from 0; Empty if there is none."""
        self._find()
        return self._next

    @property
    def position(self):
        """Place of the next token in its ring; Empty if there is none."""
        return self._find().position

    @property
    def depth(self):
        """Number of tokens that were pushed and not popped."""
        return sum(c.depth for c in self._consumers)

    @property
    def is_closed(self):
        """Whether all producers have closed their ends; there may still be tokens."""
        return all(c.is_closed for c in self._consumers)
