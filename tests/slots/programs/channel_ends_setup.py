"""The programs of test_channel_ends.py."""

import os
import signal
import sys
import threading
import time

from rankside import await_flag, interrupted, raise_flag, rank, world

from gormapy import MPI, slots

space = slots.Space(world)
kind = sys.argv[1]
what = {"payload": 16} if kind == "variable" else {"nbytes": 8}
if kind in ("spsc", "variable"):
    end = slots.spsc(space, "c", 0, 1, 2, **what)
else:
    end = slots.mpsc(space, "c", [0], 1, 2, locking=kind == "locking", **what)
if end is not None:
    role = "push" if rank == 0 else "pop"


def interrupted_call(_kind):
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


def killed(_kind, victim):
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
        assert time.monotonic() - begun < 25
        print("told", flush=True)


def other_threads_run_while_one_waits(_kind):
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


def waits_say_what_they_are(_kind):
    if rank:
        end.pop(None)
    else:
        time.sleep(60)


def interrupts_at_any_moment(_kind):
    global armed
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
