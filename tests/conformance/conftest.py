"""mpi4py's own tests and demonstrations, fetched when a test runs: none of them is in this repository."""

import pytest
from support import mpi4py


@pytest.fixture(scope="session")
def mpi4py_source(tmp_path_factory):
    """Return the folder of mpi4py's source distribution."""
    return mpi4py.unpacked(tmp_path_factory.mktemp("mpi4py"))
