"""The load of the machine by others during a comparison, which says little on a busy machine."""

import os
import resource


class Load:
    """The processor time that others use from now on."""

    def __init__(self):
        self.begin = self._now()

    @staticmethod
    def _now():
        """Return seconds that all cores were there for, that they were idle, and that this process's children used.

        Nothing is returned where the kernel does not say. In a container this counts the whole machine.
        """
        try:
            with open("/proc/stat") as file:
                ticks = [int(field) for field in file.readline().split()[1:9]]
        except (OSError, ValueError):
            return None
        second = os.sysconf("SC_CLK_TCK")
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(usage.ru_utime + usage.ru_stime for usage in used)
        return sum(ticks) / second, (ticks[3] + ticks[4]) / second, own

    def others(self):
        """Return the part of the machine's processor time that others used since the begin, or None."""
        now = self._now()
        if self.begin is None or now is None or now[0] <= self.begin[0]:
            return None
        total, idle, own = (after - before for before, after in zip(self.begin, now))
        return max(0.0, (total - idle - own) / total)
