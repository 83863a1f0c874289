"""The programs of test_slot_memcpy.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import os
import time
from pathlib import Path

import numpy as np
from rankside import rank, refused, size, world

import gormapy
from gormapy import slots

space = slots.Space(world)
left, right = (rank - 1) % size, (rank + 1) % size
sources = {
    "allocated": lambda: space.allocate(100),
    "registered": lambda: space.register(np.zeros(100, "u1")),
    "shared": lambda: space.register(gormapy.shared_zeros((10, 10), "u1")),
    "bytearray": lambda: space.register(bytearray(100)),
    "floats": lambda: space.register(np.zeros(25, "f4")),
}


def copies(way):
    assert way == "any" or space.mapped == (way == "mapped")
    for _number, (there, make) in enumerate(sources.items()):
        for here, make_mine in sources.items():
            tag = f"{there} {here}"
            mine = make()
            assert len(mine) == mine.nbytes == 100
            space.exchange(tag, {rank: mine})
            theirs, own = space.get(tag, right), space.get(tag, rank)
            assert (theirs.rank, theirs.nbytes, theirs.tag, theirs.key) == (right, 100, tag, right)
            assert own.source is mine and (theirs.source is None) == (size > 1)
            source, sink = make_mine(), make_mine()
            source._memory[:] = rank + np.arange(100)
            space.memcpy(theirs, 60, source, 10, 40)
            space.memcpy(theirs, 0, source, 0, 0)
            space.fence(mine, received=2, timeout=20)
            assert (mine._memory[60:] == left + np.arange(10, 50)).all() and not mine._memory[:60].any(), tag
            assert (mine.messages_received, mine.messages_sent) == (2, 0)
            assert (source.messages_received, source.messages_sent) == (0, 2)
            assert space.query_updates(theirs) == (0, theirs.messages_received)
            space.fence(tag)
            space.memcpy(sink, 1, theirs, 60, 40)
            space.fence(mine, sent=1, timeout=20)
            assert (sink._memory[1:41] == rank + np.arange(10, 50)).all() and sink._memory[0] == 0, tag
            assert (mine.messages_received, mine.messages_sent) == (2, 1)
            assert (sink.messages_received, sink.messages_sent) == (1, 0)
            space.memcpy(sink, 50, source, 0, 50)  # local to local
            assert (sink._memory[50:] == source._memory[:50]).all()
            assert (sink.messages_received, source.messages_sent) == (2, 3)
            space.fence(tag)
            space.destroy(theirs)
            space.free(source)
            space.fence(tag)
            refused(slots.SlotError, lambda: space.memcpy(theirs, 0, sink, 0, 1), "destroyed")
            refused(KeyError, lambda: space.get(tag, right), "keys there are: none")
            space.free(mine)
            refused(slots.SlotError, lambda: space.memcpy(sink, 0, mine, 0, 1), "freed")
            space.free(sink)
    assert len(space._attached._pieces) == 1  # that of the cells
    space.close()
    space.close()
    assert "closed" in repr(space)
    refused(slots.SlotError, lambda: space.allocate(1), "closed")


def refusals():
    mine = space.allocate(10)
    space.exchange(0, {rank: mine})
    theirs, small, large = space.get(0, right), space.allocate(4), space.allocate(20)
    Range = slots.SlotRangeError
    refused(
        Range,
        lambda: space.memcpy(theirs, 0, small, 1, 4),
        "size (4) + offset (1) = (5) exceeds source slot",
        "capacity (4)",
    )
    refused(
        Range,
        lambda: space.memcpy(theirs, 3, large, 0, 8),
        "size (8) + offset (3) = (11) exceeds destination slot",
        "capacity (10)",
        f"rank {right}",
    )
    refused(Range, lambda: space.memcpy(large, 0, theirs, 5, 6), "exceeds source slot", "(10)")
    refused(Range, lambda: space.memcpy(small, 0, theirs, 0, 5), "exceeds destination slot", "(4)")
    refused(Range, lambda: space.memcpy(small, 4, large, 0, 1), "exceeds destination slot")
    refused(Range, lambda: space.memcpy(theirs, -1, small, 0, 1), "negative")
    refused(Range, lambda: space.memcpy(theirs, 0, small, 0, -1), "negative")
    refused(Range, lambda: space.memcpy(theirs, 1 << 62, small, 0, 1), "exceeds")
    refused(slots.SlotError, lambda: space.memcpy(theirs, 0, theirs, 0, 1), "one of them has to be local")
    assert mine.messages_received == small.messages_sent == 0 and not mine.array.any()
    refused(TypeError, lambda: space.allocate("x"), "number of bytes")
    refused(ValueError, lambda: space.allocate(-1), "-1")
    refused(MemoryError, lambda: space.allocate(1 << 62))
    refused(TypeError, lambda: space.register(3), "register")
    refused(TypeError, lambda: space.register(np.zeros((4, 4))[:, 1]), "without gaps")
    refused(ValueError, lambda: space.register(b"abc"), "read-only")
    empty = space.allocate(0)
    space.exchange("empty", {rank: empty})
    space.memcpy(space.get("empty", right), 0, empty, 0, 0)
    space.fence(empty, received=1, timeout=20)
    refused(Range, lambda: space.memcpy(space.get("empty", right), 0, small, 0, 1), "capacity (0)")

    # a problem of one rank is one of all, and changes nothing
    refused(
        (slots.SlotError, TypeError), lambda: space.exchange(1, {rank: "no slot" if rank == size - 1 else mine}), "slot"
    )
    refused(KeyError, lambda: space.get(1, 0), "no slots were exchanged with tag 1", "0, 'empty'")
    refused(ValueError, lambda: space.exchange(0, {0: mine} if rank == 0 else {}), "key 0 is there already")
    if size > 1:
        refused(ValueError, lambda: space.exchange(2, {"same": mine}), "both give the key 'same'")
    other = slots.Space(world)
    refused(slots.SlotError, lambda: other.exchange(0, {rank: mine}), "another space")
    other.exchange(0)
    other.exchange(0, {})
    refused(KeyError, lambda: other.get(0, 0), "keys there are: none")
    other.close()
    space.exchange(0, {f"more {rank}": mine})
    for key in range(size):
        space.get(0, key), space.get(0, f"more {key}")
    space.deregister_global(theirs)
    refused(KeyError, lambda: space.get(0, right))
    space.fence(0)
    space.close()


def overlapping_slots():
    memory = np.zeros(100, "u1")
    parts = {k: memory[a:b] for k, (a, b) in enumerate([(20, 50), (0, 30), (40, 100), (0, 100), (20, 50), (60, 61)])}
    mine = {(rank, k): space.register(part) for k, part in parts.items()}
    space.exchange("parts", mine)
    ones = space.register(np.ones(100, "u1"))
    order = np.random.default_rng(3).permutation(len(parts))
    for k in order:
        space.fence("parts")
        theirs = space.get("parts", (right, k))
        space.memcpy(theirs, 0, ones, 0, theirs.nbytes)
        space.fence("parts")
        assert mine[rank, k].array.all()
        memory[:] = 0
        space.destroy(theirs)
        space.fence("parts")
    assert len(space._attached._pieces) == 1
    space.close()


def promoted():
    if rank == 0:
        mine = space.register(np.arange(16, dtype="u1"))
        shown = space.promote(mine, tag=5)
        data = shown.serialize()
        assert isinstance(data, bytes) and shown.key is None and shown.source is mine
        Path("slot.tmp").write_bytes(data)
        os.rename("slot.tmp", "slot")
        # computes, in no call of MPI, until the other has read and written
        end = time.monotonic() + 20
        while mine.array[3] != 77:
            assert time.monotonic() < end
        assert mine.messages_sent == 1
        space.destroy(shown)
        refused(slots.SlotError, shown.serialize, "destroyed")
        refused(slots.SlotError, lambda: space.memcpy(shown, 0, mine, 0, 1), "destroyed")
        world.send("destroyed", dest=1)
        again = space.promote(mine)
        world.send(again.serialize(), dest=1)
        world.recv(source=1)
        space.free(mine)
        world.send("freed", dest=1)
    elif rank == 1:
        end = time.monotonic() + 20
        while not os.path.exists("slot"):
            assert time.monotonic() < end
            time.sleep(0.01)
        data = Path("slot").read_bytes()
        theirs = space.deserialize(data, tag=5)
        assert (theirs.rank, theirs.nbytes, theirs.tag) == (0, 16, 5)
        local = space.allocate(16)
        space.memcpy(local, 0, theirs, 0, 16)
        assert (local.array == np.arange(16)).all()
        local.array[:] = 77
        space.memcpy(theirs, 3, local, 0, 1)
        world.recv(source=0)
        refused(slots.SlotError, lambda: space.memcpy(theirs, 0, local, 0, 1), "destroyed it")
        refused(slots.SlotError, lambda: space.memcpy(local, 0, space.deserialize(data), 0, 1), "destroyed it")
        refused(slots.SlotError, lambda: space.destroy(theirs), "by its owner only")
        again = space.deserialize(world.recv(source=0))
        space.memcpy(again, 0, local, 0, 16)
        space.deregister_global(again)
        refused(slots.SlotError, lambda: space.memcpy(again, 0, local, 0, 16), "deregistered")
        world.send("written", dest=0)
        world.recv(source=0)
        # what is no slot is refused
        refused(TypeError, lambda: space.deserialize(3), "bytes")
        refused(ValueError, lambda: space.deserialize(data[:-1]), f"these are {len(data) - 1}")
        for at in range(len(data)):
            refused(
                ValueError, lambda: space.deserialize(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]), "damaged"
            )
    other = slots.Space(world)
    refused(ValueError, lambda: other.deserialize(space.promote(space.allocate(1)).serialize()), "another space")
    other.close()
    space.close()
