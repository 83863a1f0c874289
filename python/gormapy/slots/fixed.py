"""Channels of one producer and one consumer for tokens of one size. The ring is described in `endpoint.py`."""

import numpy as np

from .cells import CELL
from .endpoint import Consumer, Producer
from .errors import Closed, Empty

# The consumer's slot: head in a cache line, then the tokens. The producer's: tail.
HEAD, TOKENS = 0, CELL
TAIL = 0


def ring_bytes(capacity, nbytes):
    """Return the size of the consumer's slot."""
    return TOKENS + capacity * nbytes


class FixedProducer(Producer):
    """Producer of tokens of one size."""

    def __init__(self, space, tag, capacity, kind, ring, tail):
        super().__init__(space, tag, capacity, kind, (ring.rank,))
        self._head = ring.word(HEAD, "channel: consumer")
        self._tail = tail.word(TAIL, "push: channel is full")
        self._popped = 0  # tail when it was last loaded
        self._places = [ring.place(TOKENS + i * self._nbytes) for i in range(capacity)]

    def push(self, token, timeout=0):
        head = self._head
        value = head.last
        if value & 1:
            raise Closed(f"channel {self.tag!r} has been closed: nothing can be pushed any more")
        count = value >> 1
        if count - self._popped >= self.capacity:
            self._popped = self._tail.wait(count - self.capacity + 1, timeout, self._peers)
            if count - self._popped >= self.capacity:
                raise self._full(timeout)
        if type(token) is not bytes and (
            self._dtype is None
            or type(token) is not np.ndarray
            or token.dtype is not self._dtype
            or token.shape != self._kind.shape
            or not token.flags.c_contiguous
        ):
            token = self._kind.encode(token)
        head.put(self._places[count % self.capacity], token, self._nbytes, value + 2)

    def close(self):
        if not self._head.last & 1:
            self._head.store(self._head.last + 1)

    @property
    def depth(self):
        """Number of tokens that were pushed and not popped."""
        self._popped = self._tail.load()
        return (self._head.last >> 1) - self._popped


class FixedConsumer(Consumer):
    """Consumer of tokens of one size."""

    def __init__(self, space, tag, capacity, kind, ring, tail):
        super().__init__(space, tag, capacity, kind, (tail.rank,))
        self._head = ring.word(HEAD, "pop: channel is empty")
        self._tail = tail.word(TAIL, "channel: producer")
        self._pushed = 0  # head when it was last loaded
        self._memory = ring.source._memory[TOKENS:]
        first = ring.source.address + TOKENS
        self._places = [first + i * self._nbytes for i in range(capacity)]

    def _arrived(self, count, timeout):
        """Wait for the token with a number; raise an error if it does not come."""
        self._pushed = self._head.wait(2 * count + 1, timeout, self._peers)
        if self._pushed <= 2 * count + 1:
            raise self._closed() if self._pushed & 1 else self._empty(timeout)

    def pop(self, timeout=0):
        tail = self._tail
        count = tail.last
        if self._pushed <= 2 * count + 1:
            self._arrived(count, timeout)
        place = self._places[count % self.capacity]
        if self._dtype is None:
            return tail.take(place, self._nbytes, count + 1)
        token = np.empty(self._kind.shape, self._dtype)
        tail.take_into(place, token, count + 1)
        return token

    def wait(self, timeout=None):
        self._arrived(self._tail.last, timeout)

    def peek(self, index=0):
        count = self._tail.last + index
        if index < 0 or index >= self.capacity:
            raise Empty(f"peek: tokens are counted from 0 to capacity - 1 ({self.capacity - 1}), got {index}")
        if self._pushed <= 2 * count + 1:
            self._pushed = self._head.load()
            if self._pushed <= 2 * count + 1:
                raise self._empty(0)
        at = count % self.capacity * self._nbytes
        return self._kind.show(self._memory[at : at + self._nbytes])

    def drop(self, count=1):
        if count < 0 or count > self.depth:
            raise Empty(f"drop: {count} tokens are to be dropped, the channel has {self.depth}")
        self._tail.store(self._tail.last + count)

    @property
    def position(self):
        """Place of the next token in the ring, from 0 to capacity - 1."""
        return self._tail.last % self.capacity

    @property
    def depth(self):
        """Number of tokens that were pushed and not popped."""
        self._pushed = self._head.load()
        return (self._pushed >> 1) - self._tail.last

    @property
    def is_closed(self):
        """Whether the producer has closed the channel; there may still be tokens."""
        return bool(self._head.load() & 1)
