"""SHIFT transforms a field that is distributed over the ranks, and back."""

import numpy as np
from shift.cart import mpi_fft2D, mpi_ifft2D
from shift.mpiutils import MPI

tool = MPI()
field = np.random.default_rng(1).normal(size=(12, 12))
mine = field[tool.split(12)[0][tool.rank] : tool.split(12)[1][tool.rank]]
modes = mpi_fft2D(mine, 1.0, 12, tool)
assert np.allclose(mpi_ifft2D(modes, 1.0, 12, tool).real, mine)
print("checked")
