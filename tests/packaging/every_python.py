"""Builds a wheel of the source distribution in dist/ with every CPython 3.10 or
newer that is found, installs it into a new environment and runs a job of two.

    python tests/packaging/every_python.py [PYTHON...]

With --newest it prints the path of the newest one, and builds nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 600

PROGRAM = """
import sys, numpy
from gormapy import MPI
comm = MPI.COMM_WORLD
total = numpy.zeros(1)
comm.Allreduce(numpy.array([comm.rank + 1.0]), total)
assert total[0] == 3, total
if comm.rank == 0:
    print("two ranks on", sys.version.split()[0])
"""


def interpreters():
    """One interpreter for each minor version, from PATH and from pyenv."""
    found = {}
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = [shutil.which(f"python3.{minor}", path="/usr/local/bin:/usr/bin") for minor in range(10, 30)]
    for path in [*sorted(versions.glob("3.*/bin/python")), *filter(None, on_path)]:
        probe = "import sys; print('%d.%d' % sys.version_info[:2], sys.version_info >= (3, 10))"
        done = subprocess.run([path, "-c", probe], capture_output=True, text=True, timeout=30)
        version, _, wanted = done.stdout.strip().partition(" ")
        if wanted == "True":
            found.setdefault(version, str(path))
    return found


def attempt(python, source, folder):
    def run(*command):
        subprocess.run(command, check=True, timeout=TIMEOUT, cwd=folder, stdin=subprocess.DEVNULL)

    started = time.monotonic()
    env = Path(folder) / "env"
    pip = [env / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(python, "-m", "venv", env)
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, source)
    (wheel,) = Path(folder).glob("*.whl")
    run(*pip, "install", wheel)
    run(env / "bin/mpiexec", "-n", "2", env / "bin/python", "-c", PROGRAM)
    print(f"passed: {wheel.name} in {time.monotonic() - started:.0f} s", flush=True)


def main():
    if sys.argv[1:] == ["--newest"]:
        found = {tuple(map(int, version.split("."))): path for version, path in interpreters().items()}
        print(found[max(found)])
        return
    (source,) = (ROOT / "dist").glob("*.tar.gz")
    failed = []
    for python in sys.argv[1:] or interpreters().values():
        with tempfile.TemporaryDirectory() as folder:
            try:
                attempt(python, source, folder)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                failed.append(python)
                print(f"failed: {python}: {error}", flush=True)
    raise SystemExit(f"failed with {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
