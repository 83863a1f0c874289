"""Run a notebook as a reader would, from top to bottom, in a kernel of its own."""

import json
import os
import re
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import checked
from . import notebook as notebooks

# A cell that takes longer is stuck: lessons measure for a second or two.
CELL_LIMIT = 90

# A load or store of ranks that are checked takes some 30 µs.
CHECKED_CELL_LIMIT = 300

# A notebook that is larger has a picture or a listing that nobody wants to download.
SIZE_LIMIT = 1_500_000

# How long the processes of a lesson may live on when its kernel has ended.
GRACE = 10.0

ROOT = Path(__file__).resolve().parents[3]

# By this name in their environment the processes of a run are found when it is over.
MARK = "GORMAPY_LESSON_RUN"


class LessonError(Exception):
    """A lesson that did not run as its source says."""


@dataclass
class Run:
    """What came of executing a notebook: the notebook with outputs, and seconds."""

    notebook: dict
    seconds: float
    slowest: float


def run(lesson, notebook, kernel="python3", env=None, check=False):
    """Execute a notebook and return a Run, or raise LessonError.

    `kernel` is the name of a kernel that Jupyter knows; `env` has what its environment has in place of this one's.
    check: all ranks are checked, as by %%mpi --check.
    """
    import nbclient
    import nbformat

    started, cell_started, slowest = time.monotonic(), 0.0, 0.0

    def begin(**_):
        nonlocal cell_started
        cell_started = time.monotonic()

    def end(**_):
        nonlocal slowest
        slowest = max(slowest, time.monotonic() - cell_started)

    limit = CELL_LIMIT
    if check:
        notebook, limit = checked.everywhere(notebook), CHECKED_CELL_LIMIT
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="lesson-") as folder:
        document = nbformat.from_dict(_joined(notebook))
        client = nbclient.NotebookClient(
            document,
            timeout=limit,
            startup_timeout=60,
            kernel_name=kernel,
            record_timing=False,
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            resources={"metadata": {"path": folder}},
            on_cell_execute=begin,
            on_cell_executed=end,
        )
        try:
            client.execute(env={**_environment(folder, mark), **(env or {})})
        except nbclient.exceptions.CellTimeoutError as late:
            raise LessonError(f"{lesson.path}: a cell took longer than {limit} s\n{late}") from None
        except nbclient.exceptions.CellExecutionError as failed:
            shown = [notebooks.texts(cell["outputs"]) for cell in document["cells"] if cell.get("outputs")]
            raise LessonError(f"{lesson.path}: a cell failed\n{failed}\n{(shown or [''])[-1]}") from None
        finally:
            left = _left_behind(mark)
        if left:
            raise LessonError(f"{lesson.path}: its kernel has ended, and these processes live on: {left}")
        executed = _split(_clean(document, folder))
    _check(lesson, executed, check)
    return Run(executed, time.monotonic() - started, slowest)


def _environment(folder, mark):
    """Return the environment of a kernel: that of somebody who just has a Jupyter."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GORMAPY_", "PMI_", "IPYTHON"))}
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return {**kept, "IPYTHONDIR": str(Path(folder, ".ipython")), MARK: mark}


def _left_behind(mark):
    """Return the command lines of processes of a run that are there still when they had time to end."""
    until = time.monotonic() + GRACE
    while True:
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass  # it has ended, or is another user's
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.05)


def _joined(notebook):
    """Return a notebook with each source as one string, as nbclient wants it."""
    return {**notebook, "cells": [{**cell, "source": "".join(cell["source"])} for cell in notebook["cells"]]}


def _split(document):
    """Return an executed document in the form of a file: lists of lines, metadata as before."""
    import nbformat

    done = json.loads(nbformat.writes(nbformat.from_dict(document), version=4))
    return {**done, "metadata": notebooks.METADATA}


def _clean(document, folder):
    """Take out of the outputs what is this machine's: folders and its name."""
    names = [
        (re.escape(str(ROOT / "python" / "gormapy")), "…/gormapy"),
        (re.escape(folder) + "/?", ""),
        (re.escape(str(Path(sys.prefix))), "…"),
        (re.escape(str(Path(sys.base_prefix) / "lib")) + r"(?=/python3)", "…/lib"),
        (re.escape(str(ROOT)), "…"),
        (r"/tmp/ipykernel_\d+/\d+\.py", "cell"),
        (rf"\b{re.escape(socket.gethostname())}\b", "laptop"),
    ]

    def clean(value):
        if isinstance(value, str):
            for pattern, instead in names:
                value = re.sub(pattern, instead, value)
            return value
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return value

    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                {key: clean(value) if key != "data" else _clean_data(value, clean) for key, value in output.items()}
                for output in _coalesced(cell["outputs"])
            ]
            cell["metadata"].pop("execution", None)
    return document


def _coalesced(outputs):
    """Join what came of a stream in pieces. nbclient's own way takes minutes for a line of a megabyte."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def _clean_data(data, clean):
    """Clean the forms of a rich output that are text: pictures are letters of base64."""
    return {kind: value if kind in ("image/png", "image/jpeg") else clean(value) for kind, value in data.items()}


def _check(lesson, executed, check):
    """Raise LessonError where the outputs are not what the source promises."""
    for cell in executed["cells"]:
        if cell["cell_type"] != "code":
            continue
        source, text = "".join(cell["source"]), notebooks.texts(cell["outputs"])
        promised = cell["metadata"].get("gormapy", {})
        if "error" in promised and promised["error"] not in text:
            raise LessonError(f"{lesson.path}: a cell should fail with {promised['error']!r}\n{source}\n\n{text}")
        for line in promised.get("output", []):
            if line not in text:
                raise LessonError(f"{lesson.path}: a cell should write {line!r}\n{source}\n\n{text}")
        if surprise := checked.surprise(cell, check):
            raise LessonError(f"{lesson.path}: {surprise}\n\n{source}")
        if "raises-exception" not in cell["metadata"].get("tags", []) and "Traceback (most recent" in text:
            raise LessonError(f"{lesson.path}: an exception in a cell that should have none\n{source}\n\n{text}")
    faults = stains(executed)
    if faults:
        raise LessonError(f"{lesson.path}: {faults}")


def stains(notebook):
    """Say what is wrong with the outputs that are kept: this machine's names in them, or their size."""
    texts = "\n".join(notebooks.texts(cell["outputs"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    for name in (str(ROOT), str(Path.home()), socket.gethostname(), "/tmp/lesson-", "/ipykernel_"):
        if len(name) > 5 and name in texts:
            at = texts.index(name)
            return f"an output has {name!r} in it: …{texts[max(0, at - 80) : at + 120]}…"
    size = len(str(notebook))
    if size > SIZE_LIMIT:
        return f"the notebook with its outputs has {size:,} characters; at most {SIZE_LIMIT:,} are kept"
    return ""
