"""When a cell is said to be in a deadlock."""

import time
from types import SimpleNamespace

import pytest

from gormapy._resident.errors import Deadlock
from gormapy.magic.cellrun import CellRun


class Answer(SimpleNamespace):
    """What a rank answers that has waited in a receive for three seconds."""

    kind = "where"

    def __getitem__(self, name):
        return getattr(self, name)

    def get(self, name, default=None):
        return getattr(self, name, default)


class Ranks:
    """The session of two ranks. ``moves``: in which questions' answers their transports have moved something."""

    cells = 0

    def __init__(self, moves):
        self.moves, self.asked, self.reports = moves, [], []
        self.ranks = {r: SimpleNamespace(number=r, gone=False, replies=[], state="idle") for r in range(2)}

    def chosen(self, ranks=None):
        return list(self.ranks.values())

    def send(self, ranks, kind, ask=None, **_):
        self.asked.append(ask)
        wait = {"main": True, "seconds": 3.0, "all": False, "peer": 0, "holders": (), "members": (), "call": "Recv"}
        moved = sum(ask >= first for first in self.moves)
        for rank in ranks:
            at = 10.0 * ask  # the ranks have not run since the last answer
            rank.replies.append(Answer(ask=ask, at=at, run=0.0, moved=moved, busy=False, waits=[wait]))

    def pump(self, seconds):
        time.sleep(seconds)
        if len(self.asked) == 8:
            raise TimeoutError

    def interrupts(self):
        return 0

    def report(self, report, title, kind):
        self.reports.append(kind)

    def refresh(self, final=False):
        pass


@pytest.mark.parametrize("moves, asked", [((), 3), ((3,), 5), ((3, 5), 7)])
def test_ranks_that_stand_still_are_asked_twice(moves, asked, monkeypatch):
    """The answer of a process that was stopped, and of which the waiting thread has not run yet, is not enough."""
    ranks = Ranks(moves)
    cell = CellRun(ranks, ranks, None)
    cell.begun = cell.looked = time.monotonic() - 10
    monkeypatch.setattr("gormapy._resident.watched._LOOK_EVERY", 0.0)
    while (reason := cell._reason()) is None:
        cell._step()
    assert isinstance(reason, Deadlock) and ranks.reports == ["deadlock"]
    assert len(ranks.asked) == asked
