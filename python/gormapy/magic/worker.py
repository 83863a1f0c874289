"""A rank of a notebook: ``mpiexec -n 4 python -m gormapy.magic.worker``, started by `NotebookSession`."""

import contextlib
import json
import os
import threading
import time

from .._resident import worker
from . import transfer

# How long a rank waits until the kernel has taken display output, so that output stays in order.
_SHOWN_WITHIN = 10.0


class Outlet:
    """The destination of the shell's output."""

    def __init__(self, worker):
        self.worker = worker
        self.shown = threading.Semaphore(0)

    def display(self, data, metadata, display_id, update):
        """Send a MIME bundle, after what was printed before and before what is printed later."""
        self.worker.flush()
        payloads, plain, binary = [], {}, []
        for mime, value in data.items():
            if isinstance(value, bytes):
                binary.append(mime)
                payloads.append(value)
            else:
                plain[mime] = value
        try:
            json.dumps([plain, metadata])
        except (TypeError, ValueError):
            plain = {k: v if isinstance(v, str) else repr(v) for k, v in plain.items()}
            metadata = {}
        while self.shown.acquire(blocking=False):
            pass
        self.worker.say(
            "display", payloads, data=plain, binary=binary, metadata=metadata, display_id=display_id, update=update
        )
        self.shown.acquire(timeout=_SHOWN_WITHIN)

    def clear(self, wait):
        """Ask the kernel to clear the output of this rank."""
        self.worker.flush()
        self.worker.say("clear", wait=bool(wait))
        self.shown.acquire(timeout=_SHOWN_WITHIN)


class Worker(worker.Worker):
    """This process as a rank of a notebook."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.outlet = Outlet(self)
        self.shell = None

    def answer(self, message):
        """Take the message that display output has arrived."""
        if message.kind == "shown":
            self.outlet.shown.release()
        return message.kind == "shown"

    def prepare(self):
        """Make the shell that executes cells."""
        self.shell = self._shell()

    def _shell(self):
        import builtins

        from .shell import make

        def no_input(*args, **kwargs):
            raise RuntimeError(
                "input() can't ask on a rank: there is one keyboard and several ranks. Ask in an ordinary cell, "
                "and hand the answer over with %mpi push"
            )

        builtins.input = no_input
        return make(self.outlet)

    def place(self, frame):
        """Return where in a cell a frame is."""
        place = self.shell.place(frame) if self.shell is not None else None
        if place is None:
            return None
        code = frame.f_code
        inner = "" if code.co_filename in self.shell.cells else f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
        return {
            **place,
            "label": f"In [{place['cell']}], line {place['line']}",
            "inner": f"{inner} {code.co_name}" if inner else "",
        }

    def do_run(self, task):
        """Run a cell."""
        from gormapy import MPI, check

        shell = self.shell
        shell.execution_count = task.count
        shell.cell_text = task.code
        shell.failure = None
        self.cell = task.cell
        problem = self._record(task.trace)
        check.renew()
        begun = time.monotonic_ns()
        result, interrupted = self.guarded(lambda: self._execute(task))
        part, problem = self._recorded(task.trace, problem)
        interrupted = interrupted or (shell.failure or {}).get("ename") == "KeyboardInterrupt"
        self.guarded(self.flush)
        self.cell = None
        unchecked, _ = self.guarded(check.await_checker)
        failure = shell.failure
        if failure is None and interrupted:
            failure = {"ename": "KeyboardInterrupt", "evalue": "", "text": "KeyboardInterrupt"}
        elif failure is None and result is not None and not result.success:
            error = result.error_before_exec or result.error_in_exec
            failure = {"ename": type(error).__name__, "evalue": str(error), "text": f"{type(error).__name__}: {error}"}
        error = getattr(result, "error_in_exec", None)
        if failure is not None and error is not None and error.__traceback__ is not None:
            tb = error.__traceback__
            while tb is not None:
                if tb.tb_frame.f_code.co_filename in shell.cells:
                    name = tb.tb_frame.f_code.co_filename
                    failure["place"] = {"cell": shell.cells[name], "line": tb.tb_lineno}
                tb = tb.tb_next
        if failure is not None:
            failure.setdefault("code", None)
            if not isinstance(failure["code"], (int, str, type(None))):
                failure["code"] = str(failure["code"])
        seconds = (time.monotonic_ns() - begun) / 1e9
        self.say(
            "done",
            part,
            cell=task.cell,
            trace=problem,
            failure=failure,
            interrupted=interrupted,
            finalized=bool(MPI.Is_finalized()),
            begun=begun,
            seconds=seconds,
            unchecked=unchecked,
        )

    def _execute(self, task):
        """Execute the text of a cell."""
        arrays = contextlib.nullcontext()
        if task.shared_arrays:
            from gormapy import shared_arrays

            arrays = shared_arrays()
        with arrays:
            return self.shell.run_cell(task.code, store_history=False)

    def _record(self, wanted):
        """Start a recording, if requested; return why it can't be started."""
        if not wanted:
            return ""
        try:
            from gormapy import trace

            trace.start()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _recorded(self, wanted, problem):
        """Return the recording as a payload, or why there is none."""
        if not wanted or problem:
            return (), problem
        try:
            from gormapy import trace

            return (trace.stop(),), ""
        except Exception as error:  # for example, the cell has ended it itself
            return (), f"{type(error).__name__}: {error}"

    def do_pull(self, task):
        """Send objects of the namespace."""
        try:
            values, missing = {}, []
            for name in task.names:
                if name in self.shell.user_ns:
                    values[name] = self.shell.user_ns[name]
                else:
                    missing.append(name)
            if missing:
                self.say("pulled", missing=missing, text="")
            else:
                self.say("pulled", transfer.dump(values), missing=[], text="")
        except Exception as error:
            self.say("pulled", missing=[], text=f"{type(error).__name__}: {error}")

    def do_push(self, task):
        """Store objects in the namespace."""
        try:
            self.shell.user_ns.update(transfer.load(task.payloads))
            self.say("pushed", text="")
        except Exception as error:
            self.say("pushed", text=f"{type(error).__name__}: {error}")

    def do_chdir(self, task):
        """Change to the directory of the kernel."""
        with contextlib.suppress(OSError):
            os.chdir(task.path)


def main():
    """Connect to the kernel that started this process, and serve it."""
    # not every launcher passes on all variables
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    worker.ignore_signals()
    one = worker.open_worker(Worker)
    one.start()
    one.serve()


if __name__ == "__main__":
    # Under the name by which others import it: __main__ becomes the user's module.
    from gormapy.magic.worker import main as run

    run()
