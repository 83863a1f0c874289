"""A rank that stays and runs one program after the other: see support.resident, which starts it."""

import contextlib
import ctypes
import gc
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import program

import gormapy
from gormapy import MPI
from gormapy._ext import core, fast
from gormapy._resident import link, worker

# The launcher's --timeout uses signal 61 for Python stacks. This one has a rank write what the others wait for.
WAITS_SIGNAL = 62

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HANDLES = (MPI.Comm, MPI.Win, MPI.Datatype, MPI.Request, MPI.Message, MPI.Group, MPI.File, MPI.Op, MPI.Info)
libc = ctypes.CDLL(None)


def write_waits(number, frame):
    """Write what the other ranks wait for. Waits in MPI let handlers of signals run, and are left meanwhile."""
    others = [line for line in core.Describe().splitlines() if not line.startswith(f"rank {MPI.COMM_WORLD.rank} ")]
    sys.stderr.write("\n".join(others) + "\n")
    sys.stderr.flush()


def descriptors():
    """Return the files and pipes that are open but the outputs.

    Sockets, memory and watches belong to the core, which keeps some.
    """
    found = []
    for number in set(os.listdir("/proc/self/fd")) - {"1", "2"}:
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if target.startswith(("/", "pipe:")) and not target.startswith(("/proc", "/memfd", "/dev/shm")):
                found.append((number, target))
    return sorted(found)


def live_handles():
    """Return the MPI objects that a program has left, as texts. Those of before are frozen, and not seen."""
    # not isinstance, which asks a weak reference of another library for the class of what is gone
    return [repr(o) for o in gc.get_objects() if issubclass(type(o), HANDLES) and o and not _predefined(o)]


def _predefined(handle):
    if isinstance(handle, MPI.Datatype):
        return handle.is_predefined
    if isinstance(handle, MPI.Op):
        return handle.is_predefined
    return any(handle is known or handle == known for known in PREDEFINED if type(known) is type(handle))


PREDEFINED = [o for o in vars(MPI).values() if isinstance(o, HANDLES)]


def state():
    """Return what a program may not leave changed, by names."""
    mask = os.umask(0)
    os.umask(mask)
    signals = {s: signal.getsignal(s) for s in range(1, signal.NSIG) if s not in (signal.SIGKILL, signal.SIGSTOP)}
    limits = {k: resource.getrlimit(v) for k, v in vars(resource).items() if k.startswith("RLIMIT_")}
    return {
        "signal handlers": signals,
        "blocked signals": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "environment": dict(os.environ),
        "files and pipes": descriptors(),
        "threads": {t.ident for t in threading.enumerate()},
        "limits": limits,
        "umask": mask,
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.gettrace(), sys.getprofile()),
        "imports": (list(sys.meta_path), sys.dont_write_bytecode),
        "streams": (sys.stdin, sys.stdout, sys.stderr, sys.stdout.closed, sys.stderr.closed),
        "interpreter": (sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), gc.get_threshold()),
        "collector's callbacks": list(gc.callbacks),
        "NumPy's error state": np.geterr(),
        "gormapy.rc": {k: v for k, v in vars(type(gormapy.rc)).items() if not callable(v)} | vars(gormapy.rc),
        "error handlers": [_handler(comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)],
        "names": [comm.Get_name() for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)],
        "MPI": dict(vars(MPI)),
        "methods": {(c.__name__, k): v for c in HANDLES for k, v in vars(c).items()},
        "memory of operations": fast.kept(),
    }


def _handler(comm):
    handler = comm.Get_errhandler()
    number = [handler == known for known in (MPI.ERRORS_RETURN, MPI.ERRORS_ARE_FATAL, MPI.ERRORS_ABORT)]
    return number


def changed(before):
    """Return the names of what is not as it was before."""
    now = state()
    return [f"{name} changed" for name in now if not _same(now[name], before[name])]


def _same(a, b):
    try:
        return bool(a == b)
    except Exception:  # values that can't be compared are other values
        return False


class Rank(worker.Worker):
    """This process, between programs. It has one thread, as programs expect."""

    def start(self):
        """Connect to the tests."""
        self.main_module = sys.modules["__main__"]
        self.join()
        signal.signal(WAITS_SIGNAL, write_waits)
        self.home, self.path, self.arguments = os.getcwd(), list(sys.path), list(sys.argv)
        self.python_streams = sys.stdout, sys.stderr
        gc.collect()
        gc.freeze()
        self.say("ready")

    def streams(self):
        """Redirect standard output and error to pipes, and return their reading ends; Python's streams stay."""
        ends = []
        for number in (1, 2):
            reading, writing = os.pipe()
            os.dup2(writing, number)
            os.close(writing)
            ends.append(reading)
        return ends

    def say(self, kind, payloads=(), **fields):
        """Send a message to the tests, on this thread."""
        link.send(self.sock, kind, payloads, **fields)

    def next(self):
        """Wait for a message, and carry on meanwhile what nobody waits for any more."""
        while fast.kept() and not select.select([self.sock], [], [], 0.005)[0]:
            pass
        message = self.reader.next()
        if message is None or message.kind == "exit":
            os._exit(0)  # the tests have ended
        return message

    def serve(self):
        """Run programs until nobody asks for one."""
        while True:
            task = self.next()
            if task.kind == "run":
                self.say("done", finalized=False, **self.run(task))
            else:
                gormapy.reset()
                self.say("reset", text="")

    def run(self, task):
        """Run a program; return how it ended and what it left."""
        modules, filters, prints = dict(sys.modules), list(warnings.filters), np.get_printoptions()
        before = state()
        os.chdir(task["folder"])
        status = self._execute(task)
        for stream in {sys.stdout, sys.stderr, *self.python_streams}:
            with contextlib.suppress(Exception):
                stream.flush()
        libc.fflush(None)
        left = []
        if status == 0:
            self._forget(modules)
            warnings.filters[:] = filters
            np.set_printoptions(**prints)
            left = self._left(before)
        return {"status": status, "left": left}

    def _execute(self, task):
        try:
            program.execute(task["file"], task["function"], task["arguments"])
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return end.code or 0
            print(end.code, file=sys.stderr)
            return 1
        except BaseException as error:
            error.__traceback__ = _trimmed(error.__traceback__)
            sys.stderr.write(f"rank {self.rank}:\n{''.join(traceback.format_exception(error))}")
            return 1
        return 0

    def _forget(self, modules):
        """Put modules, the path and the folder back: the next program imports the tests' modules anew."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            if module is self.main_module:  # multiprocessing has a second name for it
                continue
            if modules.get(name) is not module and file.startswith((TESTS, os.getcwd())):
                del sys.modules[name]
                vars(module).clear()
        sys.modules["__main__"] = self.main_module
        sys.path[:], sys.argv[:] = self.path, self.arguments
        os.chdir(self.home)

    @staticmethod
    def _left(before):
        gc.collect()
        end = time.monotonic() + 0.5  # threads may be about to end
        while (left := changed(before)) and time.monotonic() < end:
            time.sleep(0.01)
        return left + live_handles()


def _trimmed(trace):
    own = (__file__, program.__file__)
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    rank = worker.open_worker(Rank)
    rank.start()
    rank.serve()
