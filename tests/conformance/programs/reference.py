"""Run the examples whose paths are the arguments."""

import runpy
import sys

from mpi4py import MPI

for path in sys.argv[1:]:
    MPI.COMM_WORLD.Barrier()  # the one before used the same tags
    try:
        runpy.run_path(path)
    except SystemExit as end:
        assert not end.code, end  # what an example does on too few ranks
    print("ran", path, flush=True)
