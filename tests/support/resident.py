"""Jobs whose ranks stay and run one program after the other: most of a short job is its start.

    def test_something(ranks, n):
        result = ranks(n, program.something, 3, "four")

The result is that of ``mpirun``. A program that fails on one rank fails the test. A program that expects to fail, kills,
exits, forks, or needs its own environment at the start is for ``mpirun``, which starts a job for it.

A *team* is a job of ``n`` ranks with one environment: a session of ``gormapy._resident``, as notebooks and ``pytest --mpi``
have. The pool starts it when a test first asks for it. The ranks differ from those of notebooks in that they have one
thread, which runs the programs: it answers nothing meanwhile.

    state      the tests write           the rank writes, and is then
    idle       run {file, …}             nothing yet                    running
    running    nothing                   done {status, left}            ran
    ran        reset, if all ranks       reset, when gormapy.reset      idle
               have status 0             has returned on all ranks

No rank gets the next program before all have settled, so they stay in step: what was not received is gone then, and
collectives start afresh. What ranks write is kept by rank; so what one rank writes stays in order, and that of rank 0
comes first.

A team is thrown away, and a new one started for the next program, when

- a rank has another status than 0: the others have FAIL_GRACE to end, then they say what they do;
- the program's time is over: each rank writes its Python stacks (StackSignal of gocore/job, handled in C) and what it
  waits for (WAITS_SIGNAL, handled where Python handles signals, as in waits of MPI);
- a rank has ended. The launcher says why, and ends the others;
- a program has left something: handles, signal handlers, the environment, threads and what else ``state`` of
  rankside/resident_rank.py lists. That alone is no failure: it was none when jobs ended with their programs. Processes
  and names that are left are a failure, as with ``mpirun``.

When the tests die, the ranks end.
"""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path

from gormapy._resident.session import Session

from . import leftovers
from .mpirun import GRACE, SUPPORT, Result, environment
from .programs import Program

STACK_SIGNAL, WAITS_SIGNAL = 61, 62  # see gocore/job/segment.go, rankside/resident_rank.py

FAIL_GRACE = 1.0
SETTLE_TIME = 60.0
STACK_TIME, QUIET_TIME = 10.0, 0.2
GONE_TIME = 2.0
ALIVE = 20  # ranks of all teams; the team that waits longest for a program makes room


# How a team is when it is thrown away.
IDLE, RUNNING, ENDED = "idle", "running", "ended"


class Output:
    """What ranks write."""

    def __init__(self):
        self.texts = {}

    def write(self, rank, stream, text):
        """Take text of a rank."""
        self.texts.setdefault((stream, rank), []).append(text)

    def text(self, stream):
        """Return what all ranks have written to a stream, rank 0 first."""
        return "".join("".join(self.texts[key]) for key in sorted(self.texts) if key[0] == stream)

    def size(self, rank):
        """Return how much a rank has written to its standard error."""
        return sum(map(len, self.texts.get(("stderr", rank), ())))


class Team(Session):
    """A job of ranks that stay."""

    worker = (str(SUPPORT / "rankside" / "resident_rank.py"),)
    exit_within = GRACE

    def __init__(self, n, env):
        self.env = env
        self.mark = f"GORMAPYTEST_JOB={uuid.uuid4().hex}"
        self.before = leftovers.names()
        self.used = time.monotonic()
        super().__init__(n)
        self.sink = self.output = Output()
        self.start()
        self.own = set(self._processes())

    def environment(self):
        """Return the environment of the ranks."""
        name, _, value = self.mark.partition("=")
        return {**environment(self.env), name: value}

    def _processes(self):
        return {line.partition(":")[0]: line for line in leftovers.processes(self.mark)}

    def strangers(self):
        """List the processes that programs have begun, as "pid: command" texts."""
        return [line for pid, line in self._processes().items() if pid not in self.own]

    def lives(self):
        """Report whether all ranks are there."""
        self.pump(0)
        return self._launcher.poll() is None and not any(rank.gone for rank in self.ranks.values())

    def begin(self, **task):
        """Let all ranks run a program; return where their output is kept."""
        self.sink = self.output = Output()
        for rank in self.chosen():
            rank.state = "running"
        self.send(self.chosen(), "run", **task)
        return self.output

    def hear(self, kind, seconds):
        """Return one message of each rank that sends one in time, and after a failure not much later, and who ended."""
        found, gone = {}, set()
        end = time.monotonic() + seconds
        while True:
            for rank in self.chosen():
                new = [reply for reply in rank.replies if reply.kind == kind]
                rank.replies.clear()
                if new:
                    found[rank.number] = new[0]
                if rank.gone and rank.number not in found:
                    gone.add(rank.number)
                if (new and new[0].get("status")) or rank.gone:
                    end = min(end, time.monotonic() + FAIL_GRACE)
            if len(found) + len(gone) == self.size or time.monotonic() > end:
                return found, gone
            self.pump(max(0.0, min(0.2, end - time.monotonic())))

    def ask(self, running):
        """Have ranks write their stacks, and others what they wait for, into the output of the program.

        A rank that handles a signal has left its wait meanwhile, so it writes what all others wait for. One that is
        through with its program is asked, or else two.
        """
        self._signal(running, STACK_SIGNAL)
        through = [rank for rank in range(self.size) if rank not in running]
        for rank in through[:1] or list(running)[:2]:
            self._signal([rank], WAITS_SIGNAL)

    def _signal(self, ranks, number):
        """Send a signal to ranks, and wait until all of them have written something, and write no more."""

        def written():
            return [self.output.size(rank) for rank in ranks]

        before = last = written()
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.ranks[rank].pid, number)
        changed = time.monotonic()
        end = changed + STACK_TIME
        while (now := time.monotonic()) < end:
            if (sizes := written()) != last:
                last, changed = sizes, now
            if all(new > old for new, old in zip(last, before)) and now > changed + QUIET_TIME:
                break
            self.pump(0.01)

    def end(self, how=IDLE):
        """End the job; return what is left of it, where it ends by itself."""
        left = []
        if how is ENDED:
            end = time.monotonic() + GONE_TIME  # else the rank has ended without an error, and the launcher goes on
            while self._launcher.poll() is None and time.monotonic() < end:
                self.pump(0.05)
            self.pump(0)
        by_itself = how is IDLE or self._launcher.poll() is not None
        self.close(at_once=how is RUNNING)
        if by_itself and how is not RUNNING:
            left = leftovers.after(self.mark, self.before)
        for line in leftovers.processes(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.partition(":")[0]), signal.SIGKILL)
        return left


class Pool:
    """The teams of a session of tests."""

    def __init__(self, folder):
        self.folder = folder
        self.teams = {}
        self.started = self.ran = 0
        self.reasons = {}  # programs after which a team was thrown away, and why

    def team(self, n, env):
        """Return a team whose ranks are there."""
        key = n, tuple(sorted(env.items()))
        team = self.teams.get(key)
        if team is not None and not team.lives():
            self._end(key)
            team = None
        if team is None:
            alive = sorted(self.teams, key=lambda k: self.teams[k].used)
            while alive and sum(self.teams[k].size for k in alive) + n > ALIVE:
                self._end(alive.pop(0))
            self.started += 1
            team = self.teams[key] = Team(n, env)
        team.used = time.monotonic()
        return key, team

    def _end(self, key):
        left = self.teams.pop(key).end()
        assert not left, "a team of ranks left behind:\n  " + "\n  ".join(left)

    def run(self, n, program, arguments, folder, env, timeout):
        """Run a program on ranks that stay."""
        if isinstance(program, Path):
            program = Program(program)
        key, team = self.team(n, env)
        names = leftovers.names()
        self.ran += 1
        said = len(team.spoken)
        begun = time.monotonic()
        try:
            how, trouble, found = self._run(team, program, arguments, folder, timeout)
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
            launcher = team.spoken[said:] if how is RUNNING else ""
            left = team.end(how)
            if how is not RUNNING:
                behind, launcher = behind + left, team.spoken[said:]
        else:
            launcher = ""
        texts = team.output.text("stdout"), team.output.text("stderr") + launcher
        status = max((report["status"] for report in found.values()), default=0) or (1 if trouble else 0)
        line = [f"{n} ranks that stay:", str(program), *map(str, arguments)]
        result = Result(line, status, *texts, duration, begun, time.monotonic())
        assert not trouble, f"{trouble}\n{result}"
        assert not behind, "the program left behind:\n  " + "\n  ".join(behind) + f"\n{result}"
        return result

    def _run(self, team, program, arguments, folder, timeout):
        """Return how the team is after the program, what went wrong, and the reports of the ranks."""
        team.begin(file=str(program.file), function=program.function, arguments=arguments, folder=str(folder))
        found, gone = team.hear("done", timeout)
        missing = [rank for rank in range(team.size) if rank not in found]
        bad = [f"rank {rank}: status {report['status']}" for rank, report in sorted(found.items()) if report["status"]]
        if gone:
            return ENDED, f"rank {min(gone)} has ended in the program", found
        if missing:
            team.ask(missing)
            return RUNNING, "; ".join(bad) or f"time-out after {timeout} s: ranks {missing} still run", found
        if bad or any(report["left"] for report in found.values()):
            return IDLE, "; ".join(bad), found
        team.send(team.chosen(), "reset")
        settled, gone = team.hear("reset", SETTLE_TIME)
        if gone:
            return ENDED, f"rank {min(gone)} has ended after the program", found
        if len(settled) < team.size:
            team.ask(range(team.size))
            return RUNNING, f"ranks {sorted(set(range(team.size)) - set(settled))} did not reset communication", found
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
