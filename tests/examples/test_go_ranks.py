"""A Go program is a rank: alone, among its like, and beside Python ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ringlines import ring_lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def go_ring(tmp_path_factory):
    """Build the ring with the Go that builds the package."""
    ring = tmp_path_factory.mktemp("go") / "ring"
    command = [sys.executable, "-m", "gormapy_build", "go", "build", "-o", str(ring), "./gocore/examples/ring"]
    env = dict(os.environ, PYTHONPATH=str(ROOT / "pybind" / "build"), CGO_ENABLED="0")
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return ring


def test_go_ring(mpirun, go_ring, n):
    assert mpirun.command(n, go_ring).finish().lines == ring_lines(n)


def test_go_ring_without_a_launcher(go_ring):
    done = subprocess.run([go_ring], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout.splitlines()) == (0, ring_lines(1))


@pytest.mark.parametrize("go_rank", [0, 1, 3])
def test_go_and_python_ranks_in_one_ring(mpirun, go_ring, go_rank):
    choose = 'if [ "$GORMAPY_JOB_RANK" = "$0" ]; then exec "$1"; else exec "$2" -m gormapy.examples.ring; fi'
    job = mpirun.command(4, "bash", "-c", choose, go_rank, go_ring, sys.executable)
    assert job.finish().lines == ring_lines(4)
