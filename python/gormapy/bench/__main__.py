"""Command line of the measurements."""

import argparse
import importlib
import json
import os
import platform
import sys
import traceback
from functools import partial

from .startup import environment, startup

# Variables that only ranks have: of gormapy's launcher, of PMI-1 and of PMIx. (A Slurm batch script has
# SLURM_PROCID too, and is no rank; srun with more than one task says so in SLURM_STEP_NUM_TASKS.)
LAUNCHED = ("GORMAPY_JOB_RANK", "PMI_FD", "PMI_RANK", "PMIX_RANK")


def parse(args):
    """Read the command line."""
    from .loops import LOOPS, RANKS
    from .timing import BUDGET

    names = [*LOOPS, "startup", "osu", "rdma_ladder", "rdma_engine"]
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.bench",
        description="Measure gormapy on this machine. Times are in microseconds: the median over many batches, "
        "and the 10th and 90th percentile.",
        epilog="Rows: "
        + "; ".join(f"{name}: {loop.__doc__.splitlines()[0]}" for name, loop in LOOPS.items())
        + "; osu: Run the one-sided programs of the OSU micro-benchmarks (osu --help)."
        + "; rdma_ladder: RDMA writes without MPI, step by step faster (rdma_ladder --help)"
        + "; rdma_engine: Latency and bandwidth of gormapy.rdma.Engine by size and batch (rdma_engine --help).",
    )
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    add_common(parser, "seconds for each row (default: %(default)g)", BUDGET)
    options = parser.parse_args(args)
    options.default_ranks, options.error = RANKS.get(options.name, 4), parser.error
    if options.name in LOOPS:
        options.loop = partial(LOOPS[options.name], budget=options.budget)
    return options


def add_common(parser, budget_help, budget):
    """Add the options that all measurements have."""
    parser.add_argument("-n", type=int, help="ranks to start, unless a launcher has (default: 2 or more, by NAME)")
    parser.add_argument("--budget", type=float, default=budget, help=budget_help)
    parser.add_argument("--json", action="store_true", help="write a JSON object instead of a table")
    parser.add_argument("--json-lines", action="store_true", help="write a JSON object for each row when it is known")
    parser.add_argument("--mpi", default="gormapy.MPI", metavar="MODULE", help="measure this module (mpi4py.MPI)")
    parser.add_argument("--mpiexec", metavar="PATH", help="start ranks by this program instead of gormapy's")


def examine(options):
    """Refuse invalid values of the options that all measurements have."""
    if options.n is not None and options.n < 1:
        options.error(f"argument -n: there can't be {options.n} ranks")
    if options.budget is not None and not 0 < options.budget < 3600:
        options.error(f"argument --budget: {options.budget:g} is not a number of seconds to measure for")
    if options.mpi != "gormapy.MPI" and not options.mpiexec and not launched():
        options.error(f"{options.mpi} needs its own launcher: name it with --mpiexec, or start this program by it")
    options.ranks = options.n or options.default_ranks


def launched():
    """Return whether this process is a rank of a job already."""
    step = os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"
    return step or any(name in os.environ for name in LAUNCHED)


def launcher(options):
    """Return the command of mpiexec."""
    if options.mpiexec:
        return [options.mpiexec]
    from gormapy.launch import launcher

    return [launcher()]


def show(options, head, rows):
    """Print the rows."""
    if options.json_lines:
        print(json.dumps(head), *map(json.dumps, rows), sep="\n", flush=True)
    elif options.json:
        print(json.dumps({**head, "rows": rows}), flush=True)
    else:
        print(f"{head['name']}: {head['library']}, {head['ranks']} ranks on {os.cpu_count()} cores, us (10 % / 90 %)")
        for row in rows:
            print(f"  {row['what']:<72} {described(row)}")
        sys.stdout.flush()


MORE = (
    ("p99", "99 % {:g}"),
    ("max", "at most {:g}"),
    ("MB/s", "MB/s {:g}"),
    ("numpy", "NumPy {:g}"),
    ("socket", "socket {:g}"),
    ("wake-ups", "wake-ups {:g}"),
    ("ratio", "{:g} times as long"),
    ("events", "events {:g}"),
    ("event_ns", "{:g} ns each"),
)


def described(row):
    """Return the times of a row in the form of a line."""
    if "problem" in row:
        return f"{row['problem']}: {row['detail']}"
    more = "".join(f", {text.format(row[key])}" for key, text in MORE if key in row)
    if "turns" in row:
        turns = row["turns"]
        more += f", turns of a rank: {min(turns)} to {max(turns)}, mean {sum(turns) / len(turns):g}"
    return f"{row['us']:>10.3f}  ({row['p10']:g} / {row['p90']:g}{more})"


def describe(options, library, ranks):
    """Return the facts that all rows of a measurement share."""
    return {"name": options.name, "library": library, "ranks": ranks, "python": platform.python_version()}


def measure(options):
    """Measure as a rank of a job."""
    MPI = importlib.import_module(options.mpi)
    try:
        return _measure(options, MPI, MPI.COMM_WORLD)
    except Exception:
        # Other MPIs' jobs hang when one rank leaves.
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)


def _measure(options, MPI, comm):
    library = MPI.Get_library_version().splitlines()[0].split(",")[0].strip("\0 ")
    head = describe(options, library, comm.size)
    if options.json_lines and comm.rank == 0:
        print(json.dumps(head), flush=True)
    tell = None
    if comm.rank == 0 and options.name == "osu" and not options.json:
        from .osu import Printer

        tell = Printer(head["library"], head["python"], options.check)
    rows = []
    for row in options.loop(MPI, comm):
        rows.append(row)
        if options.json_lines and comm.rank == 0:
            print(json.dumps(row), flush=True)
        elif tell:
            tell(row)
    if comm.rank == 0 and not options.json_lines and not tell:
        show(options, head, rows)
    wrong = [row for row in rows if row.get("valid") is False]
    if wrong and comm.rank == 0:
        print(*(f"gormapy.bench: {row['what']}: wrong data" for row in wrong), sep="\n", file=sys.stderr, flush=True)
    comm.Barrier()  # the first rank that ends with an error may end all others
    return 1 if wrong else 0


def main(args=None):
    """Measure, and first start ranks if necessary."""
    args = sys.argv[1:] if args is None else args
    if args[:1] in (["rdma_ladder"], ["rdma_engine"]):
        run = importlib.import_module(f".{args[0]}", __package__).main
        if launched():
            sys.exit(f"gormapy.bench: {args[0]} starts processes itself: run it without a launcher")
        sys.exit(run(args[1:]))
    if args[:1] == ["osu"]:
        from .osu_command import parse as parse_osu

        options = parse_osu(args[1:], add_common)
    else:
        options = parse(args)
        if options.name in ("osu", "rdma_ladder", "rdma_engine"):
            sys.exit(f"gormapy.bench: {options.name} has options of its own: put it first")
    examine(options)
    if options.name == "startup":
        if launched():
            sys.exit("gormapy.bench: startup starts jobs itself: run it without a launcher")
        rows = startup(options.mpi, launcher(options), options.ranks)
        show(options, describe(options, options.mpi, options.ranks), rows)
    elif launched():
        sys.exit(measure(options))
    else:
        command = [*launcher(options), "-n", str(options.ranks), sys.executable, "-m", "gormapy.bench", *args]
        try:
            os.execvpe(command[0], command, environment())
        except OSError as error:
            sys.exit(f"gormapy.bench: cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
