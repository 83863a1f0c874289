"""The calls of each rank over time."""

import numpy as np

from .figure import COLOURS, lanes, new, nothing, rank_axis, scale_of

_PIXELS = 1500  # calls that are closer than this part of the width are one bar
_ARROWS = 300
_LABELS = 150


def timeline(trace, begin=None, end=None, ranks=None, arrows=_ARROWS):
    """Draw a lane for each rank with its calls as bars, and messages and one-sided operations as arrows.

    Bars are coloured by the kind of call; the hatched part of a bar is the time in which it waited. begin and end
    (seconds since the recording's first event) select a part, `ranks` some of the ranks. Of more than `arrows`
    messages, or one-sided operations, some are drawn, and the title says so. Return a matplotlib Figure.
    """
    ranks = list(range(trace.ranks)) if ranks is None else list(ranks)
    begin = 0.0 if begin is None else begin
    end = trace.duration if end is None else end
    figure = new(lanes(len(ranks)))
    axes = figure.add_subplot()
    calls = trace.calls
    calls = calls[(calls["end"] >= begin) & (calls["begin"] <= end) & np.isin(calls["rank"], ranks)]
    if not len(calls):
        nothing(axes, "no calls were recorded here")
        return figure
    factor, unit = scale_of(end - begin)
    place = {rank: i for i, rank in enumerate(ranks)}
    shown = _bars(axes, calls, place, begin, end, factor)
    notes = [
        _arrows(axes, _messages(trace, ranks, begin, end), place, begin, factor, arrows, "#222222", "messages"),
        _arrows(
            axes, _operations(trace, ranks, begin, end), place, begin, factor, arrows, "#00593f", "one-sided operations"
        ),
    ]
    rank_axis(axes, ranks)
    axes.set_xlim(0, max(end - begin, 1e-9) * factor)
    axes.set_xlabel(f"time in {unit}" + (f", from {begin:.6g} s on" if begin else ""))
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    _legend(figure, shown)
    title = "; ".join(note for note in notes if note)
    if title:
        axes.set_title(title, fontsize=9)
    return figure


def _bars(axes, calls, place, begin, end, factor):
    """Draw the calls; return their categories."""
    pixel = max(end - begin, 1e-9) / _PIXELS
    labels = []
    shown = []
    for category in COLOURS:
        of = calls[calls["category"] == category]
        if not len(of):
            continue
        shown.append(category)
        for rank in np.unique(of["rank"]):
            spans = of[of["rank"] == rank]
            left, right, wait, name = _merged(spans, pixel)
            left, right = np.maximum(left, begin), np.minimum(right, end)
            width = np.maximum(right - left, pixel)
            y = place[int(rank)] - 0.32
            bars = list(zip((left - begin) * factor, width * factor))
            axes.broken_barh(bars, (y, 0.64), facecolors=COLOURS[category], linewidth=0, zorder=2)
            waiting = wait > pixel
            if waiting.any():
                parts = np.minimum(wait, width)[waiting] * factor
                axes.broken_barh(
                    list(zip((left[waiting] - begin) * factor, parts)),
                    (y, 0.64),
                    facecolors=_lighter(COLOURS[category]),
                    edgecolors=COLOURS[category],
                    linewidth=0,
                    hatch="////",
                    zorder=2.1,
                )
            labels += [(w, x, place[int(rank)], text) for w, x, text in zip(width, left, name) if text]
    smallest = (end - begin) * 0.012
    for width, left, y, text in sorted(labels, key=lambda label: -label[0])[:_LABELS]:
        if width > smallest * (len(text) * 0.75 + 1):
            x = (left - begin + width / 2) * factor
            halo = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1}
            axes.text(x, y, text, ha="center", va="center", fontsize=8, zorder=4, clip_on=True, bbox=halo)
    return shown


def _merged(calls, pixel):
    """Join calls that can't be distinguished; return where they begin and end, how long they waited, and names."""
    calls = calls[np.argsort(calls["begin"], kind="stable")]
    reach = np.maximum.accumulate(calls["end"])
    first = np.r_[True, calls["begin"][1:] - reach[:-1] > pixel]
    # long neighbours keep their own bars
    long = (calls["end"] - calls["begin"]) > 4 * pixel
    first |= long | np.r_[False, long[:-1]]
    starts = np.flatnonzero(first)
    right = np.maximum.reduceat(calls["end"], starts)
    wait = np.add.reduceat(calls["wait"], starts)
    one = np.diff(np.r_[starts, len(calls)]) == 1
    names = [_short(str(name)) if alone else "" for name, alone in zip(calls["name"][starts], one)]
    return calls["begin"][starts], right, wait, names


def _short(name):
    return name.removeprefix("Win.").removeprefix("Request.")


def _lighter(colour):
    from matplotlib.colors import to_rgb

    return tuple(1 - (1 - part) * 0.35 for part in to_rgb(colour))


def _messages(trace, ranks, begin, end):
    """Return (from rank, to rank, sent, received) of the messages that both sides recorded."""
    found = trace.messages
    found = found[~np.isnan(found["sent"]) & ~np.isnan(found["received"])]
    found = found[(found["received"] >= begin) & (found["sent"] <= end)]
    found = found[np.isin(found["source"], ranks) & np.isin(found["dest"], ranks) & (found["source"] != found["dest"])]
    return found["source"], found["dest"], found["sent"], found["received"]


def _operations(trace, ranks, begin, end):
    """Return the same of one-sided operations: fetched data comes from the target."""
    found = trace.operations
    found = found[(found["end"] >= begin) & (found["begin"] <= end) & (found["rank"] != found["target"])]
    found = found[np.isin(found["rank"], ranks) & np.isin(found["target"], ranks)]
    fetches = np.isin(found["name"], ("Win.Get", "Win.Rget"))
    return (
        np.where(fetches, found["target"], found["rank"]),
        np.where(fetches, found["rank"], found["target"]),
        found["begin"],
        found["end"],
    )


def _arrows(axes, found, place, begin, factor, most, colour, what):
    """Draw arrows, some of them if there are many; return a remark for the title."""
    source, dest, left, right = found
    if not len(source):
        return ""
    chosen = np.arange(len(source))
    if len(chosen) > most:
        chosen = np.linspace(0, len(source) - 1, max(most, 0)).astype(int)
    if len(chosen):
        x = (left[chosen] - begin) * factor
        y = np.array([place[int(rank)] for rank in source[chosen]], float)
        dx = (right[chosen] - left[chosen]) * factor
        dy = np.array([place[int(rank)] for rank in dest[chosen]], float) - y
        # from the edge of one lane to the edge of the other
        y += np.sign(dy) * 0.2
        dy -= np.sign(dy) * 0.4
        drawn = axes.quiver(
            x,
            y,
            dx,
            dy,
            angles="xy",
            scale_units="xy",
            scale=1,
            units="inches",
            width=0.012,
            headwidth=6,
            headlength=7,
            headaxislength=6,
            color=colour,
            alpha=0.75 if len(chosen) <= 100 else 0.35,
            zorder=3,
        )
        drawn.set_gid(what)
    if len(chosen) == len(source):
        return ""
    return f"{len(chosen)} of {len(source)} {what} drawn"


def _legend(figure, shown):
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=COLOURS[category], label=category) for category in shown]
    handles.append(Patch(facecolor="#dddddd", edgecolor="#555555", hatch="////", linewidth=0, label="of it waiting"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8, frameon=False)
