"""The program."""

import sys
from contextlib import nullcontext

from gormapy import MPI

from . import kernel, picture, report
from .device import DeviceSolver
from .grid import Grid
from .options import Options, agree, help_text
from .solver import Solver

SMALL = 12  # cells of a rank in each direction: grids this small are always checked, as in the original


def main(args=None):
    """Do what the command line says; leave with the status 1 if that makes no sense, or if halos are wrong."""
    comm = MPI.COMM_WORLD
    options = agree(comm, sys.argv[1:] if args is None else args)
    if not isinstance(options, Options):
        refuse(comm, options)
    if options.help:
        say(comm, help_text())
        return
    say(comm, "------> Initializing the Problem")
    means = kernel.load(options.kernel)  # compiling is no part of the total
    begin = MPI.Wtime()
    grid = Grid(comm, options.x, options.y, options.i, options.j, options.h)
    make = DeviceSolver if options.array == "cupy" else Solver
    solver = make(grid, options.method, options.memory, options.c, means, options.barrier, options.overlap)
    if options.print and report.too_wide(grid):
        say(comm, f"        The field is not printed: with its halos it has more than {report.WIDEST} columns")
    wrong = 0
    if options.self_test or report.maximum(comm, max(grid.isize, grid.jsize)) <= SMALL:
        wrong = solver.self_test()
        if options.print:
            report.field(solver)
        if options.self_test or wrong:
            say(comm, f"        Halo cells that are wrong: {wrong}")
    if not wrong:
        with recorded(comm, options.trace):
            advance(solver, options)
        finish(solver, options, begin)
    solver.free()
    if wrong:
        sys.exit(1)


def recorded(comm, path):
    """Return a context manager that records what the ranks do inside into a file, or does nothing without a path."""
    if not path:
        return nullcontext()
    from gormapy import trace

    return trace.record(path, comm)


def advance(solver, options):
    """Do the iterations."""
    comm = solver.grid.comm
    solver.start()
    if options.print:
        say(comm, "------> Initial State ")
        report.field(solver)
    say(comm, "------> Advancing the Solution")
    for iteration in range(options.I):
        solver.advance()
        if iteration % 10 == 0:
            say(comm, f"        Iter {iteration}")
        if options.print:
            report.field(solver)


def finish(solver, options, begin):
    """Print and draw the result."""
    report.timings(solver, MPI.Wtime() - begin, options.t)
    report.result(solver)
    if options.plot:
        picture.draw(solver, options.plot)


def say(comm, line):
    """Print a line, once."""
    if comm.Get_rank() == 0:
        print(line, flush=True)


def refuse(comm, message):
    """Leave on all ranks, with one message."""
    if comm.Get_rank() == 0:
        print(message, file=sys.stderr, flush=True)
    comm.Barrier()  # the first rank that ends with an error ends the job
    sys.exit(1)


if __name__ == "__main__":
    main()
