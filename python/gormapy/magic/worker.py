"""A rank of a notebook: ``mpiexec -n 4 python -m gormapy.magic.worker``, started by `Session`.

Threads: the main one runs cells, and the collective reset after them; a listener takes messages and answers
those about this process's state even while the main thread waits in MPI; a writer sends, so that a Ctrl-C
never cuts a message in two. When the socket closes the process ends; a pipe of the kernel's whose other end
closes kills it even if C code holds Python's lock.
"""

import contextlib
import ctypes
import faulthandler
import fcntl
import io
import json
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time

from . import far, link, transfer

# How long a rank waits until the kernel has taken display output, so that output stays in order.
_SHOWN_WITHIN = 10.0
_F_SETSIG = 10
_GLANCES = 15


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


class Worker:
    """This process as a rank of a notebook."""

    def __init__(self, reader, token, sockets=()):
        self.sock = reader.sock
        self.reader = reader
        self.sockets = sockets  # for output, errors and the end of a kernel on another host
        self.outgoing = queue.SimpleQueue()
        self.tasks = queue.SimpleQueue()
        self.outlet = Outlet(self)
        self.token = token
        self.armed = False  # a SIGINT is for the running task
        self.main = threading.get_ident()
        self.own = set()  # threads that are not the program's
        self.shell = None
        self.cell = None

    def say(self, kind, payloads=(), **fields):
        """Send a message, in turn."""
        self.outgoing.put((kind, payloads, fields))

    def _write(self):
        while True:
            kind, payloads, fields = self.outgoing.get()
            try:
                link.send(self.sock, kind, payloads, seal=self.reader.outgoing, **fields)
            except OSError:
                os._exit(0)  # the kernel has ended
            except Exception as error:
                text = f"gormapy: a message of the rank was lost: {error!r}"
                link.send(self.sock, "note", seal=self.reader.outgoing, text=text)

    def _listen(self):
        while True:
            message = self.reader.next()
            if message is None:
                os._exit(0)
            if message.kind == "where":
                self.say("where", ask=message.ask, **self.where())
            elif message.kind == "clock":
                self.say("clock", time=time.monotonic_ns())
            elif message.kind == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            elif message.kind == "shown":
                self.outlet.shown.release()
            else:
                self.tasks.put(message)

    # Start
    # -----

    def streams(self):
        """Redirect standard output and error, of Python and C, to pipes, and return their reading ends."""
        ends = []
        for fd, name in ((1, "stdout"), (2, "stderr")):
            getattr(sys, name).flush()
            if self.sockets:
                os.dup2(self.sockets[fd - 1].fileno(), fd)
                self.sockets[fd - 1].close()
            else:
                reading, writing = os.pipe()
                with contextlib.suppress(OSError):
                    fcntl.fcntl(writing, 1031, 1 << 20)  # F_SETPIPE_SZ
                os.dup2(writing, fd)
                os.close(writing)
                ends.append(reading)
            raw = open(fd, "wb", closefd=False, buffering=8192)  # noqa: SIM115
            stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        self.python_streams = (sys.stdout, sys.stderr)
        self.libc = ctypes.CDLL(None)
        with contextlib.suppress(AttributeError, ValueError):
            self.libc.setvbuf(ctypes.c_void_p.in_dll(self.libc, "stdout"), None, 1, ctypes.c_size_t(0))
        return ends

    def start(self):
        """Initialize the rank, report it to the kernel, and prepare for cells."""
        from gormapy import MPI

        self.rank, self.size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
        ends = self.streams()
        place = {"rank": self.rank, "size": self.size, "pid": os.getpid(), "host": socket.gethostname()}
        link.send(self.sock, "hello", fds=ends, seal=self.reader.outgoing, token=self.token, **place)
        for end in ends:
            os.close(end)
        welcome = self.reader.next()
        if welcome is None:
            os._exit(0)
        if self.sockets:
            self.reader.fds = [self.sockets[2].fileno()]
        for fd in self.reader.fds:
            # The kernel has its writing end and never writes: the only signal is that of its end.
            fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        os.register_at_fork(after_in_child=self._in_child)
        sys.path[:] = welcome.sys_path
        sys.argv[:] = [""]
        for name in ("_write", "_listen"):
            thread = threading.Thread(target=getattr(self, name), name=f"gormapy-magic{name}", daemon=True)
            thread.start()
            self.own.add(thread.ident)
        self.shell = self._shell()
        self.own |= {t.ident for t in threading.enumerate()}
        signal.signal(signal.SIGINT, self._on_interrupt)
        self.say("ready")

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

    def _in_child(self):
        for fd in (self.sock.fileno(), *self.reader.fds):
            with contextlib.suppress(OSError):
                os.close(fd)

    # State
    # -----

    def where(self):
        """Return the current state of this process."""
        from gormapy._ext import core

        for stream in self.python_streams:
            # a line that is not complete yet, such as a progress bar
            with contextlib.suppress(Exception):
                stream.flush()
        frames = sys._current_frames()
        frame = frames.get(self.main)
        place = self.shell.place(frame) if self.shell is not None and self.cell is not None else None
        inner = ""
        if frame is not None and place is not None:
            code = frame.f_code
            if code.co_filename not in self.shell.cells:
                inner = f"{os.path.basename(code.co_filename)}:{frame.f_lineno} {code.co_name}"
        method = _method(frame)
        state = json.loads(core.Waits()) or {"waits": [], "moved": 0}
        # A wait is left and entered again 20 times a second, for which its thread needs Python's lock, which this
        # thread has: give it the time, as long as it is at the same place.
        for _ in range(_GLANCES):
            if frame is None or any(w["main"] for w in state["waits"]) or self.cell is None:
                break
            at = frame.f_lasti
            time.sleep(0.003)
            if sys._current_frames().get(self.main) is not frame or frame.f_lasti != at:
                break
            state = json.loads(core.Waits()) or state
        return {"cell": self.cell, "place": place, "inner": inner, "method": method, "busy": self._busy(state["waits"]),
                "run": _run_time(), "at": time.monotonic(), **state}  # fmt: skip

    def _busy(self, waits):
        """Return how many threads of the program can run, such as one that will send an awaited message."""
        waiting = {w["thread"] for w in waits}
        frames = sys._current_frames()
        busy = 0
        for thread in threading.enumerate():
            if thread.ident in self.own or thread.ident == self.main or thread.native_id in waiting:
                continue
            frame = frames.get(thread.ident)
            names = set()
            while frame is not None:
                names.add((frame.f_globals.get("__name__"), frame.f_code.co_name))
                frame = frame.f_back
            # an idle worker of a pool, and the monitor of progress bars
            idle = ("concurrent.futures.thread", "_worker") in names and not _in_task(names)
            if not idle and ("tqdm._monitor", "run") not in names:
                busy += 1
        return busy

    # Tasks
    # -----

    def _on_interrupt(self, number, frame):
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def guarded(self, function):
        """Call a function that SIGINT interrupts; return its result and whether it was interrupted."""
        result, interrupted = None, False
        try:
            try:
                self.armed = True
                result = function()
            finally:
                self.armed = False
        except KeyboardInterrupt:
            self.armed, interrupted = False, True
        return result, interrupted

    def flush(self):
        """Flush the streams of Python and C."""
        for stream in {sys.stdout, sys.stderr, *self.python_streams}:
            with contextlib.suppress(Exception):
                stream.flush()
        self.libc.fflush(None)
        if self.sockets:  # what was printed is there before the message that follows
            far.passed(1)
            far.passed(2)

    def serve(self):
        """Execute the kernel's requests, one after the other."""
        while True:
            task = self.tasks.get()
            try:
                getattr(self, f"do_{task.kind}")(task)
            except KeyboardInterrupt:
                pass  # the signal came too late for its cell
            except Exception as error:
                import traceback

                self.say("failed", task=task.kind, text=f"{error!r}\n{traceback.format_exc()}")

    def do_run(self, task):
        """Run a cell."""
        shell = self.shell
        shell.execution_count = task.count
        shell.cell_text = task.code
        shell.failure = None
        self.cell = task.cell
        begun = time.monotonic()
        problem = self._record(task.trace)
        result, interrupted = self.guarded(lambda: self._execute(task))
        part, problem = self._recorded(task.trace, problem)
        interrupted = interrupted or (shell.failure or {}).get("ename") == "KeyboardInterrupt"
        self.guarded(self.flush)
        self.cell = None
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
        from gormapy import MPI

        self.say(
            "done",
            part,
            cell=task.cell,
            trace=problem,
            failure=failure,
            interrupted=interrupted,
            finalized=bool(MPI.Is_finalized()),
            seconds=time.monotonic() - begun,
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

    def do_reset(self, task):
        """Take part in the collective reset."""
        import gormapy

        text = ""
        try:
            _, interrupted = self.guarded(gormapy.reset)
            text = "interrupted" if interrupted else ""
        except Exception as error:
            text = str(error)
        self.say("reset", text=text)

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

    def do_exit(self, task):
        """End the process in an orderly way: MPI is finalised, exit functions run."""
        self.armed = True
        sys.exit(0)


def _method(frame):
    """Return the method of gormapy.MPI that the program has called in or above this frame, "" for none or one in C."""
    name = ""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("gormapy.MPI"):
        name = frame.f_code.co_name
        frame = frame.f_back
    return "" if name.startswith("_") else name


def _in_task(names):
    return ("concurrent.futures.thread", "run") in names


def _run_time():
    """Return for how many seconds the main thread has run."""
    try:
        with open("/proc/self/schedstat") as file:  # of the main thread
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError):
        return time.process_time()


def _connect(address):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect("\0" + address)
    uid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    if uid != os.getuid():  # the process that listens at this name decides what code runs here
        raise SystemExit(f"a process of user {uid} listens where the kernel of this notebook did")
    return link.Reader(sock)


def main():
    """Connect to the kernel that started this process, and serve it."""
    address, _, token = os.environ.pop("GORMAPY_MAGIC").partition(" ")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until there is a task to interrupt
    # Before Go takes the same signals: Go turns a fault in the core into an error, and passes any other one on. The
    # other way round each fault would end the process. Standard error keeps its descriptor.
    faulthandler.enable(2)
    if "/" in address:  # not every launcher passes on all variables
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        reader, sockets = far.connect(address, token.encode())
        worker = Worker(reader, "", sockets)
    else:
        worker = Worker(_connect(address), token)
    worker.start()
    worker.serve()


if __name__ == "__main__":
    # Under the name by which others import it: __main__ becomes the user's module.
    from gormapy.magic.worker import main as run

    run()
