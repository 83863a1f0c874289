"""What goes wrong with files: the class on every rank, a text that says what to do, and nothing left behind."""

import os
import subprocess

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


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
        program.permissions,
        str(tmp_path / "secret"),
        str(tmp_path / "new"),
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
            program.file_system_that_fills_up,
            str(small),
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


@pytest.mark.shm("is about exchanges by the board")
@pytest.mark.parametrize("n", [2, 3, 7])
def test_given_up(ranks, n):
    """By Ctrl-C, of one rank."""
    ranks(n, program.given_up)


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
