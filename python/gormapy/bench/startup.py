"""The time to start and to end a job, measured from outside."""

import importlib.util
import os
import subprocess
import sys
from time import perf_counter

from .timing import row

PROGRAM = "from {package} import {name} as MPI; MPI.COMM_WORLD.Barrier()"


def program(module):
    """Return the smallest program that uses an MPI module."""
    package, _, name = module.rpartition(".")
    return PROGRAM.format(package=package, name=name)


def environment():
    """Return the environment for ranks of the gormapy that this process uses."""
    env = dict(os.environ)
    # An installed package has its bytecode; that of a source tree is made by the first rank, and not by all of them.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    # A gormapy of the source tree is found by those ranks too that start elsewhere.
    package = importlib.util.find_spec("gormapy")
    if package is not None and package.origin is not None:
        tree = os.path.dirname(os.path.dirname(package.origin))
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [tree, env.get("PYTHONPATH")]))
    return env


def startup(module, mpiexec, ranks, repeat=10):
    """Time jobs that only pass a barrier, and the same program without a launcher."""
    env = environment()
    rows = []
    for what, command in (
        (f"job of {ranks} ranks: import, Barrier, end", [*mpiexec, "-n", str(ranks), sys.executable]),
        ("one process without a launcher", [sys.executable]),
        ("Python alone, importing NumPy", None),
    ):
        line = [*command, "-c", program(module)] if command else [sys.executable, "-c", "import numpy"]
        seconds = []
        for n in range(repeat + 1):
            begin = perf_counter()
            subprocess.run(line, env=env, check=True, timeout=60, stdin=subprocess.DEVNULL)
            if n:  # the first one fills the caches
                seconds.append(perf_counter() - begin)
        rows.append(row(what, seconds))
    return rows
