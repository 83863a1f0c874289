"""MPICH and its launcher Hydra, to test beside."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mpich():
    """Return the folder of programs of an environment with mpi4py and the wheel of MPICH.

    It is made on first use, unless GORMAPY_TEST_MPICH names one.
    """
    if given := os.environ.get("GORMAPY_TEST_MPICH"):
        return Path(given) / "bin"
    folder = Path(__file__).parents[2] / ".cache" / "mpich"
    folder.parent.mkdir(exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker of pytest-xdist makes it
        if not (folder / "made").exists():
            pip = [str(folder / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check"]
            for step in ([sys.executable, "-m", "venv", str(folder)], [*pip, "install", "mpich==5.*", "mpi4py==4.*"]):
                done = subprocess.run(step, capture_output=True, text=True, timeout=300)
                if done.returncode:
                    pytest.skip(f"MPICH can't be installed: {done.stderr.strip()[-200:]}")
            (folder / "made").touch()
    return folder / "bin"
