"""Threads that do to requests and lists what they should not: an error at most, never a crash or other memory.

make test has them do it for a second, `make threads` for HOSTILE_SECONDS, with Python's checks of its memory.
"""

import os

import pytest

pytestmark = pytest.mark.exhaustive

SECONDS = os.environ.get("HOSTILE_SECONDS", "1.0")

PRELUDE = """
    import contextlib, random, signal, sys, threading, time
    import numpy as np
    from rankside import *

    sys.setswitchinterval(1e-5)
    SECONDS = float(sys.argv[1])
    errors = []

    def together(*functions):
        # until the time is over; what MPI refuses is expected
        end = time.monotonic() + SECONDS
        def run(function, seed):
            chance = random.Random(seed)
            while time.monotonic() < end and not errors:
                try:
                    function(chance)
                except MPI.Exception:
                    pass
                except BaseException as e:
                    errors.append(e)
                    raise
        threads = [threading.Thread(target=run, args=(f, k)) for k, f in enumerate(functions)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not errors, errors
"""

# A list of receives from this process itself, which another thread changes while it is waited for.
CALLS = {
    "Waitall": "MPI.Request.Waitall(requests)",
    "Waitall, statuses": "MPI.Request.Waitall(requests, [])",
    "waitall": "MPI.Request.waitall(requests)",
    "Waitany": "MPI.Request.Waitany(requests)",
    "waitany": "MPI.Request.waitany(requests)",
    "Waitsome": "MPI.Request.Waitsome(requests)",
    "waitsome": "MPI.Request.waitsome(requests)",
    "Testall": "MPI.Request.Testall(requests)",
    "Testany": "MPI.Request.Testany(requests)",
    "Testsome": "MPI.Request.Testsome(requests)",
    "Get_status_all": "MPI.Request.Get_status_all(requests)",
    "Get_status_any": "MPI.Request.Get_status_any(requests)",
    "Get_status_some": "MPI.Request.Get_status_some(requests)",
}


@pytest.mark.parametrize("call", CALLS)
def test_list_that_changes(mpirun, call):
    """The call is about what was in the list when it began."""
    mpirun(
        1,
        PRELUDE
        + f"""
    import json
    from gormapy._ext import core
    for k in range(20):
        arrays = [np.zeros(1, "i8") for _ in range(4)]
        mine = [world.Irecv(a, 0, tag) for tag, a in enumerate(arrays)]
        requests = list(mine)
        testing = "{call}".startswith(("Test", "Get_status"))

        def change():
            while not testing and not json.loads(core.Waits())["waits"]:
                time.sleep(0.0001)
            time.sleep(0.002)
            requests.clear()
            requests.extend([1, "two", None, object()] * 50)
            for tag in range(4):
                world.Send(np.full(1, tag + 1), 0, tag)

        thread = threading.Thread(target=change)
        thread.start()
        if testing:
            with contextlib.suppress(TypeError):  # by the call that began after the change
                for _ in range(5000):
                    {CALLS[call]}
        else:
            {CALLS[call]}
        thread.join()
        MPI.Request.Waitall([r for r in mine if r])
        assert [a[0] for a in arrays] == [1, 2, 3, 4], arrays
        """,
        "0",
    )


@pytest.mark.parametrize("call", [call for call in CALLS if "wait" in call.lower()])
def test_list_that_a_signal_handler_changes(mpirun, call):
    mpirun(
        1,
        PRELUDE
        + f"""
    for k in range(10):
        arrays = [np.zeros(1, "i8") for _ in range(4)]
        mine = [world.Irecv(a, 0, tag) for tag, a in enumerate(arrays)]
        requests = list(mine)

        def handler(number, frame):
            requests[:] = [7] * 100
            for tag in range(4):
                world.Send(np.full(1, tag + 1), 0, tag)

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        while not arrays[3][0]:
            with contextlib.suppress(TypeError):  # the signal came before the call
                {CALLS[call]}
            requests = [r for r in mine if r] or list(mine)
        MPI.Request.Waitall([r for r in mine if r])
        assert [a[0] for a in arrays] == [1, 2, 3, 4], arrays
        """,
        "0",
    )


@pytest.mark.parametrize("call", [*CALLS.values(), "MPI.Prequest.Startall(requests)"])
def test_what_is_no_request(mpirun, call):
    """It is a TypeError, and nothing has been completed."""
    mpirun.alone(
        f"""
        import numpy as np
        from gormapy import MPI
        array = np.zeros(1)
        request = MPI.COMM_SELF.Irecv(array, 0)
        for requests in [1], [None], ["x", request], [request, object()], (request, 3.5), 7, None, request:
            try:
                {call}
            except TypeError as e:
                assert "expecting" in str(e), e
            else:
                raise AssertionError(f"nothing was said of {{requests}}")
        MPI.COMM_SELF.Send(np.ones(1), 0)
        request.Wait()
        assert array[0] == 1
        """
    )


PAIRS = {
    "Wait, Wait": ("r.Wait()", "r.Wait()"),
    "Wait, Test": ("r.Wait()", "r.Test()"),
    "Wait, Free": ("r.Wait()", "r.Free()"),
    "Wait, Cancel": ("r.Wait()", "r.Cancel()"),
    "Waitall, Waitany": ("MPI.Request.Waitall([r])", "MPI.Request.Waitany([r])"),
    "Waitsome, Free": ("MPI.Request.Waitsome([r])", "r.Free()"),
    "wait, wait": ("MPI.Request.waitall([r])", "r.wait()"),
    "Free, Free": ("r.Free()", "r.Free()"),
    "copies": ("MPI.Request(r).Wait()", "MPI.Request(r).Free()"),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_threads_and_one_request(mpirun, pair):
    """One of them completes it, the other one as well or with an error; memory that comes after is not touched."""
    one, other = PAIRS[pair]
    mpirun(
        1,
        PRELUDE
        + f"""
    from gormapy._ext import fast
    current = [world.Irecv(np.zeros(1), MPI.PROC_NULL)]

    def one(chance):
        r = current[0]
        {one}

    def other(chance):
        r = current[0]
        {other}

    def sender(chance):
        n = chance.choice([1, 100, 5000, 100_000])
        array = np.zeros(n, "i8")
        current[0] = world.Irecv(array, 0, 5) if chance.random() < 0.7 else world.Isend(array, 0, 6)
        del array
        time.sleep(chance.choice([0, 0, 0.0001]))
        if chance.random() < 0.9:
            world.Isend(np.full(n, 9), 0, 5).Free()
            world.Irecv(np.zeros(n, "i8"), 0, 6).Free()
        witness = np.full(n, 3, "i8")
        time.sleep(chance.choice([0, 0, 0.0001]))
        assert (witness == 3).all()

    def feeder(chance):
        # whatever waits gets on
        world.Send(np.zeros(1, "i8"), 0, 5) if world.Iprobe(0, 6) is None else None
        r = world.Isend(np.zeros(1, "i8"), 0, 5)
        r.Free()
        world.Irecv(np.zeros(100_000, "i8"), 0, 6).Free()
        time.sleep(0.0005)

    together(one, other, one, other, sender, feeder)
        """,
        SECONDS,
        timeout=float(SECONDS) + 20,
    )


def test_persistent_requests_in_several_threads(mpirun):
    """Start, Wait and Free of the same persistent request at the same time."""
    mpirun(
        1,
        PRELUDE
        + """
    array = np.zeros(1000, "i8")
    current = [world.Recv_init(array, 0, 5), world.Send_init(np.ones(1000, "i8"), 0, 5)]

    def start(chance):
        chance.choice(current).Start()

    def startall(chance):
        MPI.Prequest.Startall(current)

    def wait(chance):
        r = chance.choice(current)
        for _ in range(100):
            if r.Test():
                break

    def feed(chance):
        world.Isend(np.ones(1000, "i8"), 0, 5).Free()
        time.sleep(0.0003)

    def renew(chance):
        time.sleep(0.01)
        old = current[0]
        current[0] = world.Recv_init(np.zeros(1000, "i8"), 0, 5)
        old.Free()

    together(start, startall, wait, wait, feed, renew)
        """,
        SECONDS,
        timeout=float(SECONDS) + 20,
    )


def test_windows_that_are_freed_meanwhile(mpirun):
    """Put, Get, atomics and Free of a window by several threads of one process."""
    mpirun(
        1,
        PRELUDE
        + """
    def make():
        win = MPI.Win.Allocate(1 << 16, 8, comm=MPI.COMM_SELF)
        win.Lock_all()
        return win

    current = [make()]
    one, big = np.ones(1, "i8"), np.ones(1 << 13, "i8")

    def put(chance):
        current[0].Put(chance.choice([one, big]), 0)

    def get(chance):
        got = np.zeros(chance.choice([1, 1 << 13]), "i8")
        current[0].Get(got, 0)

    def add(chance):
        current[0].Fetch_and_op(one, np.zeros(1, "i8"), 0)
        current[0].Flush(0)

    def renew(chance):
        time.sleep(0.002)
        old, current[0] = current[0], make()
        old.Unlock_all()
        old.Free()

    together(put, get, add, put, renew)
        """,
        SECONDS,
        timeout=float(SECONDS) + 20,
    )


def test_lists_that_their_items_change(mpirun):
    """Python code of an item runs while the list is read, and empties it."""
    mpirun.alone(
        """
        import contextlib
        import numpy as np
        from gormapy import MPI
        world = MPI.COMM_SELF
        win = MPI.Win.Allocate(1 << 12, 1, comm=world)
        win.Lock_all()
        junk = []

        def change():
            items.clear()
            junk.append([[k] * 3 for k in range(50)])

        class Integer:
            def __index__(self):
                change()
                return 0

        class Window(MPI.Win):
            def tomemory(self):
                memory = super().tomemory()
                change()
                return memory

        window, array = Window(win), np.zeros(8, "u1")
        for k in range(100):
            for items in [Integer(), 8, MPI.BYTE.Dup().Commit()], [0, Integer(), MPI.BYTE.Dup().Commit()]:
                with contextlib.suppress(IndexError, TypeError, ValueError, MPI.Exception):
                    win.Put(array, 0, items)
            items = [window, 8, MPI.BYTE.Dup().Commit()]
            with contextlib.suppress(IndexError, TypeError, ValueError, MPI.Exception):
                world.Isend(items, MPI.PROC_NULL).Wait()
            for items in [Integer()] + [1] * k, [1] * k + [Integer()]:
                with contextlib.suppress(IndexError, TypeError, ValueError, MPI.Exception):
                    world.Alltoallv([array, items, [0], MPI.BYTE], [np.zeros(8, "u1"), [0], [0], MPI.BYTE])
        """
    )
