"""Jobs whose ranks stay and run one program after the other: most of a short job is its start.

    def test_something(ranks, n):
        result = ranks(n, program.something, 3, "four")

The result is that of ``mpirun``. A program that fails on one rank fails the test. A program that expects to fail, kills,
exits, forks, or needs its own environment at the start is for ``mpirun``, which starts a job for it.

A *team* is a job of ``n`` ranks with one environment. The pool starts it when a test first asks for it. Each rank is
connected to the tests by a Unix socket; both sides write JSON lines.

    state      the tests write             the rank writes, and is then
    starting   -                           {rank, pid}                    idle
    idle       {do: run, file, …}          nothing yet                    running
    running    nothing                     {status, left}                 ran
    ran        {do: settle}, if all ranks  {settled}, when gormapy.reset  idle
               have status 0               has returned on all ranks

Only the side named in a line may write in that state, and only one message. No rank gets the next program before all
have settled, so they stay in step: what was not received is gone then, and collectives start afresh. While a program
runs, standard output and error are a file for each rank, which only that rank writes, and which is read when all have
ended; so what one rank writes stays in order, and that of rank 0 comes first.

A team is thrown away, and a new one started for the next program, when

- a rank has another status than 0: the others have FAIL_GRACE to end, then they say what they do;
- the program's time is over: each rank writes its Python stacks (StackSignal of gocore/job, handled in C) and what it
  waits for (WAITS_SIGNAL, handled where Python handles signals, as in waits of MPI);
- a rank has ended: its socket is closed. The launcher says why, and ends the others;
- a program has left something: handles, signal handlers, the environment, threads and what else ``state`` of
  rankside/resident_rank.py lists. That alone is no failure: it was none when jobs ended with their programs. Processes
  and names that are left are a failure, as with ``mpirun``;
- it is old: ``mpiexec --timeout`` would end it. That time-out is the net for a defect here: it prints what every rank
  does, and ends the job, whatever the tests do.

When the tests die, the sockets close, and the ranks end.
"""

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

from . import leftovers
from .mpirun import GRACE, SUPPORT, Job, Result, environment, mpiexec
from .programs import Program

RANK = SUPPORT / "rankside" / "resident_rank.py"
STACK_SIGNAL, WAITS_SIGNAL = 61, 62  # see gocore/job/segment.go, rankside/resident_rank.py

START_TIME = 60.0
FAIL_GRACE = 1.0
STACK_TIME, QUIET_TIME = 10.0, 0.2
GONE_TIME = 2.0
NET = 600.0  # mpiexec --timeout
ALIVE = 20  # ranks of all teams; the team that waits longest for a program makes room


# How a team is when it is thrown away.
IDLE, RUNNING, ENDED = "idle", "running", "ended"


class Ended(Exception):
    """A rank or the launcher has ended."""


class Team:
    """A job of ranks that stay."""

    def __init__(self, n, env, folder):
        self.n = n
        self.born = self.used = time.monotonic()
        self.programs = 0
        self.peers = {}
        self.pids = {}
        name = f"gormapy-tests-{uuid.uuid4().hex}"  # in no folder: the path of a socket has at most 107 bytes
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{name}")
        listener.listen(n)
        command = [mpiexec(), "-n", n, "--timeout", NET, sys.executable, RANK, name]
        self.job = Job(command, environment(env), folder, timeout=NET)
        try:
            self._welcome(listener)
            self.own = set(self._processes())
        except BaseException:
            self.job.stop()
            raise
        finally:
            listener.close()

    def _welcome(self, listener):
        listener.settimeout(0.2)
        end = time.monotonic() + START_TIME
        while len(self.peers) < self.n:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if self.job.process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"{self.n} ranks did not start\n{self._said()}") from None
                continue
            connection.settimeout(START_TIME)
            reader = connection.makefile("rb")
            hello = json.loads(reader.readline())
            self.peers[hello["rank"]] = connection, reader
            self.pids[hello["rank"]] = hello["pid"]

    def _processes(self):
        return {line.partition(":")[0]: line for line in leftovers.processes(self.job.mark)}

    def strangers(self):
        """List the processes that programs have begun, as "pid: command" texts."""
        return [line for pid, line in self._processes().items() if pid not in self.own]

    def _said(self):
        return f"--- standard output\n{self.job.stdout}\n--- standard error\n{self.job.stderr}\n---"

    def lasts(self, seconds):
        """Report whether the launcher's time-out is further away than that."""
        return self.job.process.poll() is None and time.monotonic() + seconds < self.born + NET - 2 * GRACE

    def tell(self, message, parts):
        """Send a message to all ranks, with a part for each."""
        for rank, (connection, _) in self.peers.items():
            try:
                connection.sendall(json.dumps(message | parts[rank]).encode() + b"\n")
            except OSError:
                raise Ended from None

    def hear(self, seconds):
        """Return one message of each rank that sends one in time, and after a failure not much later, and who ended."""
        found, gone = {}, set()
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for rank, (connection, reader) in self.peers.items():
                selector.register(connection, selectors.EVENT_READ, (rank, reader))
            while selector.get_map() and (left := end - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    rank, reader = key.data
                    selector.unregister(key.fileobj)
                    try:
                        line = reader.readline()
                    except OSError:
                        line = b""
                    if line:
                        found[rank] = json.loads(line)
                    else:
                        gone.add(rank)
                    if not line or found[rank].get("status"):
                        end = min(end, time.monotonic() + FAIL_GRACE)
        return found, gone

    def ask(self, running, errors):
        """Have ranks write their stacks, and others what they wait for, into the outputs of the program.

        A rank that handles a signal has left its wait meanwhile, so it writes what all others wait for. One that is
        through with its program is asked, or else two.

        errors: the file of each rank that has its standard error; of one that is through it is the job's.
        """
        self._signal(running, STACK_SIGNAL, errors)
        through = [rank for rank in range(self.n) if rank not in running]
        for rank in through[:1] or list(running)[:2]:
            self._signal([rank], WAITS_SIGNAL, errors)

    def _signal(self, ranks, number, errors):
        """Send a signal to ranks, and wait until all of them have written something, and write no more."""

        def written():
            own = [errors[rank].stat().st_size if errors[rank].exists() else 0 for rank in ranks]
            return [size + len(self.job.stderr) for size in own]

        before = last = written()
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[rank], number)
        changed = time.monotonic()
        end = changed + STACK_TIME
        while (now := time.monotonic()) < end:
            if (sizes := written()) != last:
                last, changed = sizes, now
            if all(new > old for new, old in zip(last, before)) and now > changed + QUIET_TIME:
                break
            time.sleep(0.01)

    def end(self, how=IDLE):
        """End the job; return what is left of it, where it ends by itself."""
        left = []
        if how is ENDED:
            self._wait(GONE_TIME)  # else the rank has ended without an error, and the launcher goes on
        if how is not RUNNING:
            for connection, reader in self.peers.values():
                reader.close()
                connection.close()
            if self._wait(GRACE):
                left = leftovers.after(self.job.mark, self.job.before)
        self.job.stop()
        return left

    def _wait(self, seconds):
        try:
            self.job.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class Pool:
    """The teams of a session of tests."""

    def __init__(self, folder):
        self.folder = folder
        self.teams = {}
        self.started = self.ran = 0
        self.reasons = {}  # programs after which a team was thrown away, and why

    def team(self, n, env, seconds):
        """Return a team that lasts for the program to run."""
        key = n, tuple(sorted(env.items()))
        team = self.teams.get(key)
        if team is not None and not team.lasts(seconds):
            self._end(key)
            team = None
        if team is None:
            alive = sorted(self.teams, key=lambda k: self.teams[k].used)
            while alive and sum(self.teams[k].n for k in alive) + n > ALIVE:
                self._end(alive.pop(0))
            self.started += 1
            folder = self.folder / str(self.started)
            folder.mkdir()
            team = self.teams[key] = Team(n, env, folder)
        team.used = time.monotonic()
        return key, team

    def _end(self, key):
        left = self.teams.pop(key).end()
        assert not left, "a team of ranks left behind:\n  " + "\n  ".join(left)

    def run(self, n, program, arguments, folder, env, timeout):
        """Run a program on ranks that stay."""
        if isinstance(program, Path):
            program = Program(program)
        key, team = self.team(n, env, timeout)
        names = leftovers.names()
        outputs = [[folder / f"{kind}.{self.ran}.{rank}" for kind in ("stdout", "stderr")] for rank in range(n)]
        self.ran += 1
        said = len(team.job.stdout), len(team.job.stderr)
        begun = time.monotonic()
        try:
            how, trouble, found = self._run(team, program, arguments, folder, timeout, outputs)
        except BaseException:  # how the ranks are is not known
            del self.teams[key]
            team.end(RUNNING)
            raise
        duration = time.monotonic() - begun
        changes = sorted({text for report in found.values() for text in report["left"]})
        behind = [] if trouble else self._behind(team, names)
        if trouble or changes or behind:
            self.reasons[str(program)] = trouble or "; ".join(changes + behind)[:300]
            del self.teams[key]
            if how is RUNNING:
                launcher = team.job.stdout[said[0] :], team.job.stderr[said[1] :]
                team.end(how)
            else:
                behind += team.end(how)
                launcher = team.job.stdout[said[0] :], team.job.stderr[said[1] :]
        else:
            launcher = "", ""
        texts = [
            "".join(pair[i].read_text(errors="replace") for pair in outputs if pair[i].exists()) + launcher[i]
            for i in range(2)
        ]
        status = max((report["status"] for report in found.values()), default=0) or (1 if trouble else 0)
        line = [f"{n} ranks that stay:", str(program), *map(str, arguments)]
        result = Result(line, status, *texts, duration, begun, time.monotonic())
        assert not trouble, f"{trouble}\n{result}"
        assert not behind, "the program left behind:\n  " + "\n  ".join(behind) + f"\n{result}"
        return result

    def _run(self, team, program, arguments, folder, timeout, outputs):
        """Return how the team is after the program, what went wrong, and the reports of the ranks."""
        errors = [pair[1] for pair in outputs]
        task = {"do": "run", "file": str(program.file), "function": program.function, "arguments": arguments}
        try:
            team.tell(task, [{"folder": str(folder), "outputs": list(map(str, pair))} for pair in outputs])
            found, gone = team.hear(timeout)
        except Ended:
            return ENDED, "a rank has ended before the program", {}
        missing = [rank for rank in range(team.n) if rank not in found]
        bad = [f"rank {rank}: status {report['status']}" for rank, report in sorted(found.items()) if report["status"]]
        if gone:
            return ENDED, f"rank {min(gone)} has ended in the program", found
        if missing:
            team.ask(missing, errors)
            return RUNNING, "; ".join(bad) or f"time-out after {timeout} s: ranks {missing} still run", found
        if bad or any(report["left"] for report in found.values()):
            return IDLE, "; ".join(bad), found
        try:
            team.tell({"do": "settle"}, [{}] * team.n)
            settled, gone = team.hear(START_TIME)
        except Ended:
            gone = {0}
        if gone:
            return ENDED, f"rank {min(gone)} has ended after the program", found
        if len(settled) < team.n:
            team.ask(range(team.n), errors)
            return RUNNING, f"ranks {sorted(set(range(team.n)) - set(settled))} did not reset communication", found
        return IDLE, "", found

    @staticmethod
    def _behind(team, names):
        """List processes and names that the program made and left, once it had the time to take them away."""
        end = time.monotonic() + leftovers.PATIENCE
        while True:
            left = team.strangers() + sorted(leftovers.names() - names)
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.02)

    def close(self):
        """End all teams."""
        left = [line for key in list(self.teams) for line in self.teams.pop(key).end()]
        assert not left, "ranks that stayed left behind:\n  " + "\n  ".join(left)

    def told(self):
        """Return how many programs ran, how many jobs that took, and why teams were replaced, as JSON has it."""
        return {"ran": self.ran, "started": self.started, "reasons": self.reasons}


class Ranks:
    """What the fixture ``ranks`` is: call it to run a program on ranks that stay."""

    def __init__(self, pool, folder):
        self.pool, self.folder = pool, folder

    def __call__(self, n, program, *arguments, timeout=30.0, env=None):
        """Run a program, a file or a function of one, on ``n`` ranks; return the Result.

        timeout: seconds until every rank says what it does, and the test fails;
        env: variables to set, or to take away (None): ranks with that environment run the program.
        """
        return self.pool.run(n, program, list(arguments), self.folder, env or {}, timeout)
