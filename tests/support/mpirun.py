"""Run programs on several ranks by the project's own mpiexec.

    result = mpirun(4, '''
        from gormapy import MPI
        assert MPI.COMM_WORLD.Get_size() == 4
    ''')

A rank that fails fails the test, with all that the job wrote. A job that hangs
is ended by ``mpiexec --timeout``, which prints the wait record and the Python
stacks of every rank. After each job nothing of it may be left.
"""

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from . import leftovers
from .programs import Program

SUPPORT = Path(__file__).parent
TREE = SUPPORT.parents[1] / "python"
WITHOUT_COPIES = SUPPORT / "without_copies.py"  # a program that runs another one
RUN = SUPPORT / "rankside" / "program.py"
BYTECODE = SUPPORT.parents[1] / ".cache" / "bytecode"

# Stands for "any status": the test looks at the status itself.
ANY = object()

# How long after its --timeout a launcher may take to end everything.
GRACE = 10.0


def _package():
    """Return the folder of gormapy: the installed one, else the one in the source tree."""
    spec = importlib.util.find_spec("gormapy")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    return TREE / "gormapy"


def mpiexec():
    """Return the launcher of the gormapy that the ranks import.

    The one beside the interpreter may be another MPI's.
    """
    path = _package() / "_bin" / "mpiexec"
    if not path.exists():
        path = Path(sys.executable).parent / "gormapy-mpiexec"
    if not path.exists():
        raise FileNotFoundError(f"no launcher in {_package()} or beside {sys.executable}: run 'make build', or install")
    return str(path)


# What --fabric and --nodes ask for: settings of every job, unless the test gives its own.
ASKED = {}


def choose_fabric(text):
    """Have jobs use a transport: its name, for ofi with a provider as in "ofi:tcp;ofi_rxm"."""
    name, _, provider = text.partition(":")
    ASKED["GORMAPY_FABRIC"] = name
    if provider:
        ASKED["GORMAPY_OFI_PROV"] = provider


def divide(layout):
    """Divide jobs into nodes that share no memory."""
    ASKED["GORMAPY_JOB_NODES"] = layout


# For jobs that look how much memory they use: Go collects the core's garbage when there are 16 MiB of it
# (gocore/mpi/heap.go), which would be taken for a leak.
COLLECT_OFTEN = {"GOGC": "20"}


def environment(env=None):
    """Return the environment of a job; a value of None takes a variable away."""
    merged = {k: v for k, v in os.environ.items() if not k.startswith(("GORMAPY_", "PMI_", "PMIX_", "SLURM_", "OMPI_"))}
    # A test names its own: what the developer's shell has would make its result depend on it.
    path = [str(SUPPORT / "rankside"), str(_package().parent)]
    if merged.get("PYTHONPATH"):
        path.append(merged["PYTHONPATH"])
    merged["PYTHONPATH"] = os.pathsep.join(path)
    # Ranks that compile the package anew, each of them, are most of what a short job does.
    merged.pop("PYTHONDONTWRITEBYTECODE", None)
    merged["PYTHONPYCACHEPREFIX"] = str(BYTECODE)
    merged.pop("PYTHONUNBUFFERED", None)  # what programs rarely have; it hides output that is lost at the end
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        merged.setdefault(threads, "1")  # ranks are the parallelism; thread pools only slow the start
    for name, value in {**ASKED, **(env or {})}.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = str(value)
    return merged


@dataclass
class Result:
    """How a job ended."""

    command: list
    status: int
    stdout: str
    stderr: str
    duration: float
    begun: float
    gone: float  # when nothing of it was left any more

    @property
    def lines(self):
        """The lines of standard output, sorted: ranks write in any order."""
        return sorted(self.stdout.splitlines())

    def since(self, word):
        """Seconds from the moment that the program printed, as "word SECONDS" (rankside.stamp), to the job's end."""
        moment = float(re.search(rf"^{word} ([0-9.]+)$", self.stdout, re.MULTILINE)[1])
        return self.begun + self.duration - moment

    def __str__(self):
        return (
            f"{' '.join(self.command)}\nended with status {self.status} after {self.duration:.2f} s\n"
            f"--- standard output\n{_shorten(self.stdout)}\n--- standard error\n{_shorten(self.stderr)}\n---"
        )


def _shorten(text, limit=20_000):
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n[... {len(text) - limit} characters left out ...]\n{text[-limit // 2 :]}"


class Job:
    """A job that runs while the test does something to it."""

    def __init__(self, command, env, cwd=None, stdin=None, timeout=30.0):
        self.command = [str(part) for part in command]
        self.mark = f"GORMAPYTEST_JOB={uuid.uuid4().hex}"
        self.before = leftovers.names()
        name, _, value = self.mark.partition("=")
        self.deadline = time.monotonic() + timeout + GRACE
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            env={**env, name: value},
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self._news = threading.Condition()
        self._output = {"stdout": bytearray(), "stderr": bytearray()}
        self._readers = [
            threading.Thread(target=self._read, args=(kind, getattr(self.process, kind)), daemon=True)
            for kind in self._output
        ]
        for reader in self._readers:
            reader.start()
        if stdin is not None:
            threading.Thread(target=self._feed, args=(stdin,), daemon=True).start()

    def _feed(self, text):
        try:
            self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
            self.process.stdin.close()
        except OSError:
            pass  # nobody reads it

    def _read(self, kind, stream):
        while piece := stream.read1(65536):
            with self._news:
                self._output[kind] += piece
                self._news.notify_all()

    @property
    def stdout(self):
        """What the job wrote so far."""
        return self._output["stdout"].decode(errors="replace")

    @property
    def stderr(self):
        """What the job wrote so far on standard error."""
        return self._output["stderr"].decode(errors="replace")

    def expect(self, pattern, count=1, timeout=60.0):
        """Wait until ``pattern`` was matched ``count`` times in standard output and return the matches."""
        end = time.monotonic() + timeout
        with self._news:
            while True:
                found = list(re.finditer(pattern, self.stdout, re.MULTILINE))
                if len(found) >= count:
                    return found
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not any(r.is_alive() for r in self._readers)):
                    break
                self._news.wait(min(left, 0.1))
        state = f"status {self.process.returncode}" if self.process.returncode is not None else "running"
        self.stop()
        raise AssertionError(
            f"{count} of {pattern!r} were expected from {' '.join(self.command)} ({state}), "
            f"{len(found)} came\n--- standard output\n{_shorten(self.stdout)}\n"
            f"--- standard error\n{_shorten(self.stderr)}"
        )

    def pids(self, count):
        """Return the process of each rank, from lines "pid RANK PID" that the program prints (rankside.hello)."""
        pairs = [(int(m[1]), int(m[2])) for m in self.expect(r"^pid (\d+) (\d+)$", count)]
        return dict(pairs)

    def signal(self, number):
        """Send a signal to the launcher."""
        self.process.send_signal(number)

    def finish(self, expect=0, clean=True):
        """Wait for the end, look after leftovers and return the Result."""
        hung = False
        try:
            self.process.wait(max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            hung = True
        duration = time.monotonic() - self.begun
        if hung:
            self.stop()
        for reader in self._readers:
            reader.join(5)
        left = leftovers.after(self.mark, self.before) if clean else []
        gone = time.monotonic()
        result = Result(self.command, self.process.returncode, self.stdout, self.stderr, duration, self.begun, gone)
        if left:
            self._kill(left)
        assert not hung, f"the launcher did not end by itself\n{result}"
        if expect is not ANY:
            assert result.status == expect, f"status {expect} was expected\n{result}"
        assert not left, "the job left behind:\n  " + "\n  ".join(left) + f"\n{result}"
        return result

    def stop(self):
        """End whatever is left of the job."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._kill(leftovers.processes(self.mark))

    @staticmethod
    def _kill(left):
        for line in left:
            pid = line.partition(":")[0]
            if pid.isdigit():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def arguments(source, folder, args=()):
    """Return what Python is given to run a program: a file, a function of one, or source that a file is made of."""
    if isinstance(source, Program) and source.function:
        return [RUN, source.file, source.function, json.dumps(args)]
    return [program(source.file if isinstance(source, Program) else source, folder), *args]


def program(source, folder):
    """Return the file of a program, which is made of source if that is text."""
    if isinstance(source, Path):
        return source
    source = textwrap.dedent(source).lstrip("\n")
    handle, name = tempfile.mkstemp(suffix=".py", prefix="program_", dir=folder)
    with open(handle, "w") as file:
        file.write(source)
    return Path(name)


class Runner:
    """What the fixture ``mpirun`` is: call it to run a job, ``start`` one to do things to it."""

    def __init__(self, folder):
        self.folder = folder
        self.jobs = []

    def __call__(self, n, source, *args, expect=0, **options):
        """Run a program (see support.programs), or the script at a Path, on ``n`` ranks; return the Result.

        timeout: seconds until the launcher prints what every rank does, and ends them;
        env: variables to set, or to take away (None); expect: the exit status, or ANY;
        launcher: more options of mpiexec; python: what runs the program; stdin: text.
        """
        return self.start(n, source, *args, **options).finish(expect)

    def until_timeout(self, n, source, *args, says, first=2.0, **options):
        """Run a job that waits for ever into its time-out, a longer one if the ranks were not yet there; return the Result.

        says: what is in the standard error then, as patterns, and how often.
        """
        for timeout in (first, 10.0, 40.0):
            result = self(n, source, *args, timeout=timeout, expect=124, **options)
            if all(len(re.findall(pattern, result.stderr)) >= count for pattern, count in says.items()):
                break
        return result

    def start(self, n, source, *args, python=(sys.executable,), **options):
        """Start a job and return it as a Job."""
        return self.command(n, *python, *arguments(source, self.folder, args), **options)

    def command(self, n, *command, timeout=30.0, env=None, launcher=(), cwd=None, stdin=None):
        """Start any command on ``n`` ranks."""
        line = [mpiexec(), "-n", n, "--timeout", timeout, *launcher, *command]
        job = Job(line, environment(env), cwd or self.folder, stdin, timeout)
        self.jobs.append(job)
        return job

    def alone(self, source, *args, timeout=30.0, env=None, expect=0, stdin=None, python=(sys.executable,), clean=True):
        """Run a program without a launcher, as a singleton. clean: look whether it leaves something behind."""
        line = [*python, *arguments(source, self.folder, args)]
        # GORMAPY_JOB_NODES is for mpiexec. Here it would look as if a rank had been started.
        job = Job(line, environment({"GORMAPY_JOB_NODES": None, **(env or {})}), self.folder, stdin, timeout)
        self.jobs.append(job)
        return job.finish(expect, clean)

    def close(self):
        """End the jobs that a failed test left running."""
        for job in self.jobs:
            if job.process.poll() is None:
                job.stop()
