"""KeyboardInterrupt at one bytecode boundary after the other: for programs that tests run on two ranks.

Rank 0 makes a call that is written in Python, and is interrupted in it; then all that it used is dropped, and arrays
lie where it was. Rank 1 makes the call's counterpart, until it is done or rank 0 says that there will be no more. After
the collective reset the next boundary is tried. What rank 1 has got must be what rank 0 sent.
"""

import dis
import gc
import mmap
import os
import signal
import sys
import time
import weakref

import numpy as np
from rankside import rank, reset, world

import gormapy
from gormapy import MPI
from gormapy._ext import fast

PACKAGE = os.path.dirname(gormapy.__file__)


class Over(BaseException):
    """The other rank will do nothing more."""


class Mapped(np.ndarray):
    """An array that is a mapping of its own: it is unmapped at once, and the next one gets its address."""


def mapped(value, count):
    """Return an array of so many integers that are all value."""
    array = np.frombuffer(mmap.mmap(-1, 8 * count), "i8").view(Mapped)
    array[:] = value
    return array


# Before these the interpreter never looks at signals, and an exception there would leave it with one that it handles.
BETWEEN = {"POP_EXCEPT", "PUSH_EXC_INFO", "RERAISE", "COPY"}


def ignored(frame):
    """Tell whether an exception ends in a destructor, where Python only prints it."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


class Interrupt:
    """Interrupts a call at the boundary with a number, from 1."""

    def __init__(self, at):
        self.at, self.seen, self.raised = at, 0, False

    def _enter(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, arg):
        if event == "opcode":
            self.seen += 1
            if 0 < self.at <= self.seen and not self.raised and not self._spared(frame):
                self.raised = True
                raise KeyboardInterrupt
        return self._step

    def _spared(self, frame):
        return dis.opname[frame.f_code.co_code[frame.f_lasti]] in BETWEEN or ignored(frame)

    def call(self, function, *args):
        """Call a function; report whether it came to its end."""
        sys.settrace(self._enter)
        try:
            function(*args)
        except KeyboardInterrupt:
            return False
        finally:
            sys.settrace(None)
        assert not self.raised, f"KeyboardInterrupt at boundary {self.at} was swallowed"
        return True


def boundaries(function, *args):
    """Return how many boundaries a call has that nobody interrupts."""
    interrupt = Interrupt(0)
    assert interrupt.call(function, *args)
    return interrupt.seen


def until(condition, seconds=10.0):
    """Wait for something, without MPI."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
    return True


class Trials:
    """All trials of a call: first(array, value) on rank 0, second(array, value) on rank 1."""

    DONE, GRACE = 1, 0.002

    def __init__(self, first, second, count):
        self.first, self.second, self.count = first, second, count
        self.window = MPI.Win.Allocate_shared(64 if rank == 0 else 0, 8, comm=world)
        self.flag = np.frombuffer(self.window.Shared_query(0)[0], "i8")
        self.waiting = False
        self.peer = world.allgather(os.getpid())[1 - rank]
        signal.signal(signal.SIGUSR1, self._over)

    def _over(self, number, frame):
        if self.waiting:
            self.waiting = False
            raise Over

    def run(self, most):
        """Try at most so many boundaries, spread over all of them; return their number and how many there are."""
        tried = total = 0
        plan = [0]
        while True:
            at = world.bcast(plan.pop(0) if plan else -1)
            if at < 0:
                return tried, total
            value = at + 1
            self.flag[0] = 0
            world.Barrier()
            if rank == 0:
                seen = self._first(at, value)
                if at == 0:
                    total = seen
                    plan = sorted({1 + k * total // min(most, total) for k in range(min(most, total))})
                else:
                    tried += 1
            else:
                self._second(value)

    def _first(self, at, value):
        array = mapped(value, self.count)
        alive = weakref.ref(array)
        interrupt = Interrupt(at)
        interrupt.call(self.first, array, value)
        del array
        witnesses = [mapped(-7, self.count) for _ in range(4)]
        if not until(lambda: self.flag[0] == self.DONE, self.GRACE):
            while not until(lambda: self.flag[0] == self.DONE, 0.05):
                os.kill(self.peer, signal.SIGUSR1)
        reset()
        gc.collect()
        assert until(lambda: fast.kept() == 0), f"boundary {at}: memory is kept for good"
        assert alive() is None, f"boundary {at}: the array was not released: {gc.get_referrers(alive())}"
        assert all((w == -7).all() for w in witnesses), f"boundary {at}: other memory was written to"
        self._usable()
        return interrupt.seen

    def _second(self, value):
        array = mapped(value, self.count)
        try:
            self.waiting = True
            try:
                self.second(array, value)
            finally:
                self.waiting = False
        except (Over, MPI.Exception):
            pass
        del array
        self.flag[0] = self.DONE
        reset()
        gc.collect()
        self._usable()

    def _usable(self):
        me = MPI.COMM_SELF
        got = np.zeros(1)
        request = me.Irecv(got, 0)
        me.Send(np.ones(1), 0)
        request.Wait()
        assert got[0] == 1 and world.allreduce(1) == 2
