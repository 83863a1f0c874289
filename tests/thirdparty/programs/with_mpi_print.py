"""mpi_print names the rank before what it prints."""

import io

from mpi4py import MPI
from mpi_print import mpi_rank, print

text = io.StringIO()
print("hello", file=text)
assert mpi_rank() == MPI.COMM_WORLD.rank
assert f"MPI rank: {MPI.COMM_WORLD.rank}" in text.getvalue() and "hello" in text.getvalue()
print("checked")
