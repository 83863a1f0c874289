"""Channels: order, capacity, sizes, full and empty, closing."""

import pytest
from support.programs import beside

program = beside(__file__)


TCP = {"GORMAPY_FABRIC": "tcp"}


# A producer and a consumer, of any kind that the arguments say; the consumer sees every token in order.


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("kind", ["bytes", "arrays", "any", "any arrays"])
def test_one_producer(ranks, kind, capacity):
    ranks(2, program.stream, 200, kind, "spsc", capacity)


@pytest.mark.parametrize("locking", ["locking", "nonlocking"])
@pytest.mark.parametrize(
    "n, kind, capacity", [(1, "bytes", 1), (2, "any arrays", 2), (4, "any", 1), (4, "arrays", 3), (7, "bytes", 3)]
)
def test_many_producers(ranks, n, locking, kind, capacity):
    ranks(n, program.stream, 60, kind, locking, capacity, timeout=60)


@pytest.mark.parametrize(
    "locking, kind", [("spsc", "arrays"), ("spsc", "any"), ("locking", "any"), ("nonlocking", "bytes")]
)
def test_over_tcp(ranks, locking, kind):
    ranks(2 if locking == "spsc" else 3, program.stream, 20, kind, locking, 2, env=TCP, timeout=60)


# What one end sees, with both ends on one rank where possible.


@pytest.mark.slow
def test_ends(ranks):
    ranks(1, program.ends)


@pytest.mark.parametrize("env", [None, TCP], ids=["shm", "tcp"])
def test_async(ranks, env):
    ranks(2, program.asynchronous, 50 if env is None else 20, env=env)
