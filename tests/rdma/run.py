"""Run the steps of ``steps.py`` on this machine's RDMA devices, or in a guest that has some.

It is also the program that runs inside the guest: with ``--here``.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
TESTS = TREE / ".cache" / "rdma"
GUEST = HERE / "guest" / "rxe-guest"

sys.path.insert(0, str(HERE))
from steps import GO_TESTS, STEPS, Step  # noqa: E402


def has_device() -> bool:
    folder = Path("/sys/class/infiniband")
    return folder.is_dir() and any(folder.iterdir())


def no_guest() -> str:
    """Say why there can be no guest here, or nothing."""
    if shutil.which("apt-get") is None and shutil.which("qemu-system-x86_64") is None:
        return "there is no RDMA device, and no apt-get to install QEMU with"
    if os.uname().machine != "x86_64":
        return f"there is no RDMA device, and the guest is for x86_64, not {os.uname().machine}"
    done = subprocess.run([GUEST, "setup", *([] if os.geteuid() == 0 else ["--no-apt"])])
    if done.returncode:
        root = "" if os.geteuid() == 0 else " (as root it would install what is missing)"
        return f"there is no RDMA device, and the guest can't be set up{root}"
    return ""


def build(go: list[str]) -> None:
    TESTS.mkdir(parents=True, exist_ok=True)
    for name, package in GO_TESTS.items():
        binary = TESTS / f"{name}.test"
        binary.unlink(missing_ok=True)
        command = [*go, "test", "-c", "-o", str(binary), package]
        if name.endswith("-asan"):
            # Go's -asan needs gcc and its libasan, whatever compiles the rest; a step without its binary is skipped.
            root = subprocess.run([*go, "env", "GOROOT"], cwd=TREE, capture_output=True, text=True, check=True)
            command = [f"{root.stdout.strip()}/bin/go", *command[len(go) : -3], "-asan", *command[-3:]]
            env = {**os.environ, "CC": "gcc", "CGO_ENABLED": "1"}
            done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, env=env)
            if done.returncode:
                print(f"test-rdma: no {name}: {(done.stdout + done.stderr).strip()[-300:]}")
        else:
            subprocess.run(command, cwd=TREE, check=True)
    # The guest can't fetch mpi4py's tests; without them their step is skipped.
    fetch = "import sys; sys.path[:0] = ['tests/conformance', 'tests']; import conftest; conftest.download()"
    subprocess.run([sys.executable, "-c", fetch], cwd=TREE, stderr=subprocess.DEVNULL)
    warm()


def warm() -> None:
    """Compile modules, which takes 20 times as long inside. tests/support/mpirun.py has its jobs look there."""
    cache = {"PYTHONPYCACHEPREFIX": str(TREE / ".cache" / "bytecode"), "PYTHONPATH": str(TREE / "python")}
    imports = "import gormapy.MPI, gormapy.__main__, numpy, numpy.random, pytest, subprocess, tempfile, threading"
    subprocess.run([sys.executable, "-c", imports], cwd=TREE, env={**os.environ, **cache})


def missing(step: Step) -> str:
    """Say which binary of a step could not be built."""
    wanted = re.findall(r"\$TESTS/(\S+)", step.command)
    return " ".join(name for name in wanted if not (TESTS / name).exists())


def run_step(step: Step) -> tuple[str, float]:
    """Run one step and end whatever it leaves behind."""
    print(f"\n=== {step.name}: {step.command}", flush=True)
    if lacks := missing(step):
        print(f"skipped: there is no {lacks}")
        return "skipped", 0.0
    start = time.monotonic()
    env = {
        **os.environ,
        "TESTS": str(TESTS),
        "PYTHON": sys.executable,
        "PYTHONPATH": str(TREE / "python"),
        "PYTHONPYCACHEPREFIX": str(TREE / ".cache" / "bytecode"),
    }
    child = subprocess.Popen(["bash", "-o", "pipefail", "-c", step.command], cwd=TREE, env=env, start_new_session=True)
    try:
        status = child.wait(step.limit)
        result = "ok" if status == 0 else "skipped" if status == 77 else f"failed ({status})"
    except subprocess.TimeoutExpired:
        # Go prints its stacks, and Python (faulthandler) may.
        os.killpg(child.pid, signal.SIGQUIT)
        time.sleep(5)
        result = f"no end after {step.limit} s"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return result, time.monotonic() - start


def here(steps: list[Step]) -> int:
    results = [(step.name, *run_step(step)) for step in steps]
    print(f"\n{'step':<24}{'result':<24}seconds")
    for name, result, seconds in results:
        print(f"{name:<24}{result:<24}{seconds:7.1f}")
    return int(any(result not in ("ok", "skipped") for _, result, _ in results))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the steps")
    parser.add_argument("--here", action="store_true", help="run the steps now, without building or booting anything")
    parser.add_argument("--go", default="go", help="the command that runs Go")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="some of the steps; all unless told")
    args = parser.parse_args()
    known = {step.name: step for step in STEPS}
    unknown = [name for name in args.steps if name not in known]
    if unknown:
        parser.error(f"no step {', '.join(unknown)}: there are {', '.join(known)}")
    steps = [known[name] for name in args.steps] or STEPS
    if args.list:
        for step in steps:
            print(f"{step.name:<24}{step.limit:>5} s  {step.command}")
        return 0
    if args.here:
        return here(steps)
    local = has_device()
    reason = "" if local else no_guest()
    if reason:
        print(f"test-rdma: skipped: {reason}")
        return 0
    build(args.go.split())
    if local:
        return here(steps)
    limit = sum(step.limit for step in steps)
    names = [step.name for step in steps]
    inside = [sys.executable, str(HERE / "run.py"), "--here", *names]
    return subprocess.run([GUEST, "run", "--timeout", str(limit), "--", *inside], cwd=TREE).returncode


if __name__ == "__main__":
    sys.exit(main())
