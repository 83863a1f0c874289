"""Locks of global slots.

A lock is a word at the slot's owner: 0 while it is free, -(rank + 1) while a rank holds it. It is acquired by
compare-and-swap and released by the same, so that only the holder can release it. A rank that finds it taken adds one
to a second word and waits; the holder that releases it wakes all ranks if the second word is not 0. The order (the
holder changes the word, then reads the second one; the waiter does it the other way round) ensures that no wake-up is
lost. A waiter that dies leaves the second word too high, which only costs a check of each rank's doorbell. Waiters
detect that a holder has died: one of them frees the lock, and reports it by HolderDied.
"""

from gormapy._ext import core

from .errors import HolderDied, SlotError
from .wait import Deadline, Naps

_LOOK = 0.05  # seconds after which a waiter checks whether the holder still lives


class Lock:
    """The lock of one global slot as this process sees it."""

    def __init__(self, space, word, waiters, name):
        self._space, self._word, self._waiters, self._name = space, word, waiters, name
        self._mine = -(space.rank + 1)

    def try_acquire(self):
        """Acquire the lock if it is free, and return whether it was acquired."""
        return self._word.swap(0, self._mine) == 0

    def acquire(self, timeout=None):
        """Acquire the lock; TimeoutError, SlotError or HolderDied if that can't be."""
        if self._word.load() == self._mine:
            raise SlotError(f"the lock of {self._name} is held by this rank already: release it first")
        try:
            self._acquire(timeout)
        except BaseException:  # KeyboardInterrupt may come when it has just been acquired
            if self._word.swap(self._mine, 0) == self._mine:
                self.wake()
            raise

    def _acquire(self, timeout):
        holder = self._word.swap(0, self._mine)
        if holder == 0:
            return
        deadline, naps = Deadline(timeout), Naps()
        self._waiters.add(1)
        try:
            while holder != 0:
                how = core.WinGone(self._space._win._h, -holder - 1)
                if how and self._word.swap(holder, 0) == holder:
                    self.wake()  # the caller may not want it any more, but other waiters do
                    raise HolderDied(
                        f"the lock of {self._name} was held by a rank that is gone ({how}); it is free again: see "
                        "that what it protects is whole, then acquire it"
                    )
                if deadline.over():
                    raise TimeoutError(
                        f"the lock of {self._name} was not to be had in time: rank {-holder - 1} holds it"
                    )
                self._wait(deadline.left(), naps)
                holder = self._word.swap(0, self._mine)
        finally:
            self._waiters.add(-1)

    def _wait(self, left, naps):
        if self._space.mapped:
            self._word.wait(0, _LOOK if left is None else min(left, _LOOK), ())
        else:
            self._space._nap(naps.length(left))

    def release(self):
        """Release the lock; SlotError if this rank does not hold it."""
        holder = self._word.swap(self._mine, 0)
        if holder != self._mine:
            who = "nobody holds it" if holder == 0 else f"rank {-holder - 1} holds it"
            raise SlotError(f"the lock of {self._name} can't be released by rank {self._space.rank}: {who}")
        self.wake()

    def wake(self):
        """Wake those who wait for the lock, after it was released."""
        if self._waiters.load():
            self._word.wake()
