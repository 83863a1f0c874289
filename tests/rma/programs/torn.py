"""Ranks that update elements of several words are killed at any moment: no element is ever half an update's.

All updates add as much to the real as to the imaginary part. Rank 0 kills the others, one after the other, and
looks at the elements after each.
"""

import os
import signal
import sys
import time

import numpy as np
from onesided import MPI, Window, rank, size, world

FLAVOUR = sys.argv[1]
SEED = int(sys.argv[2])
# aligned, misaligned, over a cache line and over pages
PLACES = [("c16", 0), ("c16", 24), ("c16", 57), ("c8", 80), ("c8", 91), ("c16", 4088), ("c8", 8189)]
TYPES = {"c16": MPI.C_DOUBLE_COMPLEX, "c8": MPI.C_FLOAT_COMPLEX}
many = MPI.C_DOUBLE_COMPLEX.Create_vector(20, 1, 2).Commit()  # in one call
FIRST = 12288

w = Window(FLAVOUR, 16384, "u1", disp_unit=1)
w.win.Lock_all()
pids = world.gather(os.getpid())
world.Barrier()


def looked_at():
    """Read every element as an atomic operation, and compare its parts."""
    for dtype, offset in PLACES:
        none, value = np.zeros(1, dtype), np.zeros(1, dtype)
        w.win.Fetch_and_op([none, TYPES[dtype]], [value, TYPES[dtype]], 0, w.byte(0, offset), MPI.NO_OP)
        w.win.Flush(0)
        assert value[0].real == value[0].imag, f"half an update of {dtype} at {offset}: {value[0]}"
    none, values = np.zeros(20, "c16"), np.zeros(20, "c16")
    double = MPI.C_DOUBLE_COMPLEX
    w.win.Get_accumulate([none, 20, double], [values, 20, double], 0, (w.byte(0, FIRST), 1, many), MPI.NO_OP)
    w.win.Flush(0)
    assert (values.real == values.imag).all(), values
    return values.real.sum()


if rank == 0:
    draw = np.random.default_rng(SEED)
    end = time.monotonic() + 20
    while looked_at() == 0:
        assert time.monotonic() < end, "nobody has updated anything"
    for victim in range(1, size):
        time.sleep(draw.uniform(0.01, 0.05))
        os.kill(pids[victim], signal.SIGKILL)
        for _ in range(20):
            looked_at()
    print("whole", flush=True)
    os._exit(0)  # the window can't be freed without the others
draw = np.random.default_rng(SEED + rank)
ones = {dtype: np.full(20, 1 + 1j, dtype) for dtype in TYPES}
old = {dtype: np.zeros(20, dtype) for dtype in TYPES}
while True:
    for dtype, offset in PLACES:
        one, to, datatype = ones[dtype][:1], old[dtype][:1], TYPES[dtype]
        w.win.Accumulate([one, datatype], 0, (w.byte(0, offset), 1, datatype))
        w.win.Fetch_and_op([one, datatype], [to, datatype], 0, w.byte(0, offset))
    w.win.Accumulate([ones["c16"], 20, MPI.C_DOUBLE_COMPLEX], 0, (w.byte(0, FIRST), 1, many))
    w.win.Flush(0)
