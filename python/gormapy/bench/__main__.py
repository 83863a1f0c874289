"""Command line of the measurements."""

import argparse
import importlib
import json
import os
import sys

from .startup import environment, startup

# Variables that only ranks have: of gormapy's launcher, of PMI-1 and of PMIx. (A Slurm batch script has
# SLURM_PROCID too, and is no rank; srun with more than one task says so in SLURM_STEP_NUM_TASKS.)
LAUNCHED = ("GORMAPY_JOB_RANK", "PMI_FD", "PMI_RANK", "PMIX_RANK")


def parse(args):
    """Read the command line."""
    from .loops import LOOPS, RANKS

    names = [*LOOPS, "startup"]
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.bench",
        description="Measure gormapy on this machine. Times are in microseconds: the median over many batches, "
        "and the 10th and 90th percentile.",
        epilog="Rows: " + "; ".join(f"{name}: {loop.__doc__.splitlines()[0]}" for name, loop in LOOPS.items()),
    )
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("-n", type=int, help="ranks to start, unless a launcher has (default: 2 or 4, by NAME)")
    parser.add_argument("--json", action="store_true", help="write a JSON object instead of a table")
    parser.add_argument("--mpi", default="gormapy.MPI", metavar="MODULE", help="measure this module (mpi4py.MPI)")
    parser.add_argument("--mpiexec", metavar="PATH", help="start ranks by this program instead of gormapy's")
    options = parser.parse_args(args)
    if options.n is not None and options.n < 1:
        parser.error(f"argument -n: there can't be {options.n} ranks")
    if options.mpi != "gormapy.MPI" and not options.mpiexec and not launched():
        parser.error(f"{options.mpi} needs its own launcher: name it with --mpiexec, or start this program by it")
    options.ranks = options.n or RANKS.get(options.name, 4)
    return options


def launched():
    """Tell whether this process is a rank of a job already."""
    step = os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"
    return step or any(name in os.environ for name in LAUNCHED)


def launcher(options):
    """Return the command of mpiexec."""
    from gormapy.launch import launcher

    return [options.mpiexec or launcher()]


def show(options, library, ranks, rows):
    """Print the rows."""
    if options.json:
        print(json.dumps({"name": options.name, "library": library, "ranks": ranks, "rows": rows}), flush=True)
        return
    print(f"{options.name}: {library}, {ranks} ranks on {os.cpu_count()} cores, us (10 % / 90 %)")
    for row in rows:
        most = f", at most {row['max']:g}" if "max" in row else ""
        print(f"  {row['what']:<72} {row['us']:>10.3f}  ({row['p10']:g} / {row['p90']:g}{most})")
    sys.stdout.flush()


def measure(options):
    """Measure as a rank of a job."""
    from .loops import LOOPS

    MPI = importlib.import_module(options.mpi)
    comm = MPI.COMM_WORLD
    rows = LOOPS[options.name](MPI, comm)
    if comm.rank == 0:
        library = MPI.Get_library_version().splitlines()[0].split(",")[0].strip("\0 ")
        show(options, library, comm.size, rows)


def main(args=None):
    """Measure, after starting ranks if need be."""
    args = sys.argv[1:] if args is None else args
    options = parse(args)
    if options.name == "startup":
        if launched():
            sys.exit("gormapy.bench: startup starts jobs itself: run it without a launcher")
        show(options, options.mpi, options.ranks, startup(options.mpi, launcher(options), options.ranks))
    elif launched():
        measure(options)
    else:
        command = [*launcher(options), "-n", str(options.ranks), sys.executable, "-m", "gormapy.bench", *args]
        try:
            os.execvpe(command[0], command, environment())
        except OSError as error:
            sys.exit(f"gormapy.bench: cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
