"""Installs the wheels of dist/ where they are to run, and runs suite.py there.

    python tests/packaging/wheels [PLACE...]

  here      every CPython 3.10 or newer of this machine, in a new environment; pip chooses the wheel
  colab     likewise one of them as root with 64 MiB of /dev/shm
  testing   Debian testing: newer Pythons and the newest glibc; needs root
  oldest    the oldest Debian that there is: the binaries are loaded by an older glibc; needs root
  aarch64   an emulated machine with a kernel of its own: gormapy on 1 and 2 ranks
  docker    the image of docs/containers/Dockerfile, under Docker's daemon with its seccomp profile, and without; needs root
  apptainer the image of docs/containers/gormapy.def; needs root

Roots and kernels are kept in .cache/wheels.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent)]

import containers  # noqa: E402
import guest  # noqa: E402
import roots  # noqa: E402
from every_python import interpreters  # noqa: E402

DIST = ROOT / "dist"
CACHE = ROOT / ".cache/wheels"
LIMIT = 900
SUITE = [HERE / "suite.py", HERE / "ranks.py"]
failed = []


def say(*words):
    print("==", *words, flush=True)


def suite(where, *command, **options):
    done = subprocess.run([os.fspath(word) for word in command], stdin=subprocess.DEVNULL, timeout=LIMIT, **options)
    if done.returncode:
        failed.append(where)


def environment(python, folder):
    """A new environment of this Python with the wheel that pip chooses."""
    env = Path(folder) / "env"
    subprocess.run([python, "-m", "venv", env], check=True)
    pip = [env / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--only-binary", ":all:", "numpy", "ipython"], check=True)
    subprocess.run([*pip, "--no-index", "--no-deps", "--pre", "--find-links", DIST, "gormapy"], check=True)
    return env / "bin/python"


def clean():
    """What the tree and other tests set must not be seen."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GORMAPY_"))}


def here():
    for version, python in interpreters().items():
        with tempfile.TemporaryDirectory() as folder:
            say("CPython", version, "here")
            made = environment(python, folder)
            suite(f"CPython {version}", made, "-I", SUITE[0], cwd=folder, env=clean())


def colab():
    found = interpreters()
    version = "3.12" if "3.12" in found else max(found)
    with tempfile.TemporaryDirectory() as folder:
        say("CPython", version, "as root with 64 MiB of /dev/shm and two cores")
        made = environment(found[version], folder)
        small = 'mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm && exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", small, "sh", "taskset", "-c", "0,1"]
        suite("colab", *words, made, "-I", SUITE[0], cwd=folder, env=clean())


def inside(root, *command):
    """The words that run a command in a root file system of its own processes, with /dev/shm."""
    script = (
        f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev && mount -t tmpfs tmpfs {root}/dev/shm && "
        f'mount -t tmpfs tmpfs {root}/tmp && exec chroot {root} "$@"'
    )
    env = ["/usr/bin/env", "-i", "PATH=/site/bin:/usr/bin:/bin", "HOME=/root", "PYTHONPATH=/site", "LC_ALL=C.UTF-8"]
    return ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", *env, *command]


def bring_suite(root):
    (root / "suite").mkdir(exist_ok=True)
    for file in SUITE:
        shutil.copy(file, root / "suite")


def testing():
    root = CACHE / "testing"
    roots.debian(root, "testing", "amd64", ["python3.14", "python3.15", "libstdc++6", "dash", "coreutils"])
    bring_suite(root)
    for version in ("3.14", "3.15"):
        say("CPython", version, "in Debian testing")
        try:
            roots.install(root / "site", DIST, version, "x86_64", ["ipython"])
        except SystemExit as error:  # no NumPy, yet
            say("skipped:", error)
            continue
        python = f"/usr/bin/python{version}"
        suite(f"CPython {version}", *inside(root, python, "/suite/suite.py", "/site/bin/mpiexec"))


# Loads the extension with every symbol that it needs of the C library; Python 3.9 has those of its own.
LOAD = "import ctypes, os; ctypes.CDLL('/site/gormapy/_gormapy.abi3.so', os.RTLD_NOW); print('loaded')"


def oldest():
    root = CACHE / "oldest"
    roots.debian(root, "bullseye", "amd64", ["python3", "libstdc++6", "dash", "coreutils"])
    say("glibc 2.31 of Debian 11, whose Python is too old for gormapy itself")
    roots.install(root / "site", DIST, "3.11", "x86_64")
    suite("Debian 11, mpiexec", *inside(root, "/site/bin/mpiexec", "-n", "4", "/bin/echo", "started"))
    suite("Debian 11, extension", *inside(root, "/usr/bin/python3", "-c", LOAD))


def aarch64():
    for suite_name, version in (("bookworm", "3.11"), ("testing", "3.14")):
        root = CACHE / f"{suite_name}-arm64"
        say(f"CPython {version} of Debian {suite_name} on an emulated aarch64")
        roots.debian(root, suite_name, "arm64", [f"python{version}", "libstdc++6", "dash", "coreutils"])
        roots.install(root / "site", DIST, version, "aarch64")
        bring_suite(root)
        command = f"PYTHONPATH=/site python{version} /suite/suite.py --short /site/bin/mpiexec"
        if not guest.run(CACHE / "guest", root, command, LIMIT):
            failed.append(f"aarch64, {suite_name}")


# What the rank sees of the other one's memory.
WAY = (
    "from gormapy import MPI; from gormapy._ext import core; import numpy as np;"
    "win = MPI.Win.Create(np.zeros(4), 8, comm=MPI.COMM_WORLD); print(core.WinPath(win._h, 1 - MPI.COMM_WORLD.rank)); win.Free()"
)


def docker():
    with containers.daemon(CACHE) as run:
        say("docs/containers/Dockerfile, by Docker", run("version", "--format", "{{.Server.Version}}").strip())
        containers.docker_image(run, CACHE, DIST)
        words = ["run", "--rm", "--network", "none", "--cpus", "2", "-v", f"{HERE}:/suite:ro"]
        assert "container  docker" in run(*words, "gormapy")
        # Docker's profile has allowed copies since version 23.
        profile = "message" if int(run("version", "--format", "{{.Server.Version}}").partition(".")[0]) < 23 else "copy"
        for options, way in (
            ([], profile),
            (["--user", "1000:1000", "--cap-drop", "ALL", "--read-only", "--tmpfs", "/tmp"], profile),
            (["--security-opt", "seccomp=unconfined"], "copy"),
        ):
            say("docker run", *options)
            found = run(*words, *options, "gormapy", "mpiexec", "-n", "2", "python", "-c", WAY).split()
            say("puts to memory that is not shared:", *sorted(set(found)))
            if found != [way] * 2:
                failed.append("docker, copies")
            if options[:1] != ["--security-opt"]:
                print(run(*words, *options, "gormapy", "python", "/suite/suite.py", "/usr/local/bin/mpiexec"), end="")


def apptainer():
    words = containers.apptainer(CACHE)
    say("docs/containers/gormapy.def")
    containers.image(CACHE)
    (CACHE / "gormapy.sif").unlink(missing_ok=True)
    base, made = (f"/clone/.cache/wheels/{name}" for name in ("python", "gormapy.sif"))
    build = ["build", "--build-arg", "bootstrap=localimage", "--build-arg", f"image={base}", made]
    suite("apptainer build", *words(*build, "docs/containers/gormapy.def"))
    launcher = "/usr/local/bin/mpiexec"
    suite(
        "apptainer",
        *words("run", "--bind", "/clone", made, "python", f"/clone/{HERE.relative_to(ROOT)}/suite.py", launcher),
    )


PLACES = {"here": here, "colab": colab, "testing": testing, "oldest": oldest, "aarch64": aarch64}
PLACES |= {"docker": docker, "apptainer": apptainer}


def main(names):
    if not list(DIST.glob("*.whl")):
        raise SystemExit("dist/ has no wheels: make wheels")
    if unknown := set(names) - set(PLACES):
        raise SystemExit(f"no such place: {', '.join(sorted(unknown))}\n{__doc__}")
    for name in names or PLACES:
        PLACES[name]()
    say(f"failed: {', '.join(failed)}" if failed else "all passed")
    raise SystemExit(bool(failed))


main(sys.argv[1:])
