"""PyLops-MPI's own tests of its arrays, which its distribution installs, run by pytest on each rank."""

import os
import sys

import pylops_mpi
import pytest

folder = os.path.join(os.path.dirname(os.path.dirname(pylops_mpi.__file__)), "tests")
tests = [os.path.join(folder, f"test_{name}.py") for name in ("distributedarray", "halo")]
status = pytest.main(["-q", "--with-mpi", "-p", "no:cacheprovider", "-x", *tests])
if status:
    sys.exit(int(status))
print("checked")
