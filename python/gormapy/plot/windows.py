"""The bytes of a window that each rank accessed in each epoch."""

import math

import numpy as np

from .figure import RANKS, WIDTH, Picture, new, nothing, scale_of

_READS = ("Win.Get", "Win.Rget")
_ROWS = 24  # with more epochs the y axis is time
_TARGETS = 8
_PIXELS = 1000


def windows(trace, window=None, targets=None):
    """Draw, for each rank's part of a window, which bytes were accessed in which epoch, coloured by the origin.

    `window` is its number in trace.operations (default: the one with most operations), `targets` are ranks of
    COMM_WORLD (default: all whose parts were accessed, at most 8). Filled bars were written, hatched ones read. With
    many epochs the y axis is time instead. Returns a matplotlib Figure.

    Errors: ValueError if there is no such window in the recording.
    """
    operations = trace.operations
    if window is None:
        if not len(operations):
            figure = new(2)
            nothing(figure.add_subplot(), "no one-sided operations were recorded")
            return figure
        numbers, counts = np.unique(operations["window"], return_counts=True)
        window = int(numbers[np.argmax(counts)])
    elif window not in trace.window_ranks:
        there = ", ".join(map(str, sorted(trace.window_ranks))) or "none"
        raise ValueError(f"window {window} is not in the recording: there are {there}")
    chosen = operations[operations["window"] == window]
    accessed = [int(target) for target in np.unique(chosen["target"])]
    left_out = 0
    if targets is None:
        targets, left_out = accessed[:_TARGETS], max(0, len(accessed) - _TARGETS)
    chosen = chosen[np.isin(chosen["target"], targets)]
    if not len(chosen):
        figure = new(2)
        nothing(figure.add_subplot(), f"nobody accessed these parts of window {window}")
        return figure
    columns = 1 if len(targets) == 1 else 2
    rows = math.ceil(len(targets) / columns)
    labels, places = _rows(trace, chosen, window)
    by_time = len(labels) > _ROWS
    height = 3.0 if by_time else max(1.6, 0.9 + 0.26 * len(labels))
    figure = Picture(figsize=(WIDTH, min(0.6 + rows * height, 16)), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    factor, unit = scale_of(trace.duration)
    early, late = chosen["begin"].min(), max(chosen["end"].max(), chosen["begin"].min() + 1e-9)
    end = int((chosen["disp"] + np.maximum(chosen["span"], chosen["bytes"])).max())
    for axes, target in zip(grid.flat, targets):
        mine = chosen["target"] == target
        if by_time:
            _draw(axes, chosen[mine], chosen["begin"][mine] * factor, (late - early) * factor / 60, end)
        else:
            _draw(axes, chosen[mine], places[mine], 0.7, end)
        axes.set_title(f"rank {target}'s part", fontsize=9)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8)
    for axes in grid.flat[len(targets) :]:
        axes.set_visible(False)
    first = grid[0, 0]
    if by_time:
        first.set_ylim(late * factor, early * factor)
    else:
        first.set_yticks(range(len(labels)), labels)
        first.set_ylim(len(labels) - 0.4, -0.6)
    first.set_xlim(0, max(end, 1))
    for axes in grid[:, 0]:
        axes.set_ylabel(f"time in {unit}" if by_time else "epoch")
    for axes in [column[np.flatnonzero([a.get_visible() for a in column])[-1]] for column in grid.T]:
        axes.set_xlabel("bytes from the beginning of the part")
        axes.tick_params(labelbottom=True)
    note = f", {left_out} more parts not shown" if left_out else ""
    _legend(figure, chosen, f"window {window}{note}")
    return figure


def _rows(trace, chosen, window):
    """Give operations the rows of their epochs; return the labels of the rows and the row of each operation.

    Fences are counted per rank: all ranks' k-th epoch between fences is one row.
    """
    of_window = np.flatnonzero(trace.epochs["window"] == window)
    keys, number = {-1: ("none", 0)}, {}
    for i in of_window:
        epoch = trace.epochs[i]
        if epoch["kind"] == "fence":
            rank = int(epoch["rank"])
            number[rank] = number.get(rank, 0) + 1
            keys[int(i)] = ("fence", number[rank])
        else:
            keys[int(i)] = (str(epoch["kind"]), int(i))
    begins = {}
    for i in np.unique(chosen["epoch"]):
        key = keys[int(i)]
        begins[key] = min(begins.get(key, math.inf), chosen["begin"][chosen["epoch"] == i].min())
    ordered = sorted(begins, key=begins.get)
    labels = []
    for kind, i in ordered:
        if kind == "none":
            labels.append("no epoch")
        elif kind == "fence":
            labels.append(f"fence {i} to {i + 1}")
        else:
            labels.append(f"{kind} by {trace.epochs['rank'][i]}")
    row = {key: i for i, key in enumerate(ordered)}
    places = np.zeros(len(chosen))
    for i in np.unique(chosen["epoch"]):
        places[chosen["epoch"] == i] = row[keys[int(i)]]
    return labels, places


def _draw(axes, operations, y, height, end):
    """Draw the accesses; those of several origins in one row are side by side."""
    from matplotlib.collections import PolyCollection

    origins = np.unique(operations["rank"])
    part = height / max(len(origins), 1)
    for k, origin in enumerate(origins):
        for reads in (False, True):
            mine = (operations["rank"] == origin) & (np.isin(operations["name"], _READS) == reads)
            if not mine.any():
                continue
            of = operations[mine]
            colour = RANKS[int(origin) % len(RANKS)]
            widths = np.maximum(np.maximum(of["span"], of["bytes"]), 1)
            bars = PolyCollection(
                _rectangles(of["disp"], widths, y[mine] - height / 2 + k * part, part, end),
                facecolors="none" if reads else colour,
                edgecolors=colour,
                hatch="////" if reads else None,
                linewidths=0.8,
                alpha=0.85,
            )
            bars.set_gid(f"rank {origin}")
            axes.add_collection(bars, autolim=False)


def _rectangles(x, widths, y, height, end):
    """Return the corners of rectangles; one of those that can't be distinguished."""
    pixel, line = max(end / _PIXELS, 1), height / 2
    if len(x) > _PIXELS:
        kept = np.stack([np.round(x / pixel), np.round(widths / pixel), np.round(y / line)])
        _, chosen = np.unique(kept, axis=1, return_index=True)
        x, widths, y = x[chosen], widths[chosen], y[chosen]
    left, right, low, high = x, x + widths, y, y + height
    return np.stack([[left, low], [right, low], [right, high], [left, high]]).transpose(2, 0, 1)


def _legend(figure, chosen, title):
    from matplotlib.patches import Patch

    origins = [int(rank) for rank in np.unique(chosen["rank"])]
    handles = [Patch(facecolor=RANKS[rank % len(RANKS)], label=f"by rank {rank}") for rank in origins[: len(RANKS)]]
    if np.isin(chosen["name"], _READS).any():
        handles.append(Patch(facecolor="none", edgecolor="#555555", hatch="////", label="read"))
    figure.legend(
        handles=handles, title=title, loc="outside upper center", ncols=min(len(handles), 9), fontsize=8, frameon=False
    )
