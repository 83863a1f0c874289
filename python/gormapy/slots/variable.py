"""Channels of one producer and one consumer for tokens of any size. The ring is described in `endpoint.py`.

The consumer's slot has, behind head, the size of each token, and a ring of bytes in which tokens follow each other; a
token that reaches the end continues at the start. Both sides compute where a token begins from the sizes.
"""

import numpy as np

from .cells import CELL
from .endpoint import Consumer, Producer
from .errors import Closed, Empty

HEAD, SIZES = 0, CELL
TAIL = 0


def ring_bytes(capacity, payload):
    """Return the size of the consumer's slot."""
    return SIZES + 8 * capacity + payload


def pieces(start, nbytes, payload):
    """Yield the pieces of a token in the ring: offset in the ring, range of the token's bytes."""
    at = start % payload
    first = min(nbytes, payload - at)
    yield at, 0, first
    if first < nbytes:
        yield 0, first, nbytes


class VariableProducer(Producer):
    """Producer of tokens of any size up to that of the ring of bytes, `payload`."""

    def __init__(self, space, tag, capacity, kind, payload, ring, tail):
        super().__init__(space, tag, capacity, kind, (ring.rank,))
        self.payload = payload
        self._head = ring.word(HEAD, "channel: consumer")
        self._tail = tail.word(TAIL, "push: channel is full")
        self._ring = ring
        self._sizes = ring.place(SIZES)
        self._bytes = ring.place(SIZES + 8 * capacity)
        self._ends = np.zeros(capacity + 1, "i8")  # for each of the last tokens: number of bytes pushed up to its end

    def _end(self, count):
        """Return how many bytes the first `count` tokens have."""
        return int(self._ends[count % (self.capacity + 1)])

    def push(self, token, timeout=0):
        head = self._head
        value = head.last
        if value & 1:
            raise Closed(f"channel {self.tag!r} has been closed: nothing can be pushed any more")
        memory = memoryview(self._kind.encode(token)).cast("B")
        nbytes = len(memory)
        if nbytes > self.payload:
            raise ValueError(f"push: the token has {nbytes} bytes, the channel {self.payload} in all: it can never fit")
        count = value >> 1
        start = self._end(count)
        if not self._fits(count, nbytes, self._tail.load()):
            # so many tokens must have been popped that their bytes are enough room
            need = count - self.capacity + 1
            while need <= count and not self._fits(count, nbytes, max(need, 0)):
                need += 1
            if self._tail.wait(need, timeout, self._peers) < need:
                raise self._full(timeout)
        for at, first, last in pieces(start, nbytes, self.payload):
            head.copy_in(self._bytes + at, memory[first:last])
        self._ends[(count + 1) % (self.capacity + 1)] = start + nbytes
        head.put(self._sizes + 8 * (count % self.capacity), np.array([nbytes], "i8"), 8, value + 2)

    def _fits(self, count, nbytes, popped):
        """Return whether a token fits when this number of tokens has been popped."""
        return count - popped < self.capacity and self._end(count) + nbytes - self._end(popped) <= self.payload

    def close(self):
        if not self._head.last & 1:
            self._head.store(self._head.last + 1)

    @property
    def depth(self):
        """Number of tokens that were pushed and not popped."""
        return (self._head.last >> 1) - self._tail.load()

    @property
    def bytes_used(self):
        """Number of bytes of the tokens that were not popped."""
        return self._end(self._head.last >> 1) - self._end(self._tail.load())


class VariableConsumer(Consumer):
    """Consumer of tokens of any size."""

    def __init__(self, space, tag, capacity, kind, payload, ring, tail):
        super().__init__(space, tag, capacity, kind, (tail.rank,))
        self.payload = payload
        self._head = ring.word(HEAD, "pop: channel is empty")
        self._tail = tail.word(TAIL, "channel: producer")
        memory = ring.source._memory
        self._sizes = memory[SIZES : SIZES + 8 * capacity].view("i8")
        self._memory = memory[SIZES + 8 * capacity :]
        self._starts = {0: 0}  # token -> its start; has the next one also after an exception between two lines

    def _start(self):
        """Return number and start of the next token."""
        count = self._tail.last
        return count, self._starts[count]

    def _token(self, start, nbytes):
        """Return the memory of a token, a copy if it is in two pieces."""
        parts = [self._memory[at : at + last - first] for at, first, last in pieces(start, nbytes, self.payload)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _arrived(self, count, timeout):
        pushed = self._head.wait(2 * count + 1, timeout, self._peers)
        if pushed <= 2 * count + 1:
            raise self._closed() if pushed & 1 else self._empty(timeout)

    def pop(self, timeout=0):
        count, start = self._start()
        self._arrived(count, timeout)
        nbytes = int(self._sizes[count % self.capacity])
        token = self._kind.decode(self._token(start, nbytes))
        self._starts = {count: start, count + 1: start + nbytes}
        self._tail.store(count + 1)
        return token

    def wait(self, timeout=None):
        self._arrived(self._tail.last, timeout)

    def peek(self, index=0):
        if index < 0 or index >= self.capacity:
            raise Empty(f"peek: tokens are counted from 0 to capacity - 1 ({self.capacity - 1}), got {index}")
        count, start = self._start()
        if self._head.load() <= 2 * (count + index) + 1:
            raise self._empty(0)
        for _ in range(index):
            start += int(self._sizes[count % self.capacity])
            count += 1
        return self._kind.show(self._token(start, int(self._sizes[count % self.capacity])))

    def drop(self, count=1):
        if count < 0 or count > self.depth:
            raise Empty(f"drop: {count} tokens are to be dropped, the channel has {self.depth}")
        number, start = self._start()
        end = start + sum(int(self._sizes[(number + i) % self.capacity]) for i in range(count))
        self._starts = {number: start, number + count: end}
        self._tail.store(number + count)

    @property
    def position(self):
        """Place of the next token's first byte in the ring of bytes."""
        return self._start()[1] % self.payload

    @property
    def depth(self):
        """Number of tokens that were pushed and not popped."""
        return (self._head.load() >> 1) - self._tail.last

    @property
    def is_closed(self):
        """Whether the producer has closed the channel; there may still be tokens."""
        return bool(self._head.load() & 1)
