"""The errors by which what ranks do ends; IPython shows them without the kernel's own stack."""


class _Short:
    """An error whose traceback would only show this package."""

    def _render_traceback_(self, *args, **kwargs):
        return [f"{type(self).__name__}: {self}"]


class RanksError(_Short, RuntimeError):
    """What ranks did failed."""


class Deadlock(RanksError):
    """All ranks waited, and none of them could go on."""


class TimeOut(RanksError):
    """Ranks took longer than they were allowed to."""


class RankDied(RanksError):
    """The process of a rank ended."""


class StartError(RanksError):
    """The ranks could not be started."""


class Interrupted(_Short, KeyboardInterrupt):
    """The user interrupted what ranks did."""


def ranks_text(ranks):
    """Return "rank 2", "ranks 0-3" or "ranks 0, 2, 5-7"."""
    ranks = sorted(ranks)
    return ("rank " if len(ranks) == 1 else "ranks ") + ranges(ranks)


def ranges(ranks):
    """Return sorted numbers as "0-3, 5"."""
    parts = []
    for r in ranks:
        if parts and r == parts[-1][1] + 1:
            parts[-1][1] = r
        else:
            parts.append([r, r])
    return ", ".join(str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in parts)
