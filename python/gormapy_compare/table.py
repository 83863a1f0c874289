"""The results of compare as text."""

from statistics import geometric_mean

from . import memory


def summary(found):
    """Count the rows with a target that was met, and name those that missed theirs."""
    goals = [row for row in found["rows"] if row["met"] is not None]
    missed = [f"n={row['n']} {row['what']}" for row in goals if not row["met"]]
    return {"goals": len(goals), "met": len(goals) - len(missed), "missed": missed}


def means(rows):
    """Return the geometric means of the ratios of each set of rows, by number of ranks, and of all ("all")."""
    ratios = {}
    for row in rows:
        if row["ratio"]:
            of_n = ratios.setdefault(str(row["n"]), {"all": []})
            of_n.setdefault(row["loop"], []).append(row["ratio"])
            of_n["all"].append(row["ratio"])
    return {n: {loop: geometric_mean(values) for loop, values in loops.items()} for n, loops in ratios.items()}


def cell(row, library):
    """Return a time, or the failure."""
    us = row["us"][library]
    if us is not None:
        return f"{us:.3f}" if us < 1000 else f"{us:.0f}"
    return row["problems"].get(library, ["-"])[0]


def digits(ratio):
    """Write a ratio, small ones too."""
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.1g}"


def reached(row, library):
    """Return the values that a target is for, where they are not in the columns."""
    more = row["more"].get(library, {})
    if "numpy" in more:
        return f" ({more['numpy']:.2f})"
    if "fewest" in more:
        return f" ({more['fewest']:.2f} to {more['most']:.2f})"
    return f" (99 %: {more['p99']:.1f} us)" if "p99" in more else ""


def lines(found):
    """Return the lines of the table."""
    names = list(found["libraries"])
    about = ", ".join(f"{name}: {text}" for name, text in found["libraries"].items())
    yield f"{about}; Python {found['python']}, {found['cores']} cores"
    yield f"us, {found['statistic']} of {found['rounds']} rounds; ratio: gormapy / better peer; range: over the rounds"
    yield memory.line(found["memory"])
    if found["others"] is not None:
        yield f"other processes used {found['others']:.0%} of the cores meanwhile"
    width = max((len(row["what"]) for row in found["rows"]), default=0)
    head = "".join(f"{name:>11}" for name in names)
    last = None
    for row in found["rows"]:
        if row["n"] != last:
            last = row["n"]
            yield ""
            yield f"{f'n={last}':<{width}}{head}{'ratio':>8}   {'range':<12}target"
        ratio = "-" if row["ratio"] is None else digits(row["ratio"])
        spread = "" if row["spread"] is None else "-".join(map(digits, row["spread"]))
        goal = ""
        if row["met"] is not None:
            goal = ("ok    " if row["met"] else "MISSED") + f" {row['target']}" + reached(row, names[0])
        times = "".join(f"{cell(row, name):>11}" for name in names)
        yield f"{row['what']:<{width}}{times}{ratio:>8}   {spread:<12}{goal}".rstrip()
    yield ""
    told = set()
    for row in found["rows"]:
        for library, (problem, detail) in row["problems"].items():
            if (library, row["loop"], row["n"]) not in told:
                told.add((library, row["loop"], row["n"]))
                yield f"{problem}: {library}, {row['loop']}, n={row['n']}: {detail}"
    for n, loops in found["means"].items():
        yield f"geometric means of the ratios, n={n}: " + ", ".join(f"{k} {digits(v)}" for k, v in loops.items())
    counts = summary(found)
    yield f"{counts['met']} of {counts['goals']} targets met"


def show(found):
    """Print the table."""
    print(*lines(found), sep="\n", flush=True)
