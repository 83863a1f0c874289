"""One cell on the ranks of a session."""

import time

from .._resident.errors import RanksError, ranks_text
from .._resident.watched import Watched, capital
from .._resident.watched import failed as failed_by
from . import progress
from .errors import CellInterrupted, CellTimeout, MPICellError

_EVERY = 1.0  # seconds between two lines about the progress
_STILL = 0.5  # if all ranks have stood still for this time, there may be a deadlock, which will be told
_SILENT = 1.0  # seconds after which a rank counts as one that does not answer


class CellRun(Watched):
    """One cell on some ranks; `run` returns when all have ended it, or raises a RanksError."""

    interrupted = CellInterrupted
    timed_out = CellTimeout
    lost = " All ranks were ended, and their state is lost; the next cell starts new ones."

    def __init__(self, *arguments, progress_after=0.0, **options):
        super().__init__(*arguments, **options)
        self.progress_at = progress_after or float("inf")

    def _step(self):
        super()._step()
        now = time.monotonic()
        if self.stopped is not None or not self.running or now - self.begun < self.progress_at:
            return
        seen = self.sightings.values()
        if all(s.still(_STILL) for s in seen):
            return
        self.progress_at = now - self.begun + _EVERY
        late = now - self.looked > _SILENT
        silent = [s.rank for s in seen if late and s.ask != self.asked]
        self.view.progress(progress.line(now - self.begun, seen, silent))

    def conclude(self):
        """Show failures, reset communication if ranks ended differently, and return the error to raise, or None."""
        session = self.session
        failed, left = {}, []
        for number, result in sorted(self.results.items()):
            failure = result["failure"]
            if not failed_by(failure):
                if failure is not None:
                    left.append(number)
                continue
            failed[number] = failure
        told = {
            r: f for r, f in failed.items() if not (self.stopped is not None and self.results[r].get("interrupted"))
        }
        for number, failure in told.items():
            text = failure["text"] or f"{failure['ename']}: {failure['evalue']}"
            self.view.transcript.fail(number, text)
        self.view.finish()
        if left and len(left) < len(self.ranks):
            self.view.say(f"{capital(ranks_text(left))} left the cell by sys.exit().")
        differ = failed and (len(failed) < len(session.ranks) or len({_place(f) for f in failed.values()}) > 1)
        if (self.stopped is not None or differ) and not session.finalized:
            problem = session.reset()
            if problem:
                session.close(at_once=True)
                self.view.say(f"Communication could not be put back ({problem}): all ranks were ended. State is lost.")
            else:
                self.view.say(
                    "Communication was put back: messages under way are gone, epochs of windows are closed, "
                    "locks are free."
                )
        if session.finalized and not session.closed:
            session.close()
            self.view.say("MPI was finalized in this cell, so the ranks ended. The next cell starts new ones.")
        if self.stopped is not None and type(self.stopped) is not RanksError:
            return self.stopped
        if told:
            kinds = {}
            for number, failure in told.items():
                kinds.setdefault(failure["ename"], []).append(number)
            return MPICellError("; ".join(f"{kind} on {ranks_text(ranks)}" for kind, ranks in kinds.items()))
        if self.stopped is not None:
            return MPICellError("ranks were interrupted")
        return None


def _place(failure):
    place = failure.get("place") or {}
    return failure["ename"], place.get("cell"), place.get("line")
