"""pytest-mpi runs the tests that are marked for a number of ranks, and gives them a folder that all ranks share."""

import sys

import pytest
from mpi4py import MPI

TESTS = """
import pytest
from mpi4py import MPI

@pytest.mark.mpi(min_size=2)
def test_sum():
    assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size

@pytest.mark.mpi(min_size=1000)
def test_of_many_ranks():
    assert False

@pytest.mark.mpi
def test_folder(mpi_tmp_path, mpi_file_name):
    assert len(set(MPI.COMM_WORLD.allgather(str(mpi_tmp_path)))) == 1

@pytest.mark.mpi_skip
def test_alone():
    assert False
"""
if MPI.COMM_WORLD.rank == 0:
    with open("test_of_ranks.py", "w") as file:
        file.write(TESTS)
MPI.COMM_WORLD.Barrier()
status = pytest.main(["-q", "--with-mpi", "-p", "no:cacheprovider", "test_of_ranks.py"])
if status:
    sys.exit(int(status))
print("checked")
