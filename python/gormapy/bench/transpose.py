"""Transposes by derived datatypes: one call moves a matrix and turns it."""

import numpy as np

from .timing import BUDGET, row, single
from .windows import FLAVOURS, window

N = 1024


def transpose(MPI, comm, budget=BUDGET):
    """Time Put and Get of 1024 x 1024 doubles that a derived type at the target or the origin transposes."""
    if comm.size < 2:
        raise SystemExit("transpose: it takes 2 ranks, and there is 1: use -n 2")
    made_types = _types(MPI)
    for flavour in ("allocate", "create"):
        with window(MPI, comm, flavour, 8 * N * N) as made:
            if comm.rank == 0:
                made.win.Lock(1, MPI.LOCK_SHARED)
                for what, times in _loops(MPI, made, made_types, budget):
                    yield row(f"{what}, {FLAVOURS[flavour]}", times, size=8 * N * N)
                made.win.Unlock(1)
            comm.Barrier()
    for made_type in made_types:
        made_type.Free()


def _types(MPI):
    """Return a column that can be repeated, all columns one after the other, and the two that it took."""
    column = MPI.DOUBLE.Create_vector(N, 1, N)
    repeated = column.Create_resized(0, 8)
    columns = column.Create_hvector(N, 1, 8)
    for made in (repeated, columns):
        made.Commit()
    return repeated, columns, column


def _loops(MPI, made, types, budget):
    """Yield what is measured, and its times; the data of each is checked once."""
    win, flush = made.win, made.win.Flush
    repeated, columns, _ = types
    matrix, got = np.arange(N * N, dtype="d").reshape(N, N), np.zeros((N, N))
    shapes = (
        ("hvector of columns at the origin", [1, columns], (0, N * N, MPI.DOUBLE)),
        ("vector of columns at the target", [N * N, MPI.DOUBLE], (0, N, repeated)),
        ("hvector of columns at the target", [N * N, MPI.DOUBLE], (0, 1, columns)),
    )
    for name in ("Put", "Get"):
        transfer = getattr(win, name)
        for shape, origin, target in shapes:
            memory = matrix if name == "Put" else got

            def call(transfer=transfer, spec=(memory, *origin), target=target):
                transfer(spec, 1, target)
                flush(1)

            times = single(call, budget)
            if name == "Put":  # what is there comes back as it is
                win.Get(got, 1)
            else:
                win.Put(matrix, 1)
                flush(1)
                call()
            flush(1)
            if not np.array_equal(got, matrix.T):
                raise RuntimeError(f"transpose: {name} with a {shape} did not transpose")
            got[:] = 0
            yield f"{name} 1024 x 1024 doubles, {shape}", times
