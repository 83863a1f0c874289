"""The bandwidth of RDMA writes from Python, and what each of the ways to raise it is good for.

    python -m gormapy.bench rdma_ladder [--backend NAME] [--plot ladder.png] [--out DIR]
    python -m gormapy.bench rdma_ladder --queue --batch 16 --lazy --shard 2 --pin

The steps are those of libfabric-efa-demo, which came from 97 to 3108 Gbps on 32 devices by them:

naive  post a write, wait for its completion
queue  keep many outstanding
batch  post many by one call, and on a device by one doorbell
lazy   poll only when the queue is full, and let the last write of a batch tell of all of it
shard  several queue pairs, each with a completion queue and a thread of its own
pin    bind the two processes to different cores, and each thread to one

Without a switch each step is measured with those before it, in turn for some rounds; with switches, just that
combination. The writer and the target are two processes of this host.
"""

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

from .label import label
from .plot import NoMatplotlib, examine

STEPS = ("queue", "batch", "lazy", "shard", "pin")
NAIVE = {"queue": 1, "batch": 1, "lazy": False, "shard": 1, "pin": False}
DEFAULTS = {"queue": 64, "batch": 16, "lazy": True, "shard": 2, "pin": True}
LIMITS = {
    "queue": 16384,
    "batch": 16384,
    "shard": 256,
    "page_size": 1 << 30,
    "pages": 1 << 20,
    "repeats": 1 << 30,
    "rounds": 1000,
}
COLUMNS = ("step", "switches", "gbps", "percent", "mpps", "us", "before", "least", "most")


class Failed(RuntimeError):
    """A step could not be measured."""


def parse(args):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.bench rdma_ladder",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, meaning in (("queue", "writes that may be outstanding"), ("batch", "writes that are posted at once")):
        parser.add_argument(
            f"--{name}", nargs="?", type=int, const=DEFAULTS[name], metavar="N", help=f"{meaning} ({DEFAULTS[name]})"
        )
    parser.add_argument("--lazy", action="store_true", help="poll only when the queue is full")
    parser.add_argument("--shard", nargs="?", type=int, const=2, metavar="N", help="queue pairs and threads (2)")
    parser.add_argument("--pin", action="store_true", help="bind processes and threads to cores")
    parser.add_argument("--backend", metavar="NAME", help="tcp, shm, verbs or ofi (default: the first with a device)")
    parser.add_argument("--device", metavar="NAME", help="the device (default: the first with an active port)")
    parser.add_argument("--page-size", type=int, default=65536, metavar="BYTES", help="of a write (%(default)s)")
    parser.add_argument("--pages", type=int, default=64, metavar="N", help="pages that are written (%(default)s)")
    parser.add_argument("--repeats", type=int, default=100, metavar="N", help="times that each is (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="measurements of each step (%(default)s)")
    parser.add_argument("--progress", action="store_true", help="print how far each step is")
    parser.add_argument("--json", action="store_true", help="write a JSON object instead of a table")
    parser.add_argument("--out", metavar="DIR", help="write rdma_ladder.json and rdma_ladder.csv there")
    parser.add_argument("--plot", metavar="FILE", help="draw the steps (needs matplotlib)")
    options = parser.parse_args(args)
    for name, most in LIMITS.items():
        value = getattr(options, name)
        if value is not None and not 1 <= value <= most:
            parser.error(f"argument --{name.replace('_', '-')}: {value} is not from 1 to {most}")
    if options.page_size * options.pages > 1 << 32:
        parser.error(f"{options.pages} pages of {options.page_size} bytes are more than 4 GiB")
    chosen = {name: getattr(options, name) for name in STEPS if getattr(options, name)}
    options.steps = [("custom", {**NAIVE, **chosen})] if chosen else ladder()
    if max(switches["shard"] for _, switches in options.steps) > options.pages:
        parser.error(
            f"argument --pages: {options.pages} can't be shared by {options.shard or DEFAULTS['shard']} shards"
        )
    if options.progress and options.json:
        parser.error("argument --progress: not with --json")
    try:
        if options.plot:
            drawable(options.plot)
        if options.out:
            Path(options.out).mkdir(parents=True, exist_ok=True)
    except (NoMatplotlib, OSError, ValueError) as error:
        parser.error(str(error))
    return options


def ladder():
    """Return the steps, each with what those before it have."""
    steps, switches = [("naive", dict(NAIVE))], dict(NAIVE)
    for name in STEPS:
        switches = {**switches, name: DEFAULTS[name]}
        steps.append((name, switches))
    return steps


def written(switches):
    """Return the switches as they are typed."""
    parts = [f"--{name}" + ("" if switches[name] is True else f" {switches[name]}") for name in STEPS]
    return " ".join(part for name, part in zip(STEPS, parts) if switches[name] != NAIVE[name])


def cores(pin):
    """Return the cores of either process, None for all there are: one half each, as far as there are two."""
    if not pin:
        return {"writer": None, "target": None}
    all_cores = sorted(os.sched_getaffinity(0))
    half = (len(all_cores) + 1) // 2
    return {"writer": all_cores[:half], "target": all_cores[half:] or all_cores}


def ceiling(device, size, pages):
    """Return what counts as 100 %, in Gbps, and what it is: the rate of the link, or that of a copy in memory."""
    rate = max((port.gbps for port in device.ports), default=0)
    if rate:
        return float(rate), "the link's rate"
    import numpy as np

    source, target = np.ones((pages, size), np.uint8), np.zeros((pages, size), np.uint8)
    seconds = []
    for _ in range(5):
        begin = perf_counter()
        for i in range(pages):
            target[i] = source[i]
        seconds.append(perf_counter() - begin)
    return 8e-9 * size * pages / min(seconds), "NumPy's copy of the pages, by one thread"


def measure(config):
    """Run a step once, and return its seconds and how many writes there were."""
    from .rdma_writer import command

    with subprocess.Popen(command("writer", config), stdout=subprocess.PIPE, text=True) as process:
        try:
            last = ""
            for line in process.stdout:
                last = line
                if line.startswith("["):
                    print(line, end="", flush=True)
        except BaseException:
            process.kill()  # the target ends with it
            raise
    try:
        found = json.loads(last)
    except ValueError:
        raise Failed(f"the writer has ended with status {process.returncode}") from None
    return found["seconds"], found["ops"]


def climb(options):
    """Measure all steps in turn, and return what was found."""
    from gormapy import rdma

    with rdma.Context(options.device, options.backend) as context:
        device = context.device
    full, what = ceiling(device, options.page_size, options.pages)
    seconds = {name: [] for name, _ in options.steps}
    for _ in range(options.rounds):
        for name, switches in options.steps:
            config = {
                **switches,
                "backend": device.backend,
                "device": device.name,
                "page_size": options.page_size,
                "pages": options.pages,
                "repeats": options.repeats,
                "progress": options.progress,
                "ceiling": full,
                "cores": cores(switches["pin"]),
            }
            if options.progress:
                print(f"{name}: {written(switches) or 'no switch'}", flush=True)
            seconds[name].append(measure(config)[0])
    ops = options.pages * options.repeats
    rows = [row(name, switches, seconds[name], ops, options.page_size, full) for name, switches in options.steps]
    for before, after in pairwise(rows):
        after["before"] = round(after["gbps"] / before["gbps"], 3)
    return {
        "name": "rdma_ladder",
        "backend": device.backend,
        "device": device.name,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "page_size": options.page_size,
        "pages": options.pages,
        "repeats": options.repeats,
        "rounds": options.rounds,
        "ceiling": {"gbps": round(full, 3), "what": what},
        "rows": rows,
    }


def row(name, switches, seconds, ops, size, full):
    """Return the figures of a step: those of the median round, and the range."""
    middle, rates = median(seconds), [8e-9 * ops * size / each for each in seconds]
    gbps = 8e-9 * ops * size / middle
    return {
        "step": name,
        "switches": written(switches),
        "gbps": round(gbps, 4),
        "percent": round(100 * gbps / full, 2),
        "mpps": round(1e-6 * ops / middle, 5),
        "us": round(1e6 * middle / ops, 3),
        "before": None,
        "least": round(min(rates), 4),
        "most": round(max(rates), 4),
    }


def lines(found):
    """Return the lines of the table."""
    full = found["ceiling"]
    yield (
        f"rdma_ladder: {found['device']} ({found['backend']}), {found['pages']} pages of {label(found['page_size'])} "
        f"x {found['repeats']}, median of {found['rounds']} rounds, Python {found['python']}, {found['cores']} cores"
    )
    yield f"100 % is {full['what']}: {full['gbps']:.1f} Gbps"
    width = max(len(row["switches"]) for row in found["rows"])
    yield f"{'step':<8}{'switches':<{width}}{'Gbps':>10}{'%':>8}{'Mpps':>9}{'us/write':>10}{'x before':>10}   range"
    for row in found["rows"]:
        before = "" if row["before"] is None else f"{row['before']:.2f}"
        yield (
            f"{row['step']:<8}{row['switches']:<{width}}{row['gbps']:>10.3f}{row['percent']:>8.1f}{row['mpps']:>9.4f}"
            f"{row['us']:>10.2f}{before:>10}   {row['least']:.3f}-{row['most']:.3f}"
        )


def save(found, folder):
    """Write what was found as JSON and as CSV."""
    (Path(folder) / "rdma_ladder.json").write_text(json.dumps(found, indent=1) + "\n")
    with (Path(folder) / "rdma_ladder.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(found["rows"])


def drawable(path):
    """See that a picture can be drawn, before anything is measured."""
    examine(Path(path).parent)
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in kinds:
        raise ValueError(
            f"argument --plot: {path} must end with one of {', '.join('.' + kind for kind in sorted(kinds))}"
        )


def draw(found, path):
    """Draw a bar for each step, with its effect."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes, rows = figure.add_subplot(), found["rows"]
    rates = [row["gbps"] for row in rows]
    spread = [
        [row["gbps"] - row["least"] for row in rows],
        [row["most"] - row["gbps"] for row in rows],
    ]
    bars = axes.bar([row["step"] for row in rows], rates, yerr=spread, capsize=4, color="tab:blue", alpha=0.8)
    names = [f"{row['gbps']:.3g}" + (f"\nx {row['before']:.2f}" if row["before"] else "") for row in rows]
    axes.bar_label(bars, names, padding=4, fontsize="small")
    axes.margins(y=0.2)
    axes.set_ylabel("Gbps")
    full, device = found["ceiling"], f"{found['device']} ({found['backend']})"
    axes.set_title(
        f"RDMA writes of {label(found['page_size'])} on {device}, {found['cores']} cores\n"
        f"{full['what']}: {full['gbps']:.3g} Gbps",
        fontsize="small",
    )
    figure.savefig(path, dpi=120)


def main(args):
    """Measure, and show what was found; return the exit status."""
    from gormapy import rdma

    options = parse(args)
    try:
        found = climb(options)
    except (Failed, rdma.Error) as error:
        print(f"gormapy.bench: rdma_ladder: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(found), flush=True)
    else:
        print(*lines(found), sep="\n", flush=True)
    if options.out:
        save(found, options.out)
    if options.plot:
        draw(found, options.plot)
    return 0
