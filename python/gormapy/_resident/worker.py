"""The process of a rank that stays, started by `Session`.

Threads: the main one runs cells, and the collective reset after them; a listener takes messages and answers
those about this process's state even while the main thread waits in MPI; a writer sends, so that a Ctrl-C
never cuts a message in two. When the socket closes the process ends; a pipe of the process that has started
the ranks whose other end closes kills it even if C code holds Python's lock.
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

from . import far, link

_F_SETSIG = 10
_GLANCES = 15
# Modules of calls of MPI, and of what stands in for them
_CALLS = ("gormapy.MPI", "gormapy.check", "gormapy.trace")


class Worker:
    """This process as a rank that stays: a class that is derived from it has a method do_KIND for each kind of task."""

    def __init__(self, reader, token, sockets=()):
        self.sock = reader.sock
        self.reader = reader
        self.sockets = sockets  # for output, errors and the end of a kernel on another host
        self.outgoing = queue.SimpleQueue()
        self.tasks = queue.SimpleQueue()
        self.token = token
        self.armed = False  # a SIGINT is for the running task
        self.main = threading.get_ident()
        self.own = set()  # threads that are not the program's
        self.cell = None  # the number of what runs, None between two

    def say(self, kind, payloads=(), **fields):
        """Send a message, in turn."""
        self.outgoing.put((kind, payloads, fields))

    def _write(self):
        while True:
            kind, payloads, fields = self.outgoing.get()
            try:
                link.send(self.sock, kind, payloads, seal=self.reader.outgoing, **fields)
            except OSError:
                os._exit(0)  # who has started this rank has ended
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
            elif not self.answer(message):
                self.tasks.put(message)

    def answer(self, message):
        """Take a message on the listening thread; return whether it was one for that."""
        return False

    def prepare(self):
        """Prepare for tasks, before the rank says that it is ready."""

    def place(self, frame):
        """Return where in the program a frame of the main thread is: label, line, text and, if any, inner."""
        return None

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

    def join(self):
        """Initialize the rank and report it; return what the owner has answered."""
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
            # Who has started this rank has its writing end and never writes: the only signal is that of its end.
            fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        os.register_at_fork(after_in_child=self._in_child)
        return welcome

    def start(self):
        """Initialize the rank, report it, and prepare for tasks."""
        welcome = self.join()
        sys.path[:] = welcome.sys_path
        sys.argv[:] = [""]
        for name in ("_write", "_listen"):
            thread = threading.Thread(target=getattr(self, name), name=f"gormapy-resident{name}", daemon=True)
            thread.start()
            self.own.add(thread.ident)
        self.prepare()
        self.own |= {t.ident for t in threading.enumerate()}
        signal.signal(signal.SIGINT, self._on_interrupt)
        self.say("ready")

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
        place = self.place(frame) if self.cell is not None else None
        inner = place.pop("inner", "") if place is not None else ""
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
        """Execute tasks, one after the other, and end the process in an orderly way when that is asked for."""
        self.execute()
        self.armed = True
        sys.exit(0)  # MPI is finalised, exit functions run

    def execute(self):
        """Execute tasks until the process is asked to end."""
        while (task := self.tasks.get()).kind != "exit":
            try:
                getattr(self, f"do_{task.kind}")(task)
            except KeyboardInterrupt:
                pass  # the signal came too late for its task
            except Exception as error:
                import traceback

                self.say("failed", task=task.kind, text=f"{error!r}\n{traceback.format_exc()}")

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


def _method(frame):
    """Return the method of gormapy.MPI that the program has called in or above this frame, "" for none or one in C."""
    name = ""
    while frame is not None and (module := frame.f_globals.get("__name__", "")).startswith(_CALLS):
        if module.startswith(_CALLS[0]):
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
        raise SystemExit(f"a process of user {uid} listens where the one did that has started this rank")
    return link.Reader(sock)


def ignore_signals():
    """Prepare the handlers of a worker's signals, before MPI is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until there is a task to interrupt
    # Before Go takes the same signals: Go turns a fault in the core into an error, and passes any other one on. The
    # other way round each fault would end the process. Standard error keeps its descriptor.
    faulthandler.enable(2)


def open_worker(kind):
    """Connect to the process that has started this one; return the `Worker` of a kind."""
    address, _, token = os.environ.pop("GORMAPY_RESIDENT").partition(" ")
    if "/" in address:
        reader, sockets = far.connect(address, token.encode())
        return kind(reader, "", sockets)
    return kind(_connect(address), token)
