"""What an installed gormapy has to do. Runs by the Python that it is installed for, and needs nothing else:

    python suite.py [--short] [PROGRAM...]

--short is for emulated machines. PROGRAM... are the words that start mpiexec, if it is not beside Python.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMEOUT = 600
RANKS = Path(__file__).with_name("ranks.py")


def launchers(given):
    """The program, by the names that it is installed under, and by Python."""
    found = [Path(sys.executable).parent / name for name in ("mpiexec", "gormapy-mpiexec")]
    installed = [[str(path)] for path in found if path.exists()] or [given]
    return [*installed, [sys.executable, "-m", "gormapy.launch"]]


def run(*command, expect=0, **options):
    done = subprocess.run(
        [os.fspath(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT, **options
    )
    assert done.returncode == expect, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def versions(mpiexec):
    import gormapy

    for launcher in launchers(mpiexec):
        assert gormapy.__version__ in run(*launcher, "--version")


def by_a_link(mpiexec):
    """A link to the installed script finds the package, too."""
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "start"
        link.symlink_to(mpiexec[-1])
        assert run(link, "-n", "2", "echo", "started").split() == ["started"] * 2


def info(mpiexec):
    assert "transports" in run(sys.executable, "-m", "gormapy", "info").lower()


def one_rank(mpiexec):
    assert "all of 1 passed" in run(sys.executable, RANKS)


def two_ranks(mpiexec):
    assert "all of 2 passed" in run(*mpiexec, "-n", "2", sys.executable, RANKS)


def four_ranks(mpiexec):
    assert "all of 4 passed" in run(*mpiexec, "-n", "4", sys.executable, RANKS)


def by_tcp(mpiexec):
    env = {**os.environ, "GORMAPY_FABRIC": "tcp"}
    assert "all of 2 passed" in run(*mpiexec, "-n", "2", sys.executable, RANKS, env=env)


def a_program_of_mpi4py(mpiexec):
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"
    assert run(*mpiexec, "-n", "2", sys.executable, "-m", "gormapy.run", "-c", program).split() == ["2", "2"]


def a_rank_that_fails(mpiexec):
    program = "from gormapy import MPI; MPI.COMM_WORLD.rank or 1 / 0; MPI.COMM_WORLD.Barrier()"
    run(*mpiexec, "-n", "2", sys.executable, "-c", program, expect=1)


def example(mpiexec):
    run(*mpiexec, "-n", "4", sys.executable, "-m", "gormapy.examples.demo")


def bench(mpiexec):
    assert "Put 8 B" in run(sys.executable, "-m", "gormapy.bench", "put_latency", "--budget", "0.02")


def cell(mpiexec):
    """A %%mpi cell, by IPython without a kernel."""
    if importlib.util.find_spec("IPython") is None:
        return "skipped: no IPython"
    program = (
        "from IPython.core.interactiveshell import InteractiveShell as S\n"
        "s = S.instance()\n"
        "s.run_line_magic('load_ext', 'gormapy')\n"
        "s.run_cell_magic('mpi', '-n 2', 'from gormapy import MPI\\nx = MPI.COMM_WORLD.allreduce(1)')\n"
        "s.run_cell_magic('mpi', '', 'print(\"x is\", x)')\n"
    )
    assert run(sys.executable, "-c", program).count("x is 2") == 2


FAST = [versions, one_rank, two_ranks, a_rank_that_fails]
ALL = [*FAST, by_a_link, info, four_ranks, by_tcp, a_program_of_mpi4py, example, bench, cell]


def main(arguments):
    short = "--short" in arguments
    given = [word for word in arguments if word != "--short"]
    mpiexec = launchers(given or ["mpiexec"])[0]
    failed = 0
    for test in FAST if short else ALL:
        began = time.monotonic()
        try:
            outcome = test(mpiexec) or "passed"
        except Exception as error:
            outcome, failed = f"FAILED: {error}", failed + 1
        print(f"{time.monotonic() - began:6.1f} s  {test.__name__.replace('_', ' ')}: {outcome}", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
