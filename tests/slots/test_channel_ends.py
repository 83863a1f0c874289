"""Channels whose other end dies, or is slow, and waits that the user ends."""

import sys

import pytest

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
        SETUP
        + """
    if rank == 0:
        end.push(b"token  0", None)
        end.push(b"token  1", None)
        with interrupted():
            end.push(b"lost....", None)
        raise_flag("full")
        end.push(b"token  2", 20)
        await_flag("empty")
        end.push(b"token  3", None)
    else:
        await_flag("full")
        assert [end.pop(20) for _ in range(3)] == [b"token  0", b"token  1", b"token  2"]
        with interrupted():
            end.pop(None)
        raise_flag("empty")
        assert end.pop(20) == b"token  3" and end.is_empty
    space.close()
        """,
        kind,
    )


@pytest.mark.parametrize("kind, env", [*((kind, None) for kind in KINDS), ("spsc", TCP), ("locking", TCP)])
@pytest.mark.parametrize("victim", [0, 1])
def test_killed(mpirun, kind, victim, env):
    result = mpirun(
        3,
        SETUP
        + """
    victim = int(sys.argv[2])
    if rank == 0:
        end.push(b"token  0")
        end.push(b"token  1")
    space.fence("c")
    if rank == victim:
        await_flag("waits")
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 2:
        sys.exit()
    if rank == 1:  # what was pushed before the death is there
        assert [end.pop() for _ in range(2)] == [b"token  0", b"token  1"]
    raise_flag("waits")
    begun = time.monotonic()
    try:
        end.push(b"token  2", None) if rank == 0 else end.pop(None)
    except (MPI.Exception, slots.SlotError) as error:
        assert f"rank {victim}" in str(error), error
        assert not isinstance(error, (slots.Full, slots.Empty)), error
        assert time.monotonic() - begun < 8
        print("told", flush=True)
        """,
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
        """
    import os, random, signal, time
    from gormapy import slots
    from rankside import *

    space = slots.Space(world)
    end = slots.mpsc(space, "c", None, 0, 3, payload=64)
    space.fence("c")
    if rank == 0:
        seen, over = {r: 0 for r in range(1, size)}, time.monotonic() + 20
        while seen[1] < 2000:
            source, number = map(int, end.pop(timeout=20).split())
            assert number == seen[source], (source, number, seen)
            seen[source] += 1
            assert time.monotonic() < over
        print("whole", flush=True)
    else:
        if rank > 1:
            signal_after(random.uniform(0.0, 0.3), "KILL")
        for i in range(2000 if rank == 1 else 10**9):
            end.push(b"%d %d" % (rank, i), None)
        """,
        python=UNNOTICED,
        timeout=60,
    )
    assert result.lines == ["whole"], str(result)


def test_other_threads_run_while_one_waits(mpirun):
    mpirun(
        2,
        SETUP
        + """
    if rank == 1:
        got = []
        thread = threading.Thread(target=lambda: got.append(end.pop(timeout=20)))
        thread.start()
        time.sleep(0.2)
        assert thread.is_alive()
        raise_flag("waits")
        thread.join(20)
        assert got == [b"12345678"]
    else:
        await_flag("waits")
        end.push(b"12345678")
    space.close()
        """,
        "spsc",
    )


def test_waits_say_what_they_are(mpirun):
    result = mpirun(2, SETUP + "\n    if rank: end.pop(None)\n    else: time.sleep(60)", "spsc", timeout=3, expect=124)
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
