"""The waits of ranks that run a cell or a test, and the detection of deadlocks.

A rank reports (`Worker.where`) in which call its main thread waits and since when, how often its transports have
moved data, how long the thread has run, and whether other threads of the program run. A rank *stands still* as
long as its transports move nothing, the thread hardly runs and no other thread runs. In a deadlock all ranks that
still run it have stood still in a wait for some time, and the others stand still too. A rank that computes,
sleeps or reads a file is not in a wait, so no deadlock is reported while another rank waits for it.
"""

import time
from dataclasses import dataclass, field
from html import escape

from .errors import ranges, ranks_text
from .picture import draw

# The share of the time in which the thread of a waiting rank may run: a wait wakes up 20 times a second.
_RUNS = 0.08


@dataclass
class Sighting:
    """The last known state of one rank."""

    rank: int
    running: bool = True  # it has not reached the end of the cell or test
    failed: bool = False
    ask: int = -1  # the number of the question that was answered
    answer: dict = field(default_factory=dict)
    still_since: float = 0.0

    def see(self, answer):
        """Store an answer."""
        old, self.answer = self.answer, answer
        moved = (
            not old
            or answer["moved"] != old["moved"]
            or answer["busy"]
            or answer["run"] - old["run"] > _RUNS * (answer["at"] - old["at"]) + 0.01
        )
        if moved:
            self.still_since = answer["at"]
        self.ask = answer["ask"]

    def end(self, failed):
        """Record that the rank has reached the end. That is progress, which others may have waited for."""
        self.running, self.failed = False, failed
        self.still_since = time.monotonic()

    @property
    def over(self):
        """Whether the rank has come to the end, or has failed and takes down what it had."""
        return not self.running or self.failed

    @property
    def wait(self):
        """The wait of the main thread, None if it does not wait."""
        for wait in self.answer.get("waits", ()):
            if wait["main"]:
                return wait
        return None

    def still(self, seconds):
        """Return whether the rank has stood still for this time; one that runs also has to wait in a call."""
        if not self.answer or self.answer["at"] - self.still_since < seconds:
            return False
        if not self.running:
            return True
        wait = self.wait
        return wait is not None and wait["seconds"] >= seconds

    @property
    def state(self):
        """One word for the picture."""
        if not self.running:
            return "failed" if self.failed else "finished"
        if not self.answer:
            return "unknown"
        return "waiting" if self.wait else "running"


def stand_still(sightings, ask, seconds):
    """Return whether no rank can continue: all have answered a question, and have stood still for this time."""
    return any(s.running for s in sightings) and all(s.ask == ask and s.still(seconds) for s in sightings)


class Report:
    """Which rank waits for which, as text, table and picture."""

    def __init__(self, sightings, noun="cell"):
        self.noun = noun  # what the ranks run
        self.sightings = {s.rank: s for s in sightings}
        self.targets = {r: self._targets(s) for r, s in self.sightings.items()}
        self.circle = self._circle()

    def _targets(self, sighting):
        """Return the ranks that a rank waits for, and whether any one of them suffices."""
        wait = sighting.wait if sighting.running else None
        if wait is None:
            return [], False
        known = [r for r in wait["members"] or self.sightings if r in self.sightings]
        if wait["holders"]:
            return list(wait["holders"]), False
        if wait["all"]:
            absent = [r for r in known if r != sighting.rank and not self._same(wait, r)]
            if absent:
                return absent, False
        if wait["peer"] >= 0:
            return [wait["peer"]], False
        if wait["peer"] == -1:
            return [r for r in known if r != sighting.rank], True
        return [], False

    def _same(self, wait, rank):
        other = self.sightings[rank].wait if self.sightings[rank].running else None
        if other is None or not other["all"]:
            return False
        # Not every wait has its communicator.
        on = not (wait["on"] and other["on"]) or (wait["on"], wait["context"]) == (other["on"], other["context"])
        return on and other["call"] == wait["call"]

    def _circle(self):
        """Return ranks that wait for each other in a circle, [] if there are none."""
        done = set()
        for start in self.sightings:
            path, rank = [], start
            while rank in self.sightings and rank not in done and rank not in path:
                path.append(rank)
                targets, any_rank = self.targets[rank]
                rank = targets[0] if len(targets) == 1 and not any_rank else None
            if rank in path:
                return path[path.index(rank) :]
            done |= set(path)
        return []

    def sentence(self):
        """Return one sentence that says which rank waits for which."""
        circle = self.circle
        if len(circle) == 1:
            return f"rank {circle[0]} waits for itself in {self.call(circle[0])}"
        if circle and len(circle) <= 4:
            links = [f"rank {r} in {self.call(r)} for rank {self.targets[r][0][0]}" for r in circle]
            return f"{ranks_text(circle)} wait for each other: {', '.join(links)}"
        if circle:
            return (
                f"{len(circle)} ranks wait for each other in a circle: {' -> '.join(map(str, circle))} -> {circle[0]}"
            )
        groups = {}
        for r in self.sightings:
            if self.sightings[r].running:
                targets, any_rank = self.targets[r]
                key = (self.call(r), tuple(t for t in targets), any_rank)
                groups.setdefault(key, []).append(r)
        parts = []
        for (call, targets, any_rank), ranks in list(groups.items())[:4]:
            verb = "waits" if len(ranks) == 1 else "wait"
            text = f"{ranks_text(ranks)} {verb} in {call}"
            if targets:
                text += f" for {'any of ' if any_rank and len(targets) > 1 else ''}{ranks_text(targets)}"
                ended = [t for t in targets if t in self.sightings and self.sightings[t].over]
                if len(ended) == len(targets) and not any_rank:
                    verb = "has" if len(ended) == 1 else "have"
                    failed = all(self.sightings[t].failed for t in ended)
                    text += f", which {verb} {'failed' if failed else f'come to the end of the {self.noun}'}"
            parts.append(text)
        if len(groups) > 4:
            parts.append("…")
        return "; ".join(parts)

    def call(self, rank):
        """Return the call in which a rank waits."""
        wait = self.sightings[rank].wait
        return self._name(rank, wait) if wait else "its own code"

    def _name(self, rank, wait):
        """Return the call as in the program: recv, although it waits in a probe."""
        method = self.sightings[rank].answer.get("method")
        return method if method and not wait["call"].startswith("Win.") else wait["call"]

    def rows(self):
        """Return the table: rank, call, waits for, on what, line; all texts."""
        rows = []
        for rank, s in self.sightings.items():
            wait, place = (s.wait, s.answer.get("place")) if s.running else (None, None)
            line = f"{place['label']}: {place['text']}" if place else ""
            if not s.running:
                rows.append((str(rank), "failed" if s.failed else f"has finished the {self.noun}", "", "", ""))
                continue
            if not s.answer:
                rows.append((str(rank), "does not answer: in C code that holds Python's lock?", "", "", ""))
                continue
            if wait is None:
                inner = s.answer.get("inner")
                rows.append(
                    (str(rank), "runs" + (f" ({inner})" if inner and s.answer.get("busy") == 0 else ""), "", "", line)
                )
                continue
            targets, any_rank = self.targets[rank]
            who = ("any rank" if any_rank else ranks_text(targets)) if targets else ""
            if wait["holders"]:
                who = f"{ranks_text(wait['holders'])}, which hold{'s' if len(wait['holders']) == 1 else ''} the lock"
                who += f" of rank {wait['peer']}" if wait["peer"] >= 0 else ""
            on = wait["on"]
            if wait["tag"] >= 0:
                on += f"{', ' if on else ''}tag {wait['tag']}"
            rows.append((str(rank), f"{self.call(rank)}, {wait['seconds']:.1f} s", who, on, line))
        return rows

    _HEADS = ("rank", "call", "waits for", "on", "line")

    def text(self):
        """Return the table as text."""
        rows = [self._HEADS, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self._HEADS))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)

    def html(self, caption):
        """Return the table as HTML."""
        cell = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
        head = "".join(f'<th style="{cell}">{h}</th>' for h in self._HEADS)
        body = ""
        for row in self.rows():
            cells = [f'<td style="{cell}">{escape(c)}</td>' for c in row[:-1]]
            line = f"<code>{escape(row[-1])}</code>" if row[-1] else ""
            cells.append(f'<td style="{cell}">{line}</td>')
            body += f'<tr class="gormapy-wait" data-rank="{row[0]}">{"".join(cells)}</tr>'
        return (
            f'<table class="gormapy-waits" style="border-collapse:collapse"><caption style="text-align:left;'
            f'font-weight:bold;padding-bottom:4px">{escape(caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def svg(self, title):
        """Return the picture."""
        states = {r: s.state for r, s in self.sightings.items()}
        edges = []
        for rank, (targets, any_rank) in self.targets.items():
            wait = self.sightings[rank].wait
            for i, target in enumerate(t for t in targets if t in states):
                label = self.call(rank) + (f", tag {wait['tag']}" if wait["tag"] >= 0 else "") if i == 0 else ""
                edges.append((rank, target, label, rank in self.circle and target in self.circle, any_rank))
        if len(edges) > 40:  # the labels would overlap
            edges = [(a, b, "", c, d) for a, b, _, c, d in edges]
        return draw(states, edges, title)


__all__ = ["Report", "Sighting", "ranges", "stand_still"]
