"""One test on the ranks of a team: what it reports and prints, until all have done it or were ended."""

from __future__ import annotations

import pickle
import re
import time

from .._resident.errors import Deadlock, RankDied, RanksError, TimeOut, ranks_text
from .._resident.watched import Watched, capital

_STACKS_WITHIN = 3.0
_STACK_SIGNAL = 61  # StackSignal of gocore/job
PHASES = ("setup", "call", "teardown")
_LIMIT = 1 << 20  # characters of output of a rank, in a phase


_MARK = re.compile("\0gormapy (setup|call|teardown)\0")
_BEGUN = re.compile("\0(?:g(?:o(?:r(?:m(?:a(?:p(?:y(?: [a-z]*)?)?)?)?)?)?)?)?$")


def mark(phase):
    """Return what a rank writes to its standard output and error when a phase begins."""
    return f"\0gormapy {phase}\0"


class Output:
    """What ranks print, by phase; or straight to the terminal."""

    def __init__(self, through=None):
        self.through = through  # takes the text of -s
        self.texts = {}  # by phase, stream and rank
        self._phases, self._rests = {}, {}  # by rank and stream

    def write(self, rank, stream, text):
        """Take text, with the marks of phases."""
        key = rank, stream
        *pieces, last = _MARK.split(self._rests.pop(key, "") + text)
        begun = _BEGUN.search(last)
        if begun is not None:  # a mark that is not complete
            last, self._rests[key] = last[: begun.start()], last[begun.start() :]
        for k, piece in enumerate([*pieces, last]):
            if k % 2:
                self._phases[key] = piece
            elif piece and self.through is not None:
                self.through(rank, stream, piece)
            elif piece:
                phase = self._phases.get(key, "setup")
                self.texts.setdefault((phase, stream), {}).setdefault(rank, _Kept()).add(piece)

    def sections(self, phase):
        """Return the report sections of a phase: ranks that have printed the same have one."""
        found = []
        for stream in ("stdout", "stderr"):
            groups = {}
            for rank, kept in sorted(self.texts.get((phase, stream), {}).items()):
                groups.setdefault(kept.text(), []).append(rank)
            found += [
                (f"Captured {stream} {phase}, {ranks_text(ranks)}", text) for text, ranks in groups.items() if text
            ]
        return found


class _Kept:
    """Text whose middle is dropped when it gets too long."""

    def __init__(self):
        self.head, self.tail, self.dropped = "", "", 0

    def add(self, text):
        room = _LIMIT // 2 - len(self.head)
        if room > 0:
            self.head, text = self.head + text[:room], text[room:]
        self.tail += text
        if len(self.tail) > _LIMIT:
            self.dropped += len(self.tail) - _LIMIT // 2
            self.tail = self.tail[-(_LIMIT // 2) :]

    def text(self):
        note = f"\n[... {self.dropped:,} characters are not shown ...]\n" if self.dropped else ""
        return self.head + note + self.tail


class TestRun(Watched):
    """One test on all ranks of a team. ``output`` and the lists of remarks are there however it ends."""

    __test__ = False
    noun = "test"
    again = 1.0
    signals = 12
    lost = ""

    def __init__(self, session, output, **limits):
        super().__init__(session, self, None, **limits)
        self.output = output
        self.reports = {}  # by phase, by rank: what pytest there has reported, the phase itself last
        self.phases = {}  # of each rank
        self.warnings = []
        self.said = []  # remarks, for the report
        self.table = ""  # of a deadlock or a time-out
        self.stacks = {}
        self.waited = []  # for what ranks that were interrupted have waited
        self.ended_in = None  # the phase in which it was ended as a whole
        self.how = None  # the error by which the test was ended as a whole

    def execute(self, **fields):
        """Run the test; never raises a RanksError."""
        try:
            self.run(**fields)
            self.how = self.stopped
        except RanksError as error:
            self.how = error
            self.ended_in = self.ended_in or self.phase
        finally:
            self.session.sink = None

    @staticmethod
    def is_failure(result):
        """Return whether a rank has failed."""
        return result.get("failed", True)

    def take(self, number, message):
        """Take a phase, a report or a warning of a rank."""
        if message.kind == "report":
            self.reports.setdefault(message.when, {}).setdefault(number, []).append(pickle.loads(message.payloads[0]))
            self.sightings[number].failed |= message["failed"]
        elif message.kind == "phase":
            self.phases[number] = message.when
        elif message.kind == "timer":
            end = time.monotonic() - self.begun + message.seconds
            self.timeout = end if self.timeout is None else min(self.timeout, end)
        elif message.kind == "warning":
            self.warnings.append(message)

    # The view of `Watched`
    # ---------------------

    def refresh(self, final=False):
        """Show nothing before the end."""

    def say(self, text):
        """Keep a remark."""
        self.said.append(text)

    def report(self, report, title, kind):
        """Keep the table of a deadlock or a time-out, and get the stacks of the ranks that still run."""
        self.ended_in = self.phase
        self.table = f"{title}\n\n{report.text()}\n"
        if kind == "timeout":
            self._get_stacks()

    def forsaken(self, report):
        """Keep for what the ranks wait that others have forsaken by failing."""
        for rank in self.running:
            sighting = self.sightings[rank.number]
            if sighting.failed or sighting.wait is None:
                continue
            row = next(row for row in report.rows() if row[0] == str(rank.number))
            who, place = f" for {row[2]}" if row[2] else "", f" ({row[4]})" if row[4] else ""
            self.waited.append(f"rank {rank.number} still waited in {report.call(rank.number)}{who}{place}")

    def _get_stacks(self):
        running = self.running
        answers = self.session.ask(running, "stacks", "stacks", _STACKS_WITHIN)
        self.stacks = {number: answer.text for number, answer in answers.items()}
        silent = [rank for rank in running if rank.number not in answers and not rank.gone]
        if silent:  # code that holds Python's lock: the stacks come on standard error
            self.say(
                f"{capital(ranks_text(r.number for r in silent))} did not answer: stacks are among the errors below."
            )
            self.session.signal(silent, _STACK_SIGNAL)
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                self.session.pump(0.05)

    @property
    def phase(self):
        """The phase in which the ranks are that have not done the test."""
        running = [PHASES.index(self.phases.get(rank.number, "setup")) for rank in self.running]
        return PHASES[max(running, default=0)]

    def headline(self):
        """Return how the test was ended as a whole, "" if the ranks have only failed."""
        if isinstance(self.how, Deadlock):
            return f"deadlock: {self.how}"
        if isinstance(self.how, TimeOut):
            return f"time-out: {self.how}"
        if isinstance(self.how, RankDied):
            return str(self.how).rstrip(".")
        return ""
