"""Pictures of what was found."""

import re
from pathlib import Path

from gormapy.bench.label import label


def plot(found, folder):
    """Draw each set of rows that has times, and return the paths of the pictures."""
    paths = []
    for name, rows in _sets(found["rows"]).items():
        shown = [row for row in rows if any(us is not None for us in row["us"].values())]
        if shown:
            draw = _lines if _by_size(shown) else _bars
            path = Path(folder) / f"{re.sub('[^a-z0-9]+', '_', name.lower()).strip('_')}.png"
            figure = draw(found, name, shown)
            figure.savefig(path, dpi=120)
            paths.append(path)
    return paths


def _sets(rows):
    """Return the rows that belong into one picture, by its name."""
    sets = {}
    for row in rows:
        # A program of OSU is a curve over sizes for each window and synchronisation.
        loop = row["what"].rpartition(", ")[0] if row["loop"].startswith("osu_") else row["loop"]
        sets.setdefault(f"{loop or row['loop']}, n={row['n']}", []).append(row)
    return sets


def _by_size(rows):
    return all(row["loop"].startswith("osu_") and row["size"] for row in rows)


def _figure(found, name, size):
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    about = ", ".join(found["libraries"].values())
    axes.set_title(f"{name}\n{about}; Python {found['python']}, {found['cores']} cores", fontsize="small")
    return figure, axes


def _lines(found, name, rows):
    """Draw time or bandwidth over the size."""
    figure, axes = _figure(found, name, (7, 4.5))
    rate = all(row["rate"] for row in rows)
    for library in found["libraries"]:
        values = [row["rate"].get(library) if rate else row["us"][library] for row in rows]
        points = [(row["size"], value) for row, value in zip(rows, values) if value is not None]
        if points:
            axes.plot(*zip(*points), marker="o", markersize=3, label=library)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = [row["size"] for row in rows][:: max(1, len(rows) // 8)]
    axes.set_xticks(ticks, [label(size) for size in ticks])
    axes.set_xlabel("size")
    axes.set_ylabel("MB/s" if rate else "us")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def number(us):
    """Write a time with three digits, and without an exponent."""
    return f"{us:.0f}" if us >= 100 else f"{us:.3g}"


def _bars(found, name, rows):
    """Draw a group of bars for each row."""
    libraries = list(found["libraries"])
    figure, axes = _figure(found, name, (9, 1.2 + 0.22 * len(rows) * (len(libraries) + 1)))
    height = 1 / (len(libraries) + 1)
    for i, library in enumerate(libraries):
        places = [(j + i * height, row["us"][library]) for j, row in enumerate(rows)]
        places = [(place, us) for place, us in places if us is not None]
        if places:
            bars = axes.barh(*zip(*places), height=height, label=library)
            axes.bar_label(bars, [number(us) for _, us in places], fontsize="x-small", padding=2)
    for j, row in enumerate(rows):
        for i, library in enumerate(libraries):
            if row["us"][library] is None and library in row["problems"]:
                text = f" {library}: {row['problems'][library][0]}"
                axes.annotate(
                    text, (0, j + i * height), xycoords=("axes fraction", "data"), fontsize="x-small", va="center"
                )
    axes.set_yticks([j + height * (len(libraries) - 1) / 2 for j in range(len(rows))], [row["what"] for row in rows])
    axes.tick_params(axis="y", labelsize="x-small")
    axes.set_ylim(len(rows) - height, -height)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("us")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize="x-small")
    return figure
