"""The harness notices what it is there to notice."""

import re

import pytest

from support import leftovers
from support.mpirun import ANY


def test_runs_on_every_rank(mpirun, n):
    result = mpirun(n, "from rankside import *; say(rank, size)")
    assert result.lines == [f"{r} {n}" for r in range(n)]


def test_failing_rank_fails_the_test(mpirun):
    with pytest.raises(AssertionError, match="nobody expects this"):
        mpirun(2, "from rankside import *; assert rank == 0, 'nobody expects this'")


def test_timeout_shows_what_every_rank_waits_for(mpirun):
    result = mpirun.until_timeout(
        2,
        """
        from rankside import *
        def forsaken():
            world.recv(source=1 - rank, tag=77)
        forsaken()
        """,
        first=1.5,
        says={"in forsaken": 2, "tag 77": 2},
    )
    for r in range(2):
        assert f"rank {r} (pid" in result.stderr
    assert result.stderr.count("tag 77") == 2
    assert result.stderr.count("in forsaken") == 2


def test_wait_records_say_since_when(mpirun):
    record = r"rank \d \(pid \d+\): in \w+.*, for (\d+\.\d) s"
    source = "from rankside import *\nworld.recv(source=1 - rank)\n"
    # A rank that has just come there may have waited for 0.0 s.
    result = mpirun.until_timeout(2, source, says={r"\): in .*, for (?!0\.0 s)": 2})
    waited = [float(s) for s in re.findall(record, result.stderr)]
    assert len(waited) == 2 and all(0 < s <= result.duration for s in waited), result


def test_orphan_is_noticed(mpirun, monkeypatch):
    monkeypatch.setattr(leftovers, "PATIENCE", 1.0)
    # a program that leaves the job on purpose, and succeeds
    with pytest.raises(AssertionError, match="left behind"):
        mpirun(1, "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True)", expect=ANY)
