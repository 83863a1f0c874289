"""How long each rank waited in which calls."""

import numpy as np

from .figure import lanes, new, nothing, rank_axis, scale_of

_CALLS = 8
_SHADES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#bcbd22")


def waits(trace, most=_CALLS):
    """Draw how long each rank waited, by call, and how much of the time that was.

    The `most` calls that waited longest have bars of their own, the others share one. Return a matplotlib Figure.
    """
    figure = new(lanes(trace.ranks))
    axes = figure.add_subplot()
    calls = trace.calls[trace.calls["wait"] > 0]
    if not len(calls):
        nothing(axes, "no rank waited")
        return figure
    names, which = np.unique(calls["name"], return_inverse=True)
    table = np.zeros((len(names), trace.ranks))
    np.add.at(table, (which, calls["rank"]), calls["wait"])
    order = np.argsort(-table.sum(axis=1), kind="stable")
    bars = [(str(names[i]), table[i], _SHADES[k % len(_SHADES)]) for k, i in enumerate(order[:most])]
    if len(order) > most:
        bars.append((f"{len(order) - most} others", table[order[most:]].sum(axis=0), "#cccccc"))
    total = table.sum(axis=0)
    factor, unit = scale_of(total.max())
    left = np.zeros(trace.ranks)
    for name, values, colour in bars:
        axes.barh(range(trace.ranks), values * factor, left=left * factor, height=0.64, color=colour, label=name)
        left += values
    for rank, seconds in enumerate(total):
        share = seconds / trace.duration if trace.duration else 0
        axes.text(seconds * factor, rank, f" {share:.0%}", va="center", fontsize=8)
    rank_axis(axes, list(range(trace.ranks)))
    axes.set_xlim(0, total.max() * factor * 1.08)
    axes.set_xlabel(f"waiting, in {unit} (and as a part of the {trace.duration:.3g} s)")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=min(len(bars), 5), fontsize=8, frameon=False)
    return figure
