"""Libraries of others, installed when the tests run, with mpi4py over MPICH to compare with."""

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest
from catalogue import COMPARED, PROGRAMS

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "thirdparty"
ENVIRONMENT = CACHE / "env"
MADE = ENVIRONMENT / "made.json"
ROWS = CACHE / "rows.json"
INSTALLATION = 1800  # seconds


def pip_install(*requirements):
    """Install packages; return what pip says if it can't."""
    pip = [ENVIRONMENT / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    command = [*pip, "--prefer-binary", *COMPARED, *requirements]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALLATION)
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stdout.splitlines() if "error" in line.lower()]
    return "; ".join(errors[-2:]) or f"pip ended with status {done.returncode}"


def make():
    """Make the environment; return for each program why its packages can't be installed, or an empty text."""
    command = [sys.executable, "-m", "venv", "--clear", ENVIRONMENT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
    if reason := pip_install():
        pytest.skip(f"mpi4py and MPICH can't be installed: {reason}")
    if not pip_install(*(requirement for program in PROGRAMS for requirement in program.requirements)):
        return {program.name: "" for program in PROGRAMS}
    # One after the other, to know which are at fault.
    return {program.name: pip_install(*program.requirements) for program in PROGRAMS}


@pytest.fixture(scope="session")
def installed():
    """Return for each program why its packages are not in the environment, or an empty text."""
    CACHE.mkdir(parents=True, exist_ok=True)
    wanted = json.loads(json.dumps([COMPARED, sys.version_info[:2], [p.requirements for p in PROGRAMS]]))
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = json.loads(MADE.read_text()) if MADE.exists() else {}
        if made.get("wanted") != wanted:
            made = {"wanted": wanted, "failed": make()}
            MADE.write_text(json.dumps(made))
    return made["failed"]


@pytest.fixture(scope="session")
def table():
    """Return a function that adds a row to the table of outcomes, which has the last outcome of each run."""

    def add(program, n, mpich, gormapy, reason=""):
        with open(CACHE / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = json.loads(ROWS.read_text()) if ROWS.exists() else {}
            rows[f"{program.name} {n}"] = [
                program.title,
                n,
                *outcome(mpich),
                *outcome(gormapy),
                reason.replace("|", "/"),
            ]
            ROWS.write_text(json.dumps(rows))
            names = [f"{p.name} {k}" for p in PROGRAMS for k in p.sizes]
            lines = [rows[name] for name in names if name in rows]
            head = ["program", "n", "MPICH", "s", "gormapy", "s", "reason"]
            text = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] * len(head), *lines])
            (CACHE / "table.md").write_text(text + "\n")

    return add


def outcome(run):
    """Return the two columns of a run."""
    return ("", "") if run is None else ("passes" if run.passed else "fails", f"{run.seconds:.1f}")
