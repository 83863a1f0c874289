"""Random operations of all ranks, compared with a serial model."""

import random

import pytest
from support.windows import PROGRAMS, WAYS

RANKS = 7
CASES = [
    *((flavour, "kernel") for flavour in ("create", "create over Alloc_mem", "allocate", "dynamic")),
    pytest.param("shared", "kernel", marks=pytest.mark.one_node("the window is of shared memory")),
    ("create", "messages"),
    ("dynamic", "messages"),
]


def play(run, flavour, way, operations, timeout):
    """Play with a new seed, which is printed where it fails."""
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}, {operations} operations, {flavour}, {way}")
    print(run(RANKS, PROGRAMS / "model.py", seed, operations, flavour, env=WAYS[way], timeout=timeout).stdout)


@pytest.mark.parametrize(("flavour", "way"), CASES)
def test_random_operations(ranks, flavour, way):
    play(ranks, flavour, way, 1000, 60)


@pytest.mark.stress
@pytest.mark.parametrize(("flavour", "way"), CASES)
def test_many_random_operations(mpirun, flavour, way):
    play(mpirun, flavour, way, 100_000, 900)
