"""The programs of test_channels.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import asyncio
import sys
import time

import numpy as np
from rankside import await_flag, raise_flag, rank, refused, size, world

from gormapy import slots

space = slots.Space(world)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 0


def stream(_count, kind, locking, capacity):
    what = {
        "bytes": {"nbytes": 24},
        "arrays": {"dtype": "i4", "shape": (2, 3)},
        "any": {"payload": 100},
        "any arrays": {"dtype": "f8", "payload": 160},
    }[kind]

    def token(source, i):
        if kind == "bytes":
            return b"%08d %08d ......" % (source, i)
        if kind == "arrays":
            return np.array([[source, i, 1], [2, 3, i * i % 1000]], "i4")
        if kind == "any":
            return b"%d %d " % (source, i) + bytes(i * 7 % 50)
        return np.append([source, i], np.arange(i * 7 % 19) * 1.5)

    def origin(token):
        if kind in ("bytes", "any"):
            return int(token.split()[0]), int(token.split()[1])
        return int(token.flat[0]), int(token.flat[1])

    last = size - 1
    if locking == "spsc":
        end = slots.spsc(space, "c", 0, last, capacity, **what)
        producers = [0]
    else:
        producers = list(range(max(1, size - 1)))
        end = slots.mpsc(space, "c", producers, last, capacity, locking=locking == "locking", **what)
    if size == 1:
        producer, consumer = end
        with producer:
            for i in range(count):
                producer.push(token(0, i))
                got = consumer.pop()
                assert np.array_equal(got, token(0, i)) and type(got) is type(token(0, i))
        refused(slots.Closed, consumer.pop, "closed")
    elif rank in producers:
        with end:
            for i in range(count):
                end.push(token(rank, i), timeout=40)
        refused(slots.Closed, lambda: end.push(token(rank, 0)), "closed")
    elif rank == last:
        seen = dict.fromkeys(producers, 0)
        for got in end:
            source, number = origin(got)
            expected = token(source, number)
            assert number == seen[source] and type(got) is type(expected), (source, number, seen)
            assert np.array_equal(got, expected), (got, expected)
            if isinstance(got, np.ndarray):
                assert got.dtype == expected.dtype and got.shape == expected.shape
            seen[source] += 1
        assert set(seen.values()) == {count}, seen
        assert end.is_closed and end.is_empty and not end.is_full and end.depth == 0
        refused(slots.Closed, lambda: end.pop(timeout=1), "closed")
    else:
        assert end is None
    space.close()


def ends():
    for locking in (None, True, False):
        for payload in (None, 20):
            what = {"nbytes": 4} if payload is None else {"payload": payload}
            name = f"{locking} {payload}"
            if locking is None:
                p, c = slots.spsc(space, name, 0, 0, 3, **what)
            else:
                p, c = slots.mpsc(space, name, [0], 0, 3, locking=locking, **what)
            assert p.capacity == 3 and p.is_empty and c.is_empty and not p.is_full and "0 of 3" in repr(p)
            refused(slots.Empty, c.pop, "is empty", "timeout")
            refused(slots.Empty, c.peek, "is empty")
            refused(slots.Empty, c.drop, "has 0")
            late = time.monotonic()
            refused(TimeoutError, lambda: c.pop(timeout=0.1), "0.1 s")
            refused(slots.Empty, lambda: c.wait(timeout=0.1))
            assert 0.2 <= time.monotonic() - late < 25
            # round the ring several times
            for i in range(20):
                p.push(b"%04d" % i)
                p.push(b"abcd")
                assert (p.depth, c.depth, p.is_full) == (2, 2, False)
                assert bytes(c.peek()) == b"%04d" % i
                if locking is not False:
                    assert bytes(c.peek(1)) == b"abcd"
                    refused(slots.Empty, lambda: c.peek(3))
                refused(slots.Empty, lambda: c.drop(3), "has 2")
                c.wait()
                assert c.pop() == b"%04d" % i
                c.drop()
                assert c.is_empty
            for i in range(3):
                p.push(b"%04d" % i)
            assert p.is_full and c.is_full and p.depth == 3
            refused(slots.Full, lambda: p.push(b"full"), "is full", "timeout")
            refused(TimeoutError, lambda: p.push(b"full", timeout=0.1), "0.1 s")
            assert [c.pop() for _ in range(3)] == [b"0000", b"0001", b"0002"]
            if payload is None:
                refused(ValueError, lambda: p.push(b"12345"), "4", "5")
                refused(ValueError, lambda: p.push(b""), "4", "0")
            else:
                refused(ValueError, lambda: p.push(bytes(21)), "21 bytes", "never fit")
                p.push(bytes(20))
                refused(slots.Full, lambda: p.push(b"1"))
                assert c.pop() == bytes(20)
                p.push(b"")
                p.push(b"123456789")
                p.push(b"12345678901")
                assert [c.pop(), c.pop(), c.pop()] == [b"", b"123456789", b"12345678901"]
            refused(TypeError, lambda: p.push("text"), "bytes")
            refused(TypeError, lambda: p.push(3), "bytes")
            p.push(memoryview(b"1a2b3c4d")[::2])
            assert c.pop() == b"1234"
            p.push(b"last")
            assert isinstance(c.position, int)
            p.close()
            p.close()
            refused(slots.Closed, lambda: p.push(b"more"))
            assert list(c) == [b"last"] and list(c) == []
            refused(slots.Closed, lambda: c.pop(None))
            refused(slots.Closed, c.pop)

    p, c = slots.spsc(space, "arrays", 0, 0, 4, dtype="f4", shape=(2, 2))
    p.push(np.ones((2, 2)))  # converted
    p.push([[1, 2], [3, 4]])
    p.push(np.arange(4, dtype="f4").reshape(2, 2).T)
    view = c.peek(1)
    assert view.dtype == "f4" and (view == [[1, 2], [3, 4]]).all() and not view.flags.writeable
    c.drop()
    assert (c.pop() == [[1, 2], [3, 4]]).all() and (c.pop() == [[0, 2], [1, 3]]).all()
    refused(ValueError, lambda: p.push(np.ones(4)), "(2, 2)", "(4,)")
    refused(TypeError, lambda: p.push(np.ones((2, 2), complex)))
    p, c = slots.spsc(space, "numbers", 0, 0, 4, dtype="u1")
    p.push(200)
    assert c.pop() == 200
    refused(ValueError, lambda: p.push(300), "300")

    for bad in ({}, {"nbytes": 0}, {"nbytes": 4, "dtype": "f4"}, {"dtype": object}, {"payload": 0}):
        refused((TypeError, ValueError), lambda: slots.spsc(space, "bad", 0, 0, 1, **bad), "channel")
    refused(ValueError, lambda: slots.spsc(space, "bad", 0, 0, 0, nbytes=1), "capacity is 0")
    refused(ValueError, lambda: slots.spsc(space, "bad", 0, size, 1, nbytes=1), f"no rank {size}")
    refused(ValueError, lambda: slots.mpsc(space, "bad", [0, 0], 0, 1, nbytes=1), "twice")
    refused(ValueError, lambda: slots.mpsc(space, "bad", [], 0, 1, nbytes=1), "no producer")
    refused(ValueError, lambda: slots.spsc(space, "numbers", 0, 0, 4, dtype="u1"), "there already")
    for locking in (True, False):  # the others are none
        assert list(slots.mpsc(space, f"none {locking}", locking=locking, nbytes=1)) == []
    ends = [slots.spsc(space, "v", 0, 0, 4, payload=9)]
    ends += [slots.mpsc(space, f"m{locking}", [0], 0, 4, locking=locking, nbytes=1) for locking in (True, False)]
    space.close()
    for push_end, pop_end in [(p, c), *ends]:
        refused(slots.SlotError, lambda: push_end.push(1 if push_end._dtype else b"1"), "closed")
        refused(slots.SlotError, lambda: pop_end.pop(None), "closed")
        refused(slots.SlotError, c.peek, "closed")
        refused(slots.SlotError, lambda: p.depth, "closed")
        refused(slots.SlotError, lambda: slots.mpsc(space, "x", [0], 0, 4, nbytes=1), "closed")
        assert "closed space" in repr(p) and "closed space" in repr(c)


def asynchronous(_count):
    capacity = 2
    there = slots.spsc(space, "there", 0, 1, capacity, nbytes=8)
    back = slots.mpsc(space, "back", [1], 0, capacity, nbytes=8)

    async def turn():  # says that the loop has turned often enough to show that what waits in it does not stop it
        for _ in range(4):
            await asyncio.sleep(0.005)
        raise_flag(f"turned {rank}")

    async def main():
        turning = asyncio.ensure_future(turn())
        if rank == 0:

            async def push():
                for i in range(count):
                    await there.push_async(b"%08d" % i, timeout=20)
                there.close()

            pushing = asyncio.ensure_future(push())
            assert [got async for got in back] == [b"%08d" % (i + 1) for i in range(count)]
            await pushing
        else:
            try:
                await there.pop_async(timeout=0.05)
            except TimeoutError:
                raise_flag("late")
            async for got in there:
                await_flag("turned 0")  # while rank 0 waits: there is no answer yet
                await back.push_async(b"%08d" % (int(got) + 1))
            back.close()
        await turning

    if rank == 0:
        await_flag("late")  # nothing is pushed before the other end's time is over
        await_flag("turned 1")
    asyncio.run(main())
    space.close()
