"""A real ipykernel, driven as front ends do it.

Outputs are kept as a notebook would: updates of a display replace what it showed before. After each
kernel nothing of it may be left, whatever ended it.
"""

import contextlib
import os
import queue
import re
import signal
import sys
import textwrap
import time
import uuid
from dataclasses import dataclass, field

from jupyter_client import KernelManager
from support import leftovers
from support.mpirun import environment

START = 60.0


@dataclass
class Outcome:
    """What a cell has led to."""

    outputs: list = field(default_factory=list)  # MIME bundles and streams, in order
    error: str = ""  # the name of the exception, "" if there was none
    value: str = ""  # its text
    traceback: str = ""
    seconds: float = 0.0
    updates: int = 0
    clears: int = 0

    @property
    def text(self):
        """All that a plain front end would show."""
        return "\n".join(o.get("text/plain", "").rstrip("\n") for o in self.outputs)

    @property
    def html(self):
        """All HTML."""
        return "\n".join(o.get("text/html", "") for o in self.outputs)

    @property
    def lines(self):
        """The lines of the text that are not empty."""
        return [line for line in self.text.splitlines() if line.strip()]

    def of(self, rank):
        """The lines of one rank, without its mark."""
        found = []
        for line in self.lines:
            match = re.match(r"\[([0-9, -]+)\] ?(.*)", line)
            if match and rank in _ranks(match[1]):
                found.append(match[2])
        return found

    def mime(self, kind):
        """The values of one MIME type."""
        return [o[kind] for o in self.outputs if kind in o]

    def check(self, error=""):
        """Assert with which error the cell ended, and return the outcome."""
        assert self.error == error, f"{error or 'no error'} was expected\n{self}\n{self.traceback}"
        return self

    def __str__(self):
        return f"{self.text}\n{self.error}: {self.value}\n({self.seconds:.2f} s)"


def _ranks(text):
    ranks = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        ranks.update(range(int(first), int(last or first) + 1))
    return ranks


class Kernel:
    """A kernel in a folder of its own; leaving the context ends it and looks for leftovers."""

    def __init__(self, folder, env=None, load=True, prefix=(), python=sys.executable):
        self.folder, self.load = folder, load
        self.mark = f"GORMAPYTEST_JOB={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        self.env = {**environment(), name: value, "IPYTHONDIR": str(folder / "ipython"),
                    "MPLCONFIGDIR": str(folder.parent / "mpl"), **(env or {})}  # fmt: skip
        self.command = [*prefix, python]

    def __enter__(self):
        self.before = leftovers.names()
        self.manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(self.folder / "ipc"))
        self.manager.kernel_spec.argv[0:1] = self.command
        self._start()
        return self

    def _start(self):
        self.manager.start_kernel(env=self.env, cwd=str(self.folder))
        self._connect()

    def _connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=START)
        if self.load:
            self.run("%load_ext gormapy").check()

    def __exit__(self, *exc):
        with contextlib.suppress(Exception):
            self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        left = self.left(5.0)
        for line in left:
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(line.partition(":")[0]), signal.SIGKILL)
        if exc[0] is None:
            assert not left, "the kernel left behind:\n" + "\n".join(left)

    def left(self, patience=3.0):
        """What there is of the kernel and its ranks."""
        left = leftovers.after(self.mark, self.before, patience)
        return [line for line in left if "gormapy-build" not in line]  # a build that runs beside the tests

    def processes(self):
        """The processes of the kernel that are no kernel."""
        return [line for line in leftovers.processes(self.mark) if "ipykernel" not in line]

    @property
    def pid(self):
        """The kernel's process."""
        return self.manager.provisioner.pid

    def begin(self, code):
        """Send a cell, without waiting for its end."""
        self.begun = time.monotonic()
        return self.client.execute(textwrap.dedent(code).strip("\n"), allow_stdin=False)

    def run(self, code, timeout=60.0, during=None):
        """Run a cell and return its Outcome; ``during(outcome)`` is called about ten times a second."""
        return self.finish(self.begin(code), timeout, during)

    def finish(self, asked, timeout=60.0, during=None):
        """Collect what the cell that was sent last leads to."""
        begun, outcome, by_id = self.begun, Outcome(), {}
        while True:
            assert time.monotonic() - begun < timeout, f"the cell did not end within {timeout} s\n{outcome}"
            if during is not None and during(outcome, time.monotonic() - begun):
                during = None
            try:
                message = self.client.get_iopub_msg(timeout=0.1)
            except queue.Empty:
                assert self.manager.is_alive(), f"the kernel died\n{outcome}"
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                outcome.outputs.append({"text/plain": content["text"], "stream": content["name"]})
            elif kind in ("display_data", "execute_result"):
                data = dict(content["data"])
                outcome.outputs.append(data)
                shown = content.get("transient", {}).get("display_id")
                if shown:
                    by_id.setdefault(shown, []).append(data)
            elif kind == "update_display_data":
                outcome.updates += 1
                for data in by_id[content["transient"]["display_id"]]:
                    data.clear()
                    data.update(content["data"])
            elif kind == "clear_output":
                outcome.clears += 1
                outcome.outputs.clear()
                by_id.clear()
            elif kind == "error":
                outcome.error, outcome.value = content["ename"], content["evalue"]
                outcome.traceback = "\n".join(content["traceback"])
            elif kind == "status" and content["execution_state"] == "idle":
                outcome.seconds = time.monotonic() - begun
                reply = {}
                while reply.get("parent_header", {}).get("msg_id") != asked:
                    reply = self.client.get_shell_msg(timeout=10)
                # a wrong use of a magic has no error message of its own
                outcome.error = outcome.error or reply["content"].get("ename", "")
                return outcome

    def interrupt(self):
        """Press the stop button."""
        self.manager.interrupt_kernel()


def pressing(kernel, *signs):
    """Return a function for ``during`` that presses stop when the next of these texts is shown.

    A cell that has shown something has begun: while none runs, the kernel ignores stop.
    """
    left = list(signs)

    def during(outcome, passed):
        if left and left[0] in outcome.text:
            left.pop(0)
            kernel.interrupt()
        return not left

    return during


def until(condition, within=30.0):
    """Wait until a condition holds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"it did not come to that within {within} s"
        time.sleep(0.05)
