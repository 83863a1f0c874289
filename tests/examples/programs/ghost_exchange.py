"""The programs of test_ghost_exchange.py."""

import math

import numpy as np
from rankside import fails, one_node

from gormapy import MPI
from gormapy.examples.ghost_exchange.device import DeviceSolver
from gormapy.examples.ghost_exchange.grid import Grid
from gormapy.examples.ghost_exchange.kernel import load
from gormapy.examples.ghost_exchange.methods import METHODS
from gormapy.examples.ghost_exchange.solver import Solver
from gormapy.examples.ghost_exchange.total import checksum, global_sum


def compare_with_a_serial_model(kernel, solver, overlap=False):
    """Compare each rank's part, with its halo, with that of a model which knows nothing of ranks."""
    make = {"Solver": Solver, "DeviceSolver": DeviceSolver}[solver]
    comm, steps, imax, jmax = MPI.COMM_WORLD, 4, 29, 31
    field = np.exp(
        -0.5
        * (
            (np.arange(imax) - imax / 2) ** 2 / (0.01 * imax * jmax) ** 2
            + ((np.arange(jmax) - jmax / 2) ** 2 / (0.01 * imax * jmax) ** 2)[:, None]
        )
    )
    for _ in range(steps):
        f = np.pad(field, 1, mode="edge")
        field = (f[1:-1, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:] + f[:-2, 1:-1] + f[2:, 1:-1]) / 5.0

    seen, count = set(), 0
    for nx in [nx for nx in range(1, comm.size + 1) if comm.size % nx == 0]:
        for corners, width in [(False, 1), (True, 1), (False, 2), (True, 3)]:
            grid = Grid(comm, nx, comm.size // nx, imax, jmax, width)
            padded = np.pad(field, width, mode="edge")
            expected = padded[grid.jbegin :, grid.ibegin :][: grid.shape[0], : grid.shape[1]]
            compared = np.ones(grid.shape, bool)
            if not corners:
                compared[:width, :width] = compared[:width, -width:] = False
                compared[-width:, :width] = compared[-width:, -width:] = False
            for method, way in METHODS.items():
                for memory in way.MEMORIES if way.OVERLAPS or not overlap else ():
                    what = nx, method, memory, corners, width
                    count += 1
                    if memory == "shared" and not one_node:
                        with fails(MPI.ERR_RMA_SHARED):
                            make(grid, method, memory, corners, load(kernel))
                        continue
                    made = make(grid, method, memory, corners, load(kernel), overlap=overlap)
                    assert made.self_test() == 0, what
                    made.start()
                    for _ in range(steps):
                        made.advance()
                    assert np.array_equal(made.x[compared], expected[compared]), what
                    seen.add((checksum(grid, made.x), global_sum(grid, made.x)))
                    made.free()
    assert len(seen) == 1
    if comm.rank == 0:
        assert seen.pop()[1] == math.fsum(field.ravel())
        print(count)
