"""Colab's conditions: root, two cores, 64 MiB of /dev/shm, no compiler and no launcher, a kernel with threads.

The kernel has a mount namespace of its own; its environment has gormapy from the wheel, by the first cell of a
lesson, after the kernel has been started: as on Colab.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from lessons import notebook, source

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "notebook"))

from kernels import Kernel, pressing  # noqa: E402
from test_first_cell import first_cell, only_sh  # noqa: E402

# One worker of pytest-xdist makes the wheel for all of them.
pytestmark = pytest.mark.exhaustive

LESSON = TESTS.parent / "notebooks" / "source" / "00-start-here.md"
SMALL = 'mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm && exec "$@"'


def prefix():
    """Return the words before a command that give it Colab's conditions."""
    found = [shutil.which(name) for name in ("unshare", "sh", "taskset", "mount")]
    if None in found:
        pytest.skip("needs unshare, sh, taskset and mount")
    unshare, sh, taskset, mount = found
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    script = SMALL.replace("mount", mount, 1)
    return [unshare, "--mount", sh, "-c", script, "sh", taskset, "-c", cores]


@pytest.fixture(scope="module")
def conditions():
    """The prefix, where it works."""
    if os.getuid() != 0:
        pytest.skip("only root may have a /dev/shm of its own")
    words = prefix()
    tried = subprocess.run([*words, shutil.which("true")], capture_output=True, text=True, timeout=30)
    if tried.returncode:
        pytest.skip(f"no mount namespace here: {tried.stderr.strip()}")
    return words


@pytest.fixture(scope="module")
def python(bare, tmp_path_factory):
    """A new environment with a kernel and nothing else."""
    folder = tmp_path_factory.mktemp("colab") / "user"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "ipykernel==7.4.0"]
    done = subprocess.run(pip, env=bare, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(python)


@pytest.mark.timeout(600)
def test_colab(built, python, conditions, tmp_path):
    with Kernel(tmp_path, env=only_sh(tmp_path / "bin"), load=False, prefix=conditions, python=python) as kernel:
        out = kernel.run("""
            import os, threading
            for _ in range(3):
                threading.Thread(target=threading.Event().wait, daemon=True).start()
            shm = os.statvfs("/dev/shm")
            os.getuid(), len(os.sched_getaffinity(0)), shm.f_blocks * shm.f_frsize >> 20, os.listdir("/dev/shm")
            """).check()
        assert out.text == f"(0, {min(2, os.cpu_count())}, 64, [])"

        # The lesson, whose first cell installs gormapy into the running kernel.
        cells = notebook.make(source.read(LESSON), teacher=True)["cells"]
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            text, tags = "".join(cell["source"]), cell["metadata"].get("tags", ())
            out = kernel.run(first_cell(built) if text == notebook.FIRST_CELL else text, timeout=240)
            assert not out.error or "raises-exception" in tags, out
        out = kernel.run("%%mpi -n 4\nfrom gormapy import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.rank\nrank").check()
        assert [out.of(r) for r in range(4)] == [["0"], ["1"], ["2"], ["3"]]
        where = kernel.run("import gormapy; gormapy.__file__").check().text
        assert str(Path(python).parents[1]) in where

        # Four windows of 40 MiB, more than there is of /dev/shm.
        out = kernel.run("""
            %%mpi
            import numpy as np
            n = 5 << 20
            for make in (MPI.Win.Allocate, MPI.Win.Allocate_shared):
                win = make(8 * n, 8, comm=comm)
                mine = np.frombuffer(win.tomemory(), dtype="d")
                mine[:] = rank
                win.Fence()
                win.Put(np.full(n, 10.0 + rank), (rank + 1) % 4)
                win.Fence()
                print(mine.min(), mine.max())
                win.Free()
            """).check()
        assert [out.of(r) for r in range(4)] == [[f"{10.0 + (r - 1) % 4} {10.0 + (r - 1) % 4}"] * 2 for r in range(4)]

        # Large messages, too.
        code = "%%mpi\nbig = np.full(10 << 20, rank, 'd')\ncomm.Allreduce(MPI.IN_PLACE, big)\nbig.min(), big.max()"
        out = kernel.run(code).check()
        assert "6.0" in out.of(3)[0]

        kernel.run("%%mpi\nkept = rank").check()
        waiting = """
            %%mpi
            win = MPI.Win.Allocate(8, comm=comm)
            print("here", flush=True)
            if rank: win.Fence()
            else:
                while True: pass
            """
        kernel.run(waiting, during=pressing(kernel, "here")).check("CellInterrupted")
        kernel.run("%%mpi\ncomm.recv(source=(rank + 1) % 4)").check("Deadlock")
        assert kernel.run("%%mpi\nkept").check().of(2) == ["2"]
        kernel.run("%mpi stop").check()
        assert kernel.run("os.listdir('/dev/shm')").check().text == "[]"
        assert not kernel.processes()
