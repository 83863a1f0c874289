"""Channels whose other end dies, or is slow, and waits that the user ends."""

import sys

import pytest
from support.programs import beside

pytestmark = pytest.mark.slow

setup = beside(__file__, "setup")
program = beside(__file__)


# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)
TCP = {"GORMAPY_FABRIC": "tcp"}
KINDS = ["spsc", "variable", "locking", "nonlocking"]

SETUP = """
    import os, signal, sys, threading, time
    import numpy as np
    from gormapy import slots
    from rankside import *

    space = slots.Space(world)
    kind = sys.argv[1]
    what = dict(payload=16) if kind == "variable" else dict(nbytes=8)
    if kind in ("spsc", "variable"):
        end = slots.spsc(space, "c", 0, 1, 2, **what)
    else:
        end = slots.mpsc(space, "c", [0], 1, 2, locking=kind == "locking", **what)
    if end is not None:
        role = "push" if rank == 0 else "pop"
"""


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted(mpirun, kind):
    mpirun(
        2,
        setup.interrupted_call,
        kind,
    )


@pytest.mark.parametrize("kind, env", [*((kind, None) for kind in KINDS), ("spsc", TCP), ("locking", TCP)])
@pytest.mark.parametrize("victim", [0, 1])
def test_killed(mpirun, kind, victim, env):
    result = mpirun(
        3,
        setup.killed,
        kind,
        victim,
        python=UNNOTICED,
        env=env,
    )
    assert result.lines == ["told"], str(result)


def test_a_consumer_goes_on_while_one_producer_lives(mpirun):
    for locking in (True, False):
        result = mpirun(
            4,
            f"""
        import os, signal, time
        from gormapy import slots
        from rankside import *

        space = slots.Space(world)
        end = slots.mpsc(space, "c", None, 0, 2, locking={locking}, dtype="i4")
        if rank == 0:
            got = []
            try:
                for value in end:
                    got.append(int(value))
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
                print("told", sorted(set(got)), len([v for v in got if v == 3]), flush=True)
        else:
            for i in range(200 if rank == 3 else 10):
                end.push(rank, None)
            if rank != 2:  # one dies without closing
                end.close()
            else:
                os.kill(os.getpid(), signal.SIGKILL)
            """,
            python=UNNOTICED,
        )
        assert result.lines == ["told [1, 2, 3] 200"], str(result)


def test_producers_that_die_with_the_lock(mpirun):
    """Producers are killed at any moment; what comes of each is an unbroken beginning, and nobody is stuck."""
    result = mpirun(
        5,
        program.producers_that_die_with_the_lock,
        python=UNNOTICED,
        timeout=60,
    )
    assert result.lines == ["whole"], str(result)


def test_other_threads_run_while_one_waits(mpirun):
    mpirun(
        2,
        setup.other_threads_run_while_one_waits,
        "spsc",
    )


def test_waits_say_what_they_are(mpirun):
    result = mpirun(2, setup.waits_say_what_they_are, "spsc", timeout=3, expect=124)
    assert "in slots on pop: channel is empty, waiting for rank 0" in result.stderr, str(result)


@pytest.mark.parametrize("kind", KINDS)
def test_interrupts_at_any_moment(mpirun, kind):
    """A push that an interrupt ends has pushed its token or has not; no token is lost, and no lock is kept."""
    mpirun(
        3,
        SETUP
        + """
    armed = False

    def handler(number, frame):
        global armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    if rank == 0:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
        number, interrupts, until = 0, 0, time.monotonic() + 1
        while time.monotonic() < until or interrupts == 0:
            try:
                armed = True
                end.push(b"%08d" % number, None)
                number += 1
                armed = False
            except KeyboardInterrupt:
                interrupts += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        end.push(b"last....", timeout=20)
        world.send((number, interrupts), dest=1)
    elif rank == 1:
        last = again = 0
        while (token := end.pop(timeout=20)) != b"last....":
            again += int(token) == last  # the program pushes once more what it does not know to be pushed
            assert last <= int(token) <= last + 1, (last, token)
            last = int(token)
        number, interrupts = world.recv(source=0)
        assert last in (number - 1, number) and again <= interrupts + 1, (last, number, again, interrupts)
    space.close()
        """,
        kind,
    )
