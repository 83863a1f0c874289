"""One cell, test or program on the ranks of a session, watched for failures, deadlocks and time-outs.

The ranks are sent a message ``run``, and each answers ``done`` at the end. Meanwhile they are asked four times a second
in which calls they wait (`diagnosis`). Ranks that can't come to the end any more are interrupted: by SIGINT, which
the worker turns into an exception.
"""

import time

from .diagnosis import Report, Sighting, stand_still
from .errors import Deadlock, Interrupted, RankDied, RanksError, TimeOut, ranks_text

_FIRST_LOOK = 0.5  # seconds after which ranks are first asked for their state
_LOOK_EVERY = 0.25
_LOOK_LATE = 2.0  # a rank that has not answered by then holds Python's lock
_REACT_WITHIN = 5.0  # for ranks that were interrupted
_END_AFTER = 12.0  # when there may be no user to press stop again
_AGAIN = 1.5  # seconds until ranks that did not react get another signal


class Watched:
    """What some ranks run; `run` returns when all have ended it, or raises a RanksError.

    The view has ``refresh(final)``, ``say(text)`` and ``report(report, title, kind)``: see `gormapy.magic.view`.
    """

    noun = "cell"
    interrupted: type[Interrupted] = Interrupted
    timed_out: type[TimeOut] = TimeOut
    again = _AGAIN
    signals = 3  # how often a rank that does not react is interrupted
    lost = " All ranks were ended, and their state is lost; the next one starts new ones."

    def __init__(self, session, view, ranks, deadlock=2.0, grace=1.0, timeout=None):
        self.session, self.view = session, view
        self.ranks = session.chosen(ranks)
        self.deadlock, self.grace, self.timeout = deadlock, grace, timeout
        self.results = {}
        self.asked = 0
        self.stood = 0  # answers of all ranks in a row that said that no rank can continue
        numbers = {r.number for r in self.ranks}
        self.sightings = {r.number: Sighting(r.number, r.number in numbers) for r in session.chosen()}
        self.stopped = None  # the reason why the ranks were interrupted, an exception

    @property
    def running(self):
        """The ranks that have not come to the end."""
        return [r for r in self.ranks if r.number not in self.results]

    def run(self, payloads=(), **fields):
        """Let the ranks run what the fields of a message say; return their results."""
        session = self.session
        session.cells += 1
        self.begun = self.looked = time.monotonic()
        for rank in self.ranks:
            rank.state = "running"
            rank.replies.clear()
        session.send(self.ranks, "run", payloads, cell=session.cells, **fields)
        while self.running:
            self._step()
            if self.stopped is None:
                self.stopped = self._reason()
                if self.stopped is not None:
                    self.view.refresh(final=True)
                    self._interrupt()
        return self.results

    def _step(self):
        session = self.session
        session.pump(0.05)
        self._collect()
        self.view.refresh()
        if any(r.gone for r in session.ranks.values()):
            self._on_death()

    def _collect(self):
        for rank in self.session.chosen():
            sighting = self.sightings[rank.number]
            for reply in rank.replies:
                if reply.kind == "done" and reply.cell == self.session.cells:
                    self.results[rank.number] = reply
                    sighting.end(self.is_failure(reply))
                elif reply.kind == "failed":
                    self.results[rank.number] = {
                        "failure": {"ename": "InternalError", "text": reply.text, "code": None}
                    }
                    sighting.end(True)
                elif reply.kind == "where":
                    sighting.see(reply)
                else:
                    self.take(rank.number, reply)
            rank.replies.clear()

    @staticmethod
    def is_failure(result):
        """Return whether a rank has failed."""
        return failed(result["failure"])

    def take(self, number, message):
        """Take another message of a rank."""

    def _reason(self):
        """Return the reason to interrupt the ranks, None if there is none."""
        if not self.running:
            return None
        if self.session.interrupts():
            return self.interrupted(f"the {self.noun} was interrupted")
        now = time.monotonic()
        if self.timeout is not None and now - self.begun > self.timeout:
            self._look(wait=3.0)
            report = Report(self.sightings.values(), self.noun)
            running = [r.number for r in self.running]
            self.view.report(report, f"After {self.timeout:g} s: what the ranks do", "timeout")
            return self.timed_out(f"{ranks_text(running)} did not end within {self.timeout:g} s")
        if now - self.begun < _FIRST_LOOK or now - self.looked < _LOOK_EVERY:
            return None
        seen = self.sightings.values()
        if self.asked and now - self.looked < _LOOK_LATE and any(s.ask != self.asked for s in seen):
            return None  # answers take long on a busy machine
        failed = [s.rank for s in seen if s.failed]
        self.stood = self.stood + 1 if stand_still(seen, self.asked, self.grace if failed else self.deadlock) else 0
        # A process that was stopped may answer before the thread that waits runs again, so it is asked twice.
        if self.stood == 2:
            report = Report(seen, self.noun)
            if failed:
                self.forsaken(report)
                return RanksError("")  # the failure itself is reported at the end
            self.view.report(report, f"Deadlock: {report.sentence()}", "deadlock")
            return Deadlock(report.sentence())
        self._look()
        return None

    def forsaken(self, report):
        """Show that ranks wait for one that has failed."""
        waiting = [r.number for r in self.running]
        verb = "was" if len(waiting) == 1 else "were"
        self.view.say(f"{capital(report.sentence())}. {capital(ranks_text(waiting))} {verb} interrupted.")

    def _look(self, wait=0.0):
        """Ask all ranks for their state; wait for the answers for ``wait`` seconds."""
        self.asked += 1
        self.looked = time.monotonic()
        self.session.send(self.session.chosen(), "where", ask=self.asked)
        while wait and time.monotonic() - self.looked < wait:
            if all(s.ask == self.asked for s in self.sightings.values()):
                break
            self.session.pump(0.05)
            self._collect()

    def _interrupt(self):
        """Interrupt the ranks that run, and end the session if they do not end the cell."""
        session, begun = self.session, time.monotonic()
        by_user = isinstance(self.stopped, Interrupted)
        pressed, sent, told = session.interrupts(), 0, False
        while self.running:
            waited = time.monotonic() - begun
            if waited >= sent * self.again and sent < self.signals:
                session.interrupt(self.running)
                sent += 1
            self._step()
            if not self.running:
                break
            stuck = [r.number for r in self.running]
            if session.interrupts() > pressed or (waited > _END_AFTER and not by_user):
                self.view.say(f"{capital(ranks_text(stuck))} did not react: all ranks were ended. State is lost.")
                session.close(at_once=True)
                raise self.stopped
            if by_user and waited > _REACT_WITHIN and not told:
                told = True
                verb = "it runs" if len(stuck) == 1 else "they run"
                self.view.say(
                    f"{capital(ranks_text(stuck))} did not react within {_REACT_WITHIN:g} s: {verb} code that "
                    "Python can't interrupt. Interrupt again to end all ranks."
                )

    def _on_death(self):
        session = self.session
        how = session.dead()
        self._collect()
        self.view.refresh(final=True)
        session.close(at_once=True)
        self.view.refresh(final=True)
        raise RankDied("; ".join(f"rank {r} {text}" if r >= 0 else text for r, text in how.items()) + f".{self.lost}")


def failed(failure):
    """Return whether a rank's end is a failure: sys.exit() without a status is none."""
    return failure is not None and not (failure["ename"] == "SystemExit" and failure["code"] in (None, 0))


def capital(text):
    """Return a text that begins with a capital letter."""
    return text[0].upper() + text[1:]
