"""What goes wrong with files: the class on every rank, a text that says what to do, and nothing left behind."""

import os
import subprocess

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


HEAD = """
import gc, os, signal, sys, time
import numpy as np
from rankside import MPI, fails, interrupted, rank, reset, size, world

def descriptors():
    # only what belongs to files: the core opens others when it likes
    links = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
    mapped = [line for line in open("/proc/self/maps") if "file pointer" in line]
    return sorted(link for link in links if link.startswith(os.getcwd()) or "file pointer" in link) + mapped

RW = MPI.MODE_RDWR | MPI.MODE_CREATE
"""


@pytest.mark.parametrize("n", (1, 3))
def test_opening(mpirun, n):
    mpirun(
        n,
        program.opening,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can become somebody else")
def test_permissions(mpirun, tmp_path):
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "secret").chmod(0)
    tmp_path.chmod(0o755)
    mpirun(
        2,
        HEAD
        + f"""
os.seteuid(65534)
try:
    with fails(MPI.ERR_ACCESS, "permissions"):
        MPI.File.Open(MPI.COMM_SELF, {str(tmp_path / "secret")!r})
    with fails(MPI.ERR_ACCESS, "permissions"):
        MPI.File.Open(MPI.COMM_SELF, {str(tmp_path / "new")!r}, RW)
    with fails(MPI.ERR_ACCESS):
        MPI.File.Delete({str(tmp_path / "secret")!r})
finally:
    os.seteuid(0)
""",
    )


@pytest.mark.parametrize("n", (1, 2))
def test_access(mpirun, n):
    mpirun(
        n,
        program.access,
    )


def test_no_space(mpirun):
    mpirun(
        2,
        program.no_space,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_file_system_that_fills_up(mpirun, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        mpirun(
            2,
            HEAD
            + f"""
f = MPI.File.Open(world, {str(small / "x")!r}, RW | MPI.MODE_DELETE_ON_CLOSE)
b = np.ones(1 << 20, "u1")
f.Set_view(rank, MPI.BYTE, MPI.BYTE.Create_vector(1 << 20, 1, 2).Commit())
with fails(MPI.ERR_NO_SPACE, "space"):
    f.Write_all(b)
with fails(MPI.ERR_NO_SPACE):
    f.Preallocate(4 << 20)
f.Set_size(0)
f.Set_view()
f.Write_at_all(rank << 10, b[: 1 << 10])  # works again
assert f.Get_size() == 2 << 10
f.Close()
assert not os.listdir({str(small)!r})
""",
        )
    finally:
        subprocess.run(["umount", small], check=True)


def test_error_handlers(mpirun):
    mpirun(
        1,
        program.error_handlers,
    )
    result = mpirun(
        2,
        program.error_handlers_2,
        expect=ANY,
    )
    assert result.status == 13, result  # ERR_ARG
    assert "The error handler of the file is ERRORS_ARE_FATAL" in result.stderr


def test_descriptors(mpirun):
    """A file that is dropped without Close, and one that is closed, leave nothing open."""
    mpirun(
        2,
        program.descriptors_left,
    )


def test_interrupts_and_deaths(mpirun):
    """A collective that the others do not join ends by Ctrl-C, or when one of them dies."""
    mpirun(
        3,
        program.interrupts_and_deaths,
    )


def test_end_in_the_middle(mpirun):
    """A rank that ends in the middle of collective writes: the others are told, and nothing stays open."""
    mpirun(
        3,
        program.end_in_the_middle,
    )


def test_interrupted_open(mpirun):
    mpirun(
        2,
        program.interrupted_open,
    )
