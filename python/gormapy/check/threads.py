"""What the checker is told of Python's threads: who has waited for whom."""

import _thread
import itertools
import queue
import threading

from gormapy._ext import fast

from . import kinds
from .wrapping import event

_keys = itertools.count(1)
running = set()  # threads of the program that have been started and have not ended


def release(key):
    """What this thread has done is known to threads that acquire the key later."""
    event(kinds.RELEASE, 0, None, key)


def acquire(key):
    """This thread knows what those have done that have released the key."""
    event(kinds.ACQUIRE, 0, None, key)


class Lock:
    """A lock of threading, of which the checker is told."""

    def __init__(self):
        self._lock = _thread.allocate_lock()
        self._key = next(_keys)
        self.locked = self._lock.locked
        self._at_fork_reinit = self._lock._at_fork_reinit

    def acquire(self, blocking=True, timeout=-1):
        got = self._lock.acquire(blocking, timeout)
        if got:
            acquire(self._key)
        return got

    def release(self):
        release(self._key)
        self._lock.release()

    acquire_lock, release_lock = acquire, release

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


class RLock(threading._PyRLock):  # type: ignore[name-defined]
    """A reentrant lock of threading, of which the checker is told."""

    def __init__(self):
        super().__init__()
        self._key = next(_keys)

    def acquire(self, blocking=True, timeout=-1):
        got = super().acquire(blocking, timeout)
        if got:
            acquire(self._key)
        return got

    __enter__ = acquire

    def release(self):
        release(self._key)
        super().release()

    def _release_save(self):
        release(self._key)
        return super()._release_save()

    def _acquire_restore(self, state):
        super()._acquire_restore(state)
        acquire(self._key)


def install():
    """Replace threading's locks, and the start and join of its threads."""
    threading.Lock = Lock
    threading.RLock = RLock
    queue.SimpleQueue = queue._PySimpleQueue
    start, join = threading.Thread.start, threading.Thread.join

    def starting(self):
        self._check_begin, self._check_end = next(_keys), next(_keys)
        vars(self._started)["_check_key"] = self._check_begin  # what the new thread does first is to set this event
        run_it = self.run

        def told():
            acquire(self._check_begin)
            try:
                run_it()
            finally:
                running.discard(self)
                release(self._check_end)
                event(kinds.THREAD_END, 0, None)

        self.run = told
        if not self.name.startswith("gormapy-"):
            running.add(self)
            fast.check_threads(True)
        release(self._check_begin)
        try:
            start(self)
        except BaseException:
            running.discard(self)
            raise

    def joining(self, timeout=None):
        join(self, timeout)
        if not self.is_alive() and hasattr(self, "_check_end"):
            acquire(self._check_end)

    threading.Thread.start, threading.Thread.join = starting, joining
    threading.Event.set, threading.Event.is_set = _setting(threading.Event.set), _asking(threading.Event.is_set)


def _setting(method):
    def told(self):
        key = _key_of(self)
        acquire(key)  # as its lock does: a thread that begins, which sets an event, knows only what this one knows
        release(key)
        method(self)

    return told


def _asking(method):
    def told(self):  # without the lock of the event, which `wait` has
        yes = method(self)
        if yes:
            acquire(_key_of(self))
        return yes

    return told


def _key_of(event):
    key = vars(event).get("_check_key")
    if key is None:
        key = vars(event).setdefault("_check_key", next(_keys))
    return key
