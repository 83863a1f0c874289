"""The printed results: the lines of the original, and a few more."""

import numpy as np

from gormapy import MPI

from .total import checksum, global_sum

WIDEST = 100  # columns of a field that is printed, as in the original


def timings(solver, total, line):
    """Print the seconds that rank 0 spent in each part; with `line`, also as older versions did, and for all ranks."""
    comm, seconds = solver.grid.comm, solver.seconds
    everybody = comm.gather(seconds)
    if comm.Get_rank():
        return
    print("------> Printing Timings")
    print(f"        Solution Advancement: {seconds['stencil']:f} ")
    print(f"        Boundary Condition Enforcement:  {seconds['boundary']:f} ")
    if solver.barrier:
        print(f"        Waiting for Other Ranks:  {seconds['wait']:f} ")
    print(f"        Ghost Cell Update:  {seconds['ghost']:f} ")
    print(f"        Total: {total:f}")
    if not line:
        return
    print(
        f"GhostExchange_gormapy Timing is stencil {seconds['stencil']:f} boundary condition {seconds['boundary']:f} "
        f"ghost cell {seconds['ghost']:f} total {total:f}"
    )
    for part in seconds:
        values = [one[part] for one in everybody]
        if part != "wait" or solver.barrier:
            mean = sum(values) / len(values)
            print(f"        {part:8} on all ranks: min {min(values):f} mean {mean:f} max {max(values):f}")


def result(solver):
    """Print what doesn't depend on the number of ranks: sum, two cells, and a checksum of all; collective."""
    grid = solver.grid
    total, bits = global_sum(grid, solver.x), checksum(grid, solver.x)
    first, centre = cell(solver, 0, 0), cell(solver, grid.imax // 2, grid.jmax // 2)
    if grid.comm.Get_rank() == 0:
        print(f"        Sum: {total:.12f} x[0][0]: {first:.12f} centre: {centre:.12f} checksum: {bits:016x}")


def cell(solver, i, j):
    """Return the value of a cell on all ranks."""
    grid = solver.grid
    i, j = i - grid.ibegin, j - grid.jbegin
    inside = 0 <= i < grid.isize and 0 <= j < grid.jsize
    mine = float(grid.interior(solver.x)[j, i]) if inside else None
    return next(value for value in grid.comm.allgather(mine) if value is not None)


def too_wide(grid):
    """Return whether the field has too many columns to be printed."""
    return grid.imax + 2 * grid.width * grid.nx > WIDEST


def field(solver):
    """Print all ranks' cells with their halos, top row first, if they are few; collective."""
    grid, comm, w = solver.grid, solver.grid.comm, solver.grid.width
    if too_wide(grid):
        return
    everybody = comm.gather(solver.x.copy())
    if comm.Get_rank():
        return
    heads = ["".join(f"{i:9d}   " for i in range(-w, x.shape[1] - w)) for x in everybody[: grid.nx]]
    print("     " + "".join(head + "   " for head in heads))
    for y in reversed(range(grid.ny)):
        row = everybody[y * grid.nx : (y + 1) * grid.nx]
        for j in reversed(range(len(row[0]))):
            cells = ("".join(f"{value:12.6f} " for value in x[j]) for x in row)
            print(f"{j - w:3d}:" + "".join(part + "   " for part in cells))
        print()


def gathered(solver, most):
    """Return the field on rank 0, every n-th cell of at most so many in a direction; None elsewhere; collective."""
    grid = solver.grid
    step = -(-max(grid.imax, grid.jmax) // most)
    j, i = -grid.jbegin % step, -grid.ibegin % step
    mine = grid.interior(solver.x)[j::step, i::step].copy()
    parts = grid.comm.gather(mine)
    if parts is None:
        return None
    return np.block([parts[y * grid.nx : (y + 1) * grid.nx] for y in range(grid.ny)])


def maximum(comm, value):
    """Return the largest of all ranks' values."""
    return comm.allreduce(value, op=MPI.MAX)
