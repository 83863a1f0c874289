"""Channels of many producers that share one ring under a lock.

The ring is that of `endpoint.py`, but head and tail are both at the consumer, and producers have no state of their
own: the producer with the lock of the consumer's slot reads both, puts its token, and stores head. A producer that
finds no room releases the lock before it waits for tail. If a producer dies with the lock head is unchanged, and the
next one continues from there. The channel is closed when every producer has closed its end.

For tokens of any size the slot also has the numbers of bytes pushed and popped, and the start and length of each
token.
"""

import numpy as np

from .cells import CELL
from .endpoint import Consumer, Producer
from .errors import Closed, Empty, HolderDied
from .variable import pieces
from .wait import Deadline, Naps

# The consumer's slot: head and the bytes pushed in one line, tail and the others in the next.
HEAD, BYTES_PUSHED, CLOSES = 0, 8, 16
TAIL, BYTES_POPPED, WAITERS = CELL, CELL + 8, CELL + 16
SIZES = 2 * CELL

_LOOK = 0.05  # seconds after which a producer checks whether the consumer still lives


def ring_bytes(capacity, nbytes, payload):
    """Return the size of the consumer's slot; payload is None for tokens of one size."""
    return SIZES + (capacity * nbytes if payload is None else 16 * capacity + payload)


class _Words:
    """The words of a ring as one side sees them."""

    def __init__(self, ring, label):
        self.head = ring.word(HEAD, label)
        self.bytes_pushed = ring.word(BYTES_PUSHED, label)
        self.closes = ring.word(CLOSES, label)
        self.tail = ring.word(TAIL, label)
        self.bytes_popped = ring.word(BYTES_POPPED, label)
        self.waiters = ring.word(WAITERS, label)


class LockingProducer(Producer):
    """One of many producers that share a ring."""

    _words_of = ("_words", "_ring")

    def __init__(self, space, tag, capacity, kind, payload, ring, producers):
        super().__init__(space, tag, capacity, kind, (ring.rank,))
        self.payload = payload
        self._ring, self._producers = ring, producers
        self._words = _Words(ring, "push: channel is full")
        self._sizes = ring.place(SIZES)
        self._tokens = self._sizes + (0 if payload is None else 16 * capacity)
        self._closed_here = False

    def push(self, token, timeout=0):
        if self._closed_here:
            raise Closed(f"channel {self.tag!r} has been closed: nothing can be pushed any more")
        memory = memoryview(self._kind.encode(token)).cast("B")
        limit = self._nbytes if self.payload is None else self.payload
        if len(memory) > limit or (self.payload is None and len(memory) != limit):
            raise ValueError(f"push: the token has {len(memory)} bytes, the channel {limit}: it can never fit")
        deadline, naps = Deadline(timeout), Naps()
        lock = self._ring._lock
        word, mine = lock._word, lock._mine
        while True:
            try:
                self._acquire(deadline, timeout)
                popped = self._push(memory)
            finally:
                # Whatever was raised, this end must not keep the lock; one call of C, so that no signal precedes it.
                word.swap(mine, 0)
            lock.wake()
            if popped is None:
                return
            if deadline.over():
                raise self._full(timeout)
            self._wait(popped, deadline.left(), naps)

    def _acquire(self, deadline, timeout):
        lock = self._ring._lock
        while not lock.try_acquire():
            try:
                # also a push that does not wait for room waits for the lock
                lock.acquire(None if timeout is None or timeout <= 0 else deadline.left())
                return
            except HolderDied:
                continue  # a token that it had not announced does not exist
            except TimeoutError:
                raise self._full(timeout) from None

    def _push(self, memory):
        """Push under the lock; return None, or how many tokens have been popped if there is no room."""
        words, value = self._words, self._words.head.load()
        count, popped = value >> 1, words.tail.load()
        if count - popped >= self.capacity:
            return popped
        if self.payload is None:
            words.head.put(self._tokens + count % self.capacity * self._nbytes, memory, self._nbytes, value + 2)
            return None
        start = words.bytes_pushed.load()
        nbytes = len(memory)
        # If no token is left all bytes are free: no later token makes the consumer skip bytes of a dead producer.
        if count > popped and start + nbytes - words.bytes_popped.load() > self.payload:
            return popped
        for at, first, last in pieces(start, nbytes, self.payload):
            words.head.copy_in(self._tokens + at, memory[first:last])
        # The sum before head: a death in between leaves unused bytes, which the consumer skips with the next token.
        words.bytes_pushed.store(start + nbytes)
        words.head.put(self._sizes + 16 * (count % self.capacity), np.array([start, nbytes], "i8"), 16, value + 2)
        return None

    def _wait(self, popped, left, naps):
        """Wait until more tokens are popped, for a while."""
        self._check_peers()
        words = self._words
        if not self._space.mapped:
            self._space._nap(naps.length(left))
            return
        words.waiters.add(1)
        try:
            words.tail.wait(popped + 1, _LOOK if left is None else min(left, _LOOK), ())
        finally:
            words.waiters.add(-1)

    def close(self):
        if self._closed_here:
            return
        lock = self._ring._lock
        word, mine = lock._word, lock._mine
        try:
            self._acquire(Deadline(None), None)
            self._closed_here = True
            words = self._words
            if words.closes.add(1) + 1 == self._producers:
                words.head.store(words.head.load() | 1)
        finally:
            word.swap(mine, 0)
        lock.wake()

    @property
    def depth(self):
        """Number of tokens that were pushed, by any producer, and not popped."""
        popped = self._words.tail.load()
        return (self._words.head.load() >> 1) - popped


class LockingConsumer(Consumer):
    """The consumer of a ring that producers share."""

    _words_of = ("_words",)

    def __init__(self, space, tag, capacity, kind, payload, ring, producers):
        super().__init__(space, tag, capacity, kind, tuple(producers))
        self.payload = payload
        self._words = _Words(ring, "pop: channel is empty")
        memory = ring.source._memory[SIZES:]
        if payload is None:
            self._memory = memory
        else:
            self._sizes = memory[: 16 * capacity].view("i8").reshape(capacity, 2)
            self._memory = memory[16 * capacity :]

    def _arrived(self, count, timeout):
        pushed = self._words.head.wait(2 * count + 1, timeout, self._peers)
        if pushed <= 2 * count + 1:
            raise self._closed() if pushed & 1 else self._empty(timeout)

    def _token(self, count):
        """Return the memory of a token, and the number of bytes popped after it."""
        if self.payload is None:
            at = count % self.capacity * self._nbytes
            return self._memory[at : at + self._nbytes], 0
        start, nbytes = map(int, self._sizes[count % self.capacity])
        parts = [self._memory[at : at + last - first] for at, first, last in pieces(start, nbytes, self.payload)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts), start + nbytes

    def _pop_until(self, count, end):
        """Announce that the tokens before a number are popped."""
        words = self._words
        if self.payload is not None:
            words.bytes_popped.store(end)
        words.tail.store(count)
        if words.waiters.load():
            words.tail.wake()

    def pop(self, timeout=0):
        count = self._words.tail.last
        self._arrived(count, timeout)
        memory, end = self._token(count)
        token = self._kind.decode(memory)
        self._pop_until(count + 1, end)
        return token

    def wait(self, timeout=None):
        self._arrived(self._words.tail.last, timeout)

    def peek(self, index=0):
        count = self._words.tail.last + index
        if index < 0 or index >= self.capacity:
            raise Empty(f"peek: tokens are counted from 0 to capacity - 1 ({self.capacity - 1}), got {index}")
        self._arrived(count, 0)
        return self._kind.show(self._token(count)[0])

    def drop(self, count=1):
        if count < 0 or count > self.depth:
            raise Empty(f"drop: {count} tokens are to be dropped, the channel has {self.depth}")
        if count:
            last = self._words.tail.last + count
            self._pop_until(last, self._token(last - 1)[1])

    @property
    def position(self):
        """Place of the next token in the ring: its number modulo the capacity."""
        return self._words.tail.last % self.capacity

    @property
    def depth(self):
        """Number of tokens that were pushed and not popped."""
        return (self._words.head.load() >> 1) - self._words.tail.last

    @property
    def is_closed(self):
        """Whether all producers have closed their ends; there may still be tokens."""
        return bool(self._words.head.load() & 1)
