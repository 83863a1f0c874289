"""Tests that pass, on any number of ranks."""

import os

import pytest

from gormapy import MPI

made = []


@pytest.fixture(scope="module")
def window():
    memory = MPI.Win.Allocate(8, comm=MPI.COMM_WORLD)
    made.append("window")
    yield memory
    memory.Free()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("session")


def test_here():
    assert MPI.COMM_WORLD.size == 1


def test_comm(comm, request):
    assert comm.size == MPI.COMM_WORLD.size == request.config.option.mpi_ranks
    assert comm != MPI.COMM_WORLD
    assert comm.allreduce(1) == comm.size


@pytest.mark.mpi
def test_fixture_of_the_module(window):
    window.Fence()
    window.Fence()


@pytest.mark.mpi
def test_fixture_of_the_module_again(window, folder):
    assert made == ["window"]
    window.Fence()
    window.Fence()


@pytest.mark.mpi
@pytest.mark.parametrize("count", [1, 1000], ids=["one", "größer"])
def test_parametrized(comm, count):
    assert comm.allgather(bytes(count)) == [bytes(count)] * comm.size


@pytest.mark.mpi
class TestClass:
    def test_method(self, comm, mpi_ranks):
        assert comm.size == mpi_ranks


def test_folders(comm, tmp_path, mpi_tmp_path, mpi_file_name):
    assert len(set(comm.allgather(str(tmp_path)))) == comm.size
    assert set(comm.allgather(str(mpi_tmp_path))) == {str(mpi_tmp_path)}
    (mpi_tmp_path / str(comm.rank)).touch()
    comm.Barrier()
    assert len(os.listdir(mpi_tmp_path)) == comm.size
    assert set(comm.allgather(mpi_file_name)) == {mpi_file_name}


@pytest.mark.mpi
def test_captured_by_the_test(capfd, comm):
    print("rank", comm.rank)
    os.write(2, b"\xc3\xa4")
    assert capfd.readouterr() == (f"rank {comm.rank}\n", "ä")


def test_environment(comm, monkeypatch):
    monkeypatch.setenv("GORMAPY_TEST_OF_RANK", str(comm.rank))
    assert comm.allgather(os.environ["GORMAPY_TEST_OF_RANK"]) == [str(rank) for rank in range(comm.size)]


def test_here_again():
    assert "GORMAPY_TEST_OF_RANK" not in os.environ
