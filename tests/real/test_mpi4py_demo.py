"""mpi4py's demonstration programs run unmodified on gormapy, and their results are right."""

import math
import re
import sys

import pytest

SIZES = (1, 2, 4)


def run(mpirun, n, script, stdin=""):
    """Run a program for mpi4py on ``n`` ranks."""
    return mpirun.command(n, sys.executable, "-m", "gormapy.run", script, stdin=stdin, timeout=30).finish()


def midpoints(n):
    """Return what the programs compute: the integral of 4/(1+x^2) by the midpoint rule."""
    return math.fsum(4.0 / (1.0 + ((i - 0.5) / n) ** 2) for i in range(1, n + 1)) / n


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("program", ["cpi-rma.py", "cpi-cco.py"])
def test_pi(mpirun, mpi4py_source, program, size):
    intervals = [1, 100, 10_000]
    script = mpi4py_source / "demo" / "compute-pi" / program
    result = run(mpirun, size, script, "".join(f"{n}\n" for n in [*intervals, 0]))
    found = re.findall(r"pi is approximately ([\d.]+), error is ([\d.]+)", result.stdout)
    assert len(found) == len(intervals), result
    for n, (pi, error) in zip(intervals, found, strict=True):
        assert float(pi) == pytest.approx(midpoints(n), abs=1e-13), result
        assert float(error) == pytest.approx(abs(midpoints(n) - math.pi), abs=1e-13), result


@pytest.mark.parametrize("size", SIZES)
def test_pi_ends_at_end_of_input(mpirun, mpi4py_source, size):
    result = run(mpirun, size, mpi4py_source / "demo" / "compute-pi" / "cpi-rma.py", "100\n")
    assert result.stdout.count("pi is approximately") == 1, result


@pytest.mark.parametrize("size", SIZES)
def test_shared_counter(mpirun, mpi4py_source, size):
    # The program asserts that every number was handed out once; this one shows that it got so far.
    script = mpi4py_source / "demo" / "nxtval" / "nxtval-onesided.py"
    assert "assert sorted(vals) == list(range(len(vals)))" in script.read_text()
    run(mpirun, size, script)
