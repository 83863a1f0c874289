"""Functions that all pictures use."""

import math

try:
    from matplotlib.figure import Figure
except ImportError as problem:
    raise ImportError(f"pictures need matplotlib ({problem}): pip install 'gormapy[plot]'") from None

WIDTH = 9.5  # inches: a notebook shows this width without scaling

# Distinguishable also with colour vision deficiency.
COLOURS = {
    "message": "#0072b2",
    "collective": "#d55e00",
    "one-sided": "#009e73",
    "epoch": "#cc79a7",
    "wait": "#56b4e9",
    "object": "#999999",
    "file": "#e69f00",
    "other": "#666666",
}
RANKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")


class Picture(Figure):
    """A figure that notebooks show with and without %matplotlib."""

    def _repr_png_(self):
        import io

        out = io.BytesIO()
        self.savefig(out, format="png", dpi=100)
        return out.getvalue()


def new(height):
    """Return an empty figure of a size in inches."""
    return Picture(figsize=(WIDTH, height), layout="constrained")


def scale_of(seconds):
    """Return the factor for seconds, and the unit's name, for times up to a longest one."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return factor, unit
    return 1.0, "s"


def size(n):
    """Return a number of bytes as text."""
    if n < 10_000:
        return f"{n:.0f} B"
    power = min(int(math.log(n, 1024)), 4)
    return f"{n / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def nothing(axes, text):
    """Write into a picture that there is nothing to show."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def rank_axis(axes, ranks):
    """Label the y axis with ranks, the first at the top."""
    step = max(1, math.ceil(len(ranks) / 32))
    axes.set_yticks(range(0, len(ranks), step), [f"rank {rank}" for rank in ranks[::step]])
    axes.set_ylim(len(ranks) - 0.4, -0.6)


def lanes(ranks):
    """Return the height of a picture with a lane for each rank."""
    return min(1.3 + 0.55 * ranks, 14)
