"""Tables and pictures of docs/measurements: what gormapy_compare printed, read again."""

import io
import re
from dataclasses import dataclass, field
from math import exp, log

from . import DOCS

FOLDER = DOCS / "measurements"
_HEAD = re.compile(r"^n=(\d+)\s+(\w+(?:\s+\w+)*?)\s+ratio\s+range\s+target$")
_LISTED = re.compile(r"^\| (.+?) \|((?: \[table\]\(\S+\) \|)+)$", re.MULTILINE)


@dataclass
class Row:
    """A line of a table."""

    what: str
    us: list  # by library, None where there is nothing
    ratio: float
    span: str


@dataclass
class Run:
    """A file of docs/measurements."""

    n: int
    loops: list
    about: list  # the lines before the table
    libraries: dict  # names with versions, by the names of the columns
    rows: list = field(default_factory=list)

    @property
    def mean(self):
        """The geometric mean of the ratios."""
        return exp(sum(log(row.ratio) for row in self.rows) / len(self.rows))

    @property
    def command(self):
        """What was run, by what was printed."""
        return f'make compare COMPARE="-n {self.n} --rows {",".join(self.loops)} --rounds 5"'


def read(path):
    """Read a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    loops = [re.search(r": ([\w,]+), n=", line)[1] for line in lines if line.startswith("compare: ")]
    head = next(number for number, line in enumerate(lines) if _HEAD.match(line))
    about = [line for line in lines[:head] if line and not line.startswith("compare: ")]
    n, names = _HEAD.match(lines[head]).groups()
    libraries = dict(part.split(": ", 1) for part in about[0].partition(";")[0].split(", "))
    if list(libraries) != names.split():
        raise SystemExit(f"{path.name}: the columns are not the libraries")
    run = Run(int(n), loops, about, libraries)
    for line in lines[head + 1 :]:
        if not line:
            break
        # A row's name may have spaces, but not two of them.
        what, *values = re.split(r"\s{2,}", line)
        if len(values) < len(libraries) + 2:
            raise SystemExit(f"{path.name}: not a row: {line}")
        times = [_number(value) for value in values[: len(libraries)]]
        run.rows.append(Row(what, times, float(values[len(libraries)]), values[len(libraries) + 1]))
    return run


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None


def page(text):
    """Return docs/measurements/README.md with means in its table, and the pages and pictures of the sets, by path."""
    out, sets = {}, []
    lines = ["| rows | 2 ranks | 4 ranks |", "|---|---|---|"]
    for title, cells in _LISTED.findall(text):
        files = re.findall(r"\((\S+?)\)", cells)
        runs = [read(FOLDER / name) for name in files]
        name = files[0].rpartition("-")[0]
        sets.append(name)
        out |= _set(name, title, runs)
        lines.append(f"| [{_capital(title)}]({name}.md) | " + " | ".join(f"{run.mean:.2f}" for run in runs) + " |")
    unnamed = {path.name for path in FOLDER.glob("*.txt")} - set(re.findall(r"\((\S+?\.txt)\)", text))
    if unnamed:
        raise SystemExit(f"docs/measurements/README.md does not name {', '.join(sorted(unnamed))}")
    listed = list(_LISTED.finditer(text))
    begin = text.index("| rows |")
    text = (
        text[:begin]
        + "\n".join(lines)
        + "\n\nThe numbers are geometric means of the ratios."
        + text[listed[-1].end() :]
    )
    return text, sets, out


def _capital(text):
    return text[:1].upper() + text[1:]


def _set(name, title, runs):
    lines = [f"# {_capital(title)}", ""]
    out = {}
    for run in runs:
        busy = next(line for line in run.about if line.startswith("other processes"))
        lines += [
            f"## {run.n} ranks",
            "",
            "```console",
            f"$ {run.command}",
            "```",
            "",
            f"{', '.join(run.libraries.values())}. {busy[0].upper()}{busy[1:]}.",
            "",
        ]
        picture, data = _picture(name, run)
        out[f"docs/measurements/{picture}"] = data
        what = "gormapy's time divided by that of the better other library, and its range"
        lines += [f"![{_capital(title)}, {run.n} ranks: {what}]({picture})", ""]
        lines += [f"| us | {' | '.join(run.libraries)} | ratio | range |", "|---|" + "--:|" * (len(run.libraries) + 2)]
        for row in run.rows:
            times = " | ".join("" if us is None else _digits(us) for us in row.us)
            ratio = f"**{row.ratio:.2f}**" if row.ratio > 1 else f"{row.ratio:.2f}"
            lines.append(f"| {row.what} | {times} | {ratio} | {row.span} |")
        lines += ["", f"Geometric mean of the ratios: {run.mean:.2f}.", ""]
    out[f"docs/measurements/{name}.md"] = "\n".join(lines)
    return out


def _digits(us):
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def _picture(name, run):
    """Draw the ratios, small enough for a phone; return the name of the picture and what is in it."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 0.8 + 0.19 * len(run.rows)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(1, color="0.4", linewidth=1)
    for place, row in enumerate(run.rows):
        color = "tab:blue" if row.ratio <= 1 else "tab:orange"
        axes.barh(place, row.ratio - 1, left=1, height=0.6, color=color)
        low, high = map(float, row.span.split("-"))
        axes.plot([low, high], [place, place], color="0.2", linewidth=1)
    axes.set_yticks(range(len(run.rows)), [row.what for row in run.rows], fontsize=7)
    axes.set_ylim(len(run.rows) - 0.4, -0.6)
    axes.set_xscale("log")
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7)
    axes.minorticks_off()
    axes.set_xlabel("gormapy / better of MPICH and Open MPI: left of 1 gormapy is faster", fontsize=7)
    axes.grid(axis="x", alpha=0.3)
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "gormapy"}):  # the same picture each time
        figure.savefig(out, format="svg", metadata={"Date": None})
    return f"{name}-{run.n}.svg", out.getvalue()
