"""Waits for words of other ranks, and for conditions that no word shows."""

import time


class Deadline:
    """The end of a time-out in seconds; None is never."""

    def __init__(self, timeout):
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self):
        """Return the seconds that are left, at least 0; None without a time-out."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def over(self):
        """Return whether the time is over."""
        return self._end is not None and time.monotonic() >= self._end


class Naps:
    """Sleeps that become longer, from nothing to some milliseconds."""

    def __init__(self, longest=2e-3):
        self._longest = longest
        self._next = 0.0

    def length(self, left=None):
        """Return how long to sleep now, not longer than what is left."""
        now = self._next
        self._next = min(self._longest, max(2e-5, 1.5 * now))
        return now if left is None else min(now, left)


def look_until(look, timeout):
    """Call a function until it returns something or the time is over, and return its result, None if there is none."""
    deadline, naps = Deadline(timeout), Naps()
    while (found := look()) is None:
        left = deadline.left()
        if left == 0:
            return look()
        time.sleep(naps.length(left))
    return found
