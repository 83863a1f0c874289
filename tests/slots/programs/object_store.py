"""The programs of test_object_store.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import pickle

import numpy as np
from rankside import rank, refused, size, world

from gormapy import slots


def the_program():
    space = slots.Space(world)
    store = slots.ObjectStore(space)
    objects = [
        b"",
        b"some bytes",
        bytearray(b"more"),
        np.arange(6.0).reshape(2, 3),
        np.array(7, "i2"),
        np.zeros((0, 4)),
        np.arange(20)[::3],
        np.array([True, False]),
        np.array("2026-01-01", "M8[D]"),
        np.random.default_rng(rank).random(100_000),
    ]
    handles = [store.publish(x) for x in objects]
    assert [h.id for h in handles] == list(range(len(objects)))
    refused(slots.SlotError, lambda: store.publish(b"again", id=3), "object 3", "published already")
    everybody = world.allgather([(pickle.dumps(h), bytes(h)) for h in handles])
    for source, theirs in enumerate(everybody):
        for number, (pickled, packed) in enumerate(theirs):
            handle = pickle.loads(pickled)
            assert handle == store.handle(packed) and handle.rank == source
            got, expected = store.get(handle), objects[number]
            if number == len(objects) - 1:
                expected = np.random.default_rng(source).random(100_000)
            if isinstance(expected, np.ndarray):
                assert got.dtype == expected.dtype and got.shape == expected.shape
            assert np.array_equal(got, expected) or bytes(got) == bytes(expected)
    store.fence()
    store.destroy(handles[1])
    refused(slots.SlotError, lambda: store.destroy(handles[1]), "not published")
    other = store.handle(everybody[(rank + 1) % size][1][1])
    world.Barrier()
    refused(slots.SlotError, lambda: store.get(other), "destroyed")
    if size > 1:
        refused(slots.SlotError, lambda: store.destroy(other), f"not published by rank {rank}")
    assert store.publish(b"new", id=1).id == 1
    assert store.get(store.handle(everybody[rank][3][1])).shape == (2, 3)
    refused(TypeError, lambda: store.publish("text"), "bytes or an array")
    refused(TypeError, lambda: store.publish(np.array([object()])), "Python objects")
    refused(TypeError, lambda: store.publish(np.zeros(2, "i4,f4")), "structured")
    refused(TypeError, lambda: store.get(b"no handle"), "Handle")
    for bad in (b"", b"{}", b"[1, 2]", bytes(handles[2])[:-3], 3):
        refused(ValueError, lambda: store.handle(bad), "no handle")
    space.close()
