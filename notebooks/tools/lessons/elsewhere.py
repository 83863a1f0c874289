"""Run the programs of a lesson on other MPIs: mpi4py with the wheels of MPICH and of Open MPI."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import source

ROOT = Path(__file__).resolve().parents[3]
RANK = Path(__file__).with_name("rank.py")
ENVIRONMENTS = ROOT / ".cache" / "lesson-peers"

# The programs of a lesson together; they compute and measure for seconds.
LIMIT = 150

NAMES = ("mpich", "openmpi")

# Memory that these libraries leave behind when a job does not end by itself.
SHARED = ("mpich_shm_*", "sm_segment.*")


@dataclass
class Job:
    """Cells that ranks run which were started together, `n` of them."""

    n: int
    cells: list


def library(name):
    """Return an MPI of gormapy_compare.peers, installed if need be."""
    from gormapy_compare import peers

    return peers.peer(name, ENVIRONMENTS, also=("matplotlib",))


def jobs(lesson):
    """Return the jobs that run a lesson's portable cells: all that ranks run and that are not meant to fail."""
    from gormapy.magic import options

    found, n = [], 4
    for cell in lesson.cells:
        first, _, rest = cell.text.partition("\n")
        if cell.kind not in ("python", "exercise", "solution") or cell.only or not first.startswith("%%mpi"):
            continue
        chosen = options.cell_parser().parse_args(shlex.split(first.removeprefix("%%mpi")))
        if not found or chosen.fresh or (chosen.n or n) != n:
            n = chosen.n or n
            found.append(Job(n, []))
        found[-1].cells.append((cell, chosen.ranks, source.python_of("\n" + rest)))
    return found


def run(lesson, mpi):
    """Run a lesson's jobs on a library, and return what is wrong; an empty list if nothing is."""
    wrong = []
    for job in jobs(lesson):
        with tempfile.TemporaryDirectory(prefix="lesson-") as folder:
            wrong += _run(lesson, job, mpi, Path(folder))
    return wrong


def _run(lesson, job, mpi, folder):
    made = folder / "made"
    (folder / "work").mkdir()
    made.mkdir()
    program = made / "program"
    cells = [
        {"python": python, "where": f"{lesson.path.name}:{cell.line}", "ranks": ranks}
        for cell, ranks, python in job.cells
    ]
    program.write_text(json.dumps({"mpi": mpi.module, "cells": cells}), encoding="utf-8")
    status, said = _ended(mpi.ranks(job.n, str(RANK), str(program)), folder / "work", {**mpi.env, "MPLBACKEND": "agg"})
    reached = [int(_text(made / f"at-{rank}") or 0) for rank in range(job.n)]
    if status != 0 or min(reached) < len(cells):
        end = f"did not end within {LIMIT} s" if status is None else f"ended with status {status}"
        # When one rank fails, others may be on their way out of the barrier before, or let out of the next one.
        lines = sorted({job.cells[number][0].line for number in reached if number < len(cells)})
        at = f", with ranks in the cells of lines {lines}" if lines else " after its last cell"
        raised = "".join(_text(made / f"failed-{rank}") for rank in range(job.n))
        return [f"{lesson.path}: on {mpi.name} it {end}{at}\n{raised}{said[-4000:]}"]
    wrong = []
    for number, (cell, _, _) in enumerate(job.cells):
        text = "".join(_text(made / f"{rank}-{number}") for rank in range(job.n))
        missing = [line for line in cell.portable if line not in text]
        wrong += [f"{lesson.path}:{cell.line}: on {mpi.name} it should print {line!r}\n{text}" for line in missing]
    return wrong


def _text(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _ended(command, folder, env):
    """Run a command to its end, or to the limit; return its status (None) and what it wrote."""
    before = _shared()
    with open(folder.parent / "said", "w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
            _remove(_shared() - before)
        said.seek(0)
        return status, said.read()


def _shared():
    """Return the files of shared memory that the libraries have made."""
    return {path for pattern in SHARED for path in Path("/dev/shm").glob(pattern)}


def _remove(paths):
    """Remove files that no process has mapped: ranks that were killed are given time to end, others' jobs are left."""
    end = time.monotonic() + 5
    for path in paths:
        while (mapped := _mapped(path)) and time.monotonic() < end:
            time.sleep(0.05)
        if not mapped:
            path.unlink(missing_ok=True)


def _mapped(path):
    """Report whether a process has a file mapped."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if str(path) in maps.read_text():
                return True
    return False


def _end(process):
    """End what is left of a job, which Open MPI's launcher puts into groups of its own."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(re.match(r".*\) \S (\d+)", stat, re.DOTALL)[1])
            children.setdefault(parent, []).append(int(entry.name))
    left = [process.pid]
    for pid in left:
        left += children.get(pid, [])
    if process.poll() is None:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def table(lessons, names=NAMES):
    """Run lessons on the libraries, print a table as it comes, and return what is wrong."""
    wrong = []
    libraries = [library(name) for name in names]
    print(f"{'lesson':<30} " + " ".join(f"{mpi.name:>16}" for mpi in libraries), flush=True)
    for lesson in lessons:
        row = f"{lesson.name:<30}"
        for mpi in libraries:
            begun = time.monotonic()
            count = sum(len(job.cells) for job in jobs(lesson))
            faults = run(lesson, mpi) if count else []
            wrong += faults
            seconds = f"{count} cells {time.monotonic() - begun:.1f} s"
            row += f" {'gormapy only' if not count else 'FAILED' if faults else seconds:>16}"
        print(row, flush=True)
    return wrong
