"""The amount of data that each rank sent to each other."""

import numpy as np

from .figure import WIDTH, Picture, size

_FETCHES = ("Win.Get", "Win.Rget")
_BOTH = ("Win.Get_accumulate", "Win.Rget_accumulate", "Win.Fetch_and_op", "Win.Compare_and_swap")
_NUMBERS = 16  # up to this number of ranks, cells have their number


def transfers(trace, what="all"):
    """Return two arrays, indexed by source and destination of data: the numbers of transfers, and their bytes.

    `what` is "messages", "one-sided" or "all". Data of a Get goes from the target; an operation that fetches and
    changes (Fetch_and_op) moves its bytes both ways.

    Errors: ValueError for another `what`.
    """
    if what not in ("all", "messages", "one-sided"):
        raise ValueError(f"what is {what!r}: it is 'messages', 'one-sided' or 'all'")
    counts = np.zeros((trace.ranks, trace.ranks), int)
    moved = np.zeros((trace.ranks, trace.ranks), int)

    def add(source, dest, nbytes):
        np.add.at(counts, (source, dest), 1)
        np.add.at(moved, (source, dest), nbytes)

    if what != "one-sided":
        sent = trace.messages[~np.isnan(trace.messages["sent"])]
        add(sent["source"], sent["dest"], sent["bytes"])
    if what != "messages":
        for operations, fetched, changed in _kinds(trace.operations):
            if changed:
                add(operations["rank"], operations["target"], operations["bytes"])
            if fetched:
                add(operations["target"], operations["rank"], operations["bytes"])
    return counts, moved


def _kinds(operations):
    fetches, both = np.isin(operations["name"], _FETCHES), np.isin(operations["name"], _BOTH)
    yield operations[fetches], True, False
    yield operations[both], True, True
    yield operations[~fetches & ~both], False, True


def matrix(trace, what="all"):
    """Draw how many messages and one-sided transfers went from each rank to each other, and their bytes.

    what: "messages", "one-sided" or "all". Collective operations are not in it. Return a matplotlib Figure.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    counts, moved = transfers(trace, what)
    figure = Picture(figsize=(WIDTH, 4.6), layout="constrained")
    for axes, values, title in zip(figure.subplots(1, 2), (counts, moved), ("transfers", "bytes")):
        image = axes.imshow(np.ma.masked_equal(values, 0), cmap="YlGnBu", vmin=0, vmax=max(1, values.max()))
        axes.set_facecolor("#f4f4f4")
        axes.set_xlabel("to rank")
        axes.set_ylabel("from rank")
        total = f"{int(values.sum())}" if title == "transfers" else size(values.sum())
        axes.set_title(f"{title} ({what}): {total}", fontsize=10)
        if trace.ranks <= _NUMBERS:
            axes.set_xticks(range(trace.ranks))
            axes.set_yticks(range(trace.ranks))
            for (y, x), value in np.ndenumerate(values):
                if value:
                    text = f"{value}" if title == "transfers" else size(value)
                    colour = "white" if value > 0.6 * values.max() else "black"
                    axes.text(x, y, text, ha="center", va="center", color=colour, fontsize=9 if trace.ranks < 9 else 6)
        else:  # only the colour shows it
            bar = figure.colorbar(image, ax=axes, shrink=0.8)
            bar.locator = MaxNLocator(5, integer=True)
            if title == "bytes":
                bar.formatter = FuncFormatter(lambda value, position: size(value))
            bar.update_ticks()
    return figure
