"""Channels and locks under every interleaving of their accesses to shared memory: see `interleaving.py`.

Channels have room for one token or two, and there are a few tokens, so that producers wait and rings turn. Nothing is
left out, except where `preemptions` is given: there the states are too many, and only schedules are followed
in which a process that could go on is interrupted at most so often.
"""

import asyncio
import types

import pytest

import gormapy

gormapy.rc.initialize = False  # this process is no rank

import replay  # noqa: E402
from interleaving import Explorer  # noqa: E402
from scenarios import Bells, Locks, Many, Single  # noqa: E402
from worddoubles import Core  # noqa: E402

from gormapy import MPI  # noqa: E402
from gormapy.slots import Closed, SlotError, endpoint, fixed, lock, locking, nonlocking, variable  # noqa: E402
from gormapy.slots.token import Kind  # noqa: E402

pytestmark = pytest.mark.slow

FIXED = [b"aA", b"bB", b"cC", b"dD"]
ANY = [b"aAAA", b"", b"bBB", b"cC"]  # the third meets the end of a ring of six bytes
A, B = [b"a", b"A"], [b"b", b"B"]
ONE_EACH = [A[:1], B[:1]]


@pytest.fixture(autouse=True)
def doubled_core(monkeypatch):
    """Let the classes ask the explorer who is gone."""
    monkeypatch.setattr(endpoint, "core", Core)
    monkeypatch.setattr(lock, "core", Core)


def holds(result):
    """Fail with the schedule of what was found."""
    assert result.fault is None, result.fault


@pytest.mark.parametrize("capacity", [1, 2])
@pytest.mark.parametrize("mortal", [(), (0, 1)])
@pytest.mark.parametrize("how", [{}, {"array": True}, {"payload": 6}])
def test_one_producer(how, mortal, capacity):
    tokens = ANY if "payload" in how else FIXED
    holds(Single(capacity, tokens, **how).explore(deaths=len(mortal), mortal=mortal))


@pytest.mark.parametrize("payload", [None, 6])
def test_tokens_are_looked_at_where_they_lie(payload, monkeypatch):
    monkeypatch.setattr(Kind, "show", lambda self, memory: memory)

    def pop(self, timeout):
        self.wait(timeout)
        token = bytes(self.peek())
        self.drop()
        return token

    base = fixed.FixedConsumer if payload is None else variable.VariableConsumer
    peeking = type("Peeking", (base,), {"pop": pop})
    tokens = FIXED if payload is None else ANY
    holds(Single(2, tokens, payload, consumer=peeking).explore(deaths=2, mortal=(0, 1)))


def test_async_forms(monkeypatch):
    @types.coroutine
    def sleep(seconds):
        yield

    def run(end, coroutine):
        while True:
            try:
                coroutine.send(None)
            except StopIteration as done:
                return done.value
            end._space._nap(0)

    class Producer(fixed.FixedProducer):
        def push(self, token, timeout=0):
            return run(self, self.push_async(token)) if timeout is None else super().push(token)

    class Consumer(fixed.FixedConsumer):
        def pop(self, timeout=0):
            try:
                return run(self, self.pop_async()) if timeout is None else super().pop()
            except Closed:
                raise
            except SlotError:
                if timeout is None:
                    raise MPI.Exception(MPI.ERR_PROC_FAILED) from None
                raise

    monkeypatch.setattr(asyncio, "sleep", sleep)
    holds(Single(1, FIXED[:2], producer=Producer, consumer=Consumer).explore(deaths=2, mortal=(0, 1)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"early": 1, "preemptions": 2},
        {"deaths": 1, "mortal": [0]},  # with the lock, too
        {"deaths": 2, "mortal": [0, 1], "preemptions": 2},
        {"deaths": 1, "mortal": [2], "preemptions": 3},  # the consumer
    ],
)
def test_producers_that_share_a_ring(options):
    holds(Many(ONE_EACH).explore(**options))


def test_producers_that_share_a_ring_and_push_again():
    holds(Many([A, B]).explore(preemptions=1))
    holds(Many([A, B], capacity=2).explore(preemptions=2))


def test_producers_that_share_a_ring_over_a_network():
    holds(Many(ONE_EACH, mapped=False).explore(preemptions=2, deaths=1, mortal=[0]))


@pytest.mark.parametrize(
    "tokens, payload, options",
    [
        ([[b"aaa"], [b"bb"]], 4, {"preemptions": 3}),  # the second goes on at the beginning of the ring
        ([[b"aaaa"], [b"b"]], 4, {"deaths": 1, "mortal": [0], "preemptions": 3}),  # bytes that nobody will use
        ([[b"aaa"], [b"bb", b"BBB"]], 5, {"deaths": 1, "mortal": [0], "preemptions": 2}),
    ],
)
def test_producers_that_share_a_ring_of_bytes(tokens, payload, options):
    holds(Many(tokens, 2, payload).explore(**options))


@pytest.mark.parametrize(
    "tokens, options",
    [
        ([A], {"deaths": 2, "mortal": [0, 1]}),
        (ONE_EACH, {}),
        (ONE_EACH, {"deaths": 1, "mortal": [0], "preemptions": 2}),
        (ONE_EACH, {"deaths": 1, "mortal": [2], "preemptions": 2}),  # the consumer
        ([A, B[:1]], {"preemptions": 2}),
    ],
)
def test_producers_with_a_ring_each(tokens, options):
    holds(Bells(tokens).explore(**options))


@pytest.mark.parametrize(
    "ranks, times, options",
    [
        (2, 2, {}),
        (3, 1, {}),
        (2, 2, {"early": 2}),
        (2, 2, {"deaths": 1, "mortal": [0]}),
        (3, 1, {"deaths": 1, "mortal": [0]}),
    ],
)
def test_locks(ranks, times, options):
    holds(Locks(ranks, times).explore(**options))


def test_locks_over_a_network():
    holds(Locks(2, 1, mapped=False).explore(deaths=1, mortal=[0]))


# What is wrong is found
# ----------------------


class HeadFirst(fixed.FixedProducer):
    """Announces a token before it is there."""

    def push(self, token, timeout=0):
        head = self._head
        count = head.last >> 1
        if count - self._popped >= self.capacity:
            self._popped = self._tail.wait(count - self.capacity + 1, timeout, self._peers)
        head.store(head.last + 2)
        head.copy_in(self._places[count % self.capacity], token)


class OneTooMany(fixed.FixedProducer):
    """Pushes a token more than there is room for."""

    def push(self, token, timeout=0):
        self._popped += 1
        super().push(token, timeout)


class TailFirst(fixed.FixedConsumer):
    """Gives the room of a token back before it has read it."""

    def pop(self, timeout=0):
        count = self._tail.last
        self._arrived(count, timeout)
        self._tail.store(count + 1)
        return bytes(self._memory)[count % self.capacity * self._nbytes :][: self._nbytes]


class SizeLast(variable.VariableProducer):
    """Stores the size of a token after it has announced it."""

    def push(self, token, timeout=0):
        sizes, self._sizes = self._sizes, self._sizes + 8 * self.capacity  # the token's bytes, as it were
        count = self._head.last >> 1
        super().push(token, timeout)
        self._sizes = sizes
        self._head.copy_in(sizes + 8 * (count % self.capacity), len(token).to_bytes(8, "little"))


class LooksTooEarly(lock.Lock):
    """Looks for waiters before it releases the lock."""

    def release(self):
        waiters = self._waiters.load()
        self._word.swap(self._mine, 0)
        if waiters:
            self._word.wake()


class LooksThenStores(lock.Lock):
    """Acquires the lock in two steps."""

    def acquire(self, timeout=None):
        while self._word.load() != 0:
            super().acquire()
            super().release()
        self._word.store(self._mine)


class TellsTwo(lock.Lock):
    """Tells all who find a dead holder, not only the one that frees the lock."""

    def _acquire(self, timeout):
        holder = self._word.load()
        if holder and lock.core.WinGone(self._space._win._h, -holder - 1):
            self._word.swap(holder, 0)
            raise lock.HolderDied
        super()._acquire(timeout)


class WakesTooEarly(locking.LockingConsumer):
    """Looks for producers that wait for room before it makes room."""

    def _pop_until(self, count, end):
        waiters = self._words.waiters.load()
        self._words.tail.store(count)
        if waiters:
            self._words.tail.wake()


class NoLock(locking.LockingProducer):
    """Pushes without the lock."""

    def _acquire(self, deadline, timeout):
        """Acquire nothing."""


class HeadBeforeSum(locking.LockingProducer):
    """Announces a token before the sum of all bytes, so that the next producer writes over it."""

    def _push(self, memory):
        words = self._words
        pushed = words.bytes_pushed
        later = types.SimpleNamespace(load=pushed.load, store=lambda value: None)
        words.bytes_pushed = later
        start = pushed.load()
        popped = super()._push(memory)
        words.bytes_pushed = pushed
        if popped is None:
            pushed.store(start + len(memory))
        return popped


class RingsFirst(nonlocking.BellProducer):
    """Rings the bell before the token is there."""

    def push(self, token, timeout=0):
        self._bell.add(1)
        self._producer.push(token, timeout)

    def close(self):
        self._bell.add(1)
        self._producer.close()


DEATH = {"deaths": 1, "mortal": [0]}
BROKEN = {
    "head first": (lambda: Single(1, FIXED, producer=HeadFirst), {}, "refused"),
    "one too many": (lambda: Single(2, FIXED, producer=OneTooMany), {}, "refused"),
    "tail first": (lambda: Single(2, FIXED, consumer=TailFirst), {}, "refused"),
    "size last": (lambda: Single(1, ANY, 6, producer=SizeLast), {}, "refused"),
    "waiters before release": (lambda: Locks(2, 1, kind=LooksTooEarly), {}, "deadlock"),
    "no swap": (lambda: Locks(2, 1, kind=LooksThenStores), {}, "raised"),
    "told twice": (lambda: Locks(3, 1, kind=TellsTwo), DEATH, "refused"),
    "waiters before tail": (lambda: Many(ONE_EACH, consumer=WakesTooEarly), {}, "deadlock"),
    "no lock": (lambda: Many(ONE_EACH, producer=NoLock), {}, "refused"),
    "head before sum": (
        lambda: Many([[b"aa"], [b"b"]], 2, 6, producer=HeadBeforeSum),
        {**DEATH, "preemptions": 2},
        "refused",
    ),
    "bell first": (lambda: Bells(ONE_EACH, producer=RingsFirst), {}, "deadlock"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_found(what):
    world, options, fault = BROKEN[what]
    result = world().explore(**options)
    assert result.fault is not None and fault in result.fault.splitlines()[0], result.fault


# The explorer itself
# -------------------


def outcomes(*processes):
    """Return all contents of three words that there may be after some processes."""
    found = set()
    Explorer(bytes(24), processes, lambda end: found.add((end.word(0), end.word(8), end.word(16)))).explore()
    return found


def test_every_outcome_is_found():
    def add(process):
        process.step("store", 0, process.step("load", 0) + 1, -1)

    assert outcomes(add, add, add) == {(1, 0, 0), (2, 0, 0), (3, 0, 0)}


def test_accesses_have_one_order():
    def store_and_look(mine, other):
        def run(process):
            process.step("store", mine, 1, -1)
            process.step("add", 16, (mine + 8) // 8 * process.step("load", other), -1)

        return run

    assert {sums for _, _, sums in outcomes(store_and_look(0, 8), store_and_look(8, 0))} == {1, 2, 3}


@pytest.mark.parametrize("world", [lambda: Single(2, ANY, 6), lambda: Locks(2, 1), lambda: Many([A[:1]])])
def test_nothing_is_lost_by_forgetting(world, monkeypatch):
    options = {"deaths": 1, "mortal": [0]}
    quick = world().explore(**options)
    monkeypatch.setattr(replay, "FORGETS", ())
    whole = world().explore(**options)
    assert quick.fault is None and whole.fault is None
    assert quick.schedules == whole.schedules and quick.states < whole.states
