"""Operations leave nothing behind in the process: no memory, descriptor, mapping or thread."""

import os

import pytest
from support.mpirun import COLLECT_OFTEN
from support.programs import beside

program, measured = beside(__file__), beside(__file__, "measured")

pytestmark = pytest.mark.exhaustive

MIB = 1 << 20

# make leaks makes everything a million times, and spawns a thousand times.
WHOLE = os.environ.get("LEAKS") == "whole"


def measure(mpirun, kind, ranks, times):
    whole, limit = (1_000 if kind == "spawn" else 1_000_000), 3_000
    times = whole if WHOLE else times
    mpirun(ranks, measured.measure, kind, times, 8 * MIB, timeout=limit if WHOLE else 600, env=COLLECT_OFTEN)


# ranks, times
HOT = {
    "put-flush": (2, 100_000),
    "get-flush": (2, 100_000),
    "accumulate": (2, 100_000),
    "fetch-and-op": (2, 100_000),
    "self-messages": (1, 100_000),
    "pair-messages": (2, 100_000),
    "nonblocking": (2, 100_000),
    "sendrecv": (2, 50_000),
    "barrier": (2, 100_000),
    "allreduce": (2, 50_000),
    "bcast": (2, 50_000),
    "test-on-null": (1, 100_000),
    "pickled": (2, 20_000),
    "pickled-allreduce": (2, 10_000),
    "iprobe": (1, 50_000),
    "rendezvous": (2, 500),
}


@pytest.mark.parametrize("kind", HOT)
def test_hot_operation(mpirun, kind):
    ranks, times = HOT[kind]
    measure(mpirun, kind, ranks, times)


MADE = {
    "dup": (2, 200),
    "split": (2, 200),
    "allocate": (2, 200),
    "create": (2, 200),
    "create-shared": (2, 200),
    "group": (1, 20_000),
    "datatype": (1, 20_000),
    "persistent": (1, 20_000),
    "errors": (1, 50_000),
    "alloc-mem": (1, 500),
    "intercomm": (2, 200),
    "spawn": (1, 5),
}


@pytest.mark.parametrize("kind", MADE)
def test_made_and_freed(mpirun, kind):
    ranks, times = MADE[kind]
    measure(mpirun, kind, ranks, times)


def test_buffer_is_let_go(ranks):
    ranks(2, program.buffer_is_let_go)


def test_window_that_is_never_freed_holds_its_memory(ranks):
    ranks(2, program.window_that_is_never_freed_holds_its_memory)
