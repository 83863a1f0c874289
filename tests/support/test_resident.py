"""Ranks that stay run programs as new jobs would, and say the same when something goes wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import leftovers, resident
from support.mpirun import environment
from support.programs import beside
from support.resident import Pool, Ranks

program = beside(__file__)


@pytest.fixture
def own(tmp_path):
    """A pool of the test alone."""
    (tmp_path / "pool").mkdir()
    pool = Pool(tmp_path / "pool")
    yield Ranks(pool, tmp_path)
    pool.close()


def told_at_timeout(own, n, what, *words, first):
    """Run a program that does not end into its time-out, a longer one if its ranks were not yet there; return what is said."""
    for timeout in (first, 10.0, 40.0):
        with pytest.raises(AssertionError) as caught:
            own(n, what, timeout=timeout)
        text = str(caught.value)
        assert f"time-out after {timeout} s: ranks {list(range(n))} still run" in text
        if all(text.count(word) >= n for word in words):
            break
    return text


def processes(result):
    return dict(line.split() for line in result.lines)


def test_the_same_processes_run_all_programs(own, n):
    first = processes(own(n, program.process))
    assert len(first) == n
    own(n, program.arguments, 1, "two", [3.0, None])
    for _ in range(3):
        own(n, program.names)
        own(n, program.nothing_is_there)
    assert processes(own(n, program.process)) == first, own.pool.reasons
    assert own.pool.started == 1


def test_a_file_is_a_program(own, tmp_path):
    file = tmp_path / "said.py"
    file.write_text("import sys\nfrom gormapy import MPI\nprint(__name__, sys.argv[1:], MPI.COMM_WORLD.rank)\n")
    for _ in range(2):
        assert own(2, file, 1, "b").lines == [f"__main__ ['1', 'b'] {rank}" for rank in range(2)]


def test_output_is_that_of_the_program_and_in_order(own):
    for _ in range(3):
        result = own(4, program.speak)
        assert result.stdout == "".join("".join(f"out {r} {i}\n" for i in range(200)) + f"raw {r}\n" for r in range(4))
        assert result.stderr == "".join(f"err {r} {i}\n" for r in range(4) for i in range(200))


def test_no_function_of_that_name():
    with pytest.raises(AttributeError, match="no function nothing_like_it"):
        program.nothing_like_it  # noqa: B018
    with pytest.raises(AttributeError, match="no table NOTHING_LIKE_IT"):
        program.keys_of("NOTHING_LIKE_IT")


@pytest.mark.parametrize("where", [0, 1, 3])
def test_failing_rank_fails_the_test(own, where):
    own(4, program.nothing_is_there)
    begun = time.monotonic()
    with pytest.raises(AssertionError, match="nobody expects this") as caught:
        own(4, program.fail, where)
    text = str(caught.value)
    assert f"rank {where}: status 1" in text and "in fail" in text
    assert text.count("in fail") == 4, "the others say what they do"
    assert time.monotonic() - begun < 25, "the time-out of the program is 30 s"
    own(4, program.nothing_is_there)
    assert own.pool.started == 2


def test_exit_status_is_that_of_the_program(own, monkeypatch):
    monkeypatch.setattr(resident, "FAIL_GRACE", 20.0)  # the other rank's status may come later
    own(2, program.status, 0)
    with pytest.raises(AssertionError, match="rank 0: status 7; rank 1: status 7"):
        own(2, program.status, 7)


@pytest.mark.parametrize("where", [0, 2])
def test_killed_rank(own, where):
    with pytest.raises(AssertionError, match=rf"rank {where} \(pid \d+\) was killed by signal 9"):
        own(3, program.die, where)
    own(3, program.nothing_is_there)


def test_rank_that_leaves(own):
    with pytest.raises(AssertionError, match="rank 0 has ended in the program"):
        own(2, program.leave_job)
    own(2, program.nothing_is_there)


def test_timeout_shows_what_every_rank_waits_for(own):
    text = told_at_timeout(own, 2, program.forsaken, "in forsaken", "tag 77", first=1.5)
    for rank in range(2):
        assert f"rank {rank} (pid" in text
    assert text.count("tag 77") == 2
    assert text.count("in forsaken") == 2
    own(2, program.nothing_is_there)


def test_timeout_of_a_rank_that_computes(own):
    assert "in compute" in told_at_timeout(own, 1, program.compute, "in compute", first=0.5)


def test_messages_do_not_reach_the_next_program(own):
    pids = processes(own(2, program.process))
    for _ in range(5):
        own(2, program.unreceived)
        own(2, program.nothing_is_there)
    assert processes(own(2, program.process)) == pids, own.pool.reasons


def test_a_rank_that_is_through_still_sends(own):
    for _ in range(3):
        own(2, program.release_late)


LEFT = [
    "window",
    "communicator",
    "request",
    "datatype",
    "signal",
    "environment",
    "thread",
    "file",
    "error handler",
    "method",
]


@pytest.mark.parametrize("what", LEFT)
def test_what_is_left_ends_the_team(own, what):
    own(2, program.leave, what)
    assert len(own.pool.reasons) == 1, what
    own(2, program.nothing_is_there)
    assert own.pool.started == 2


@pytest.mark.parametrize("what", ["print options", "folder", "module", "name of the main module"])
def test_what_is_put_back(own, tmp_path, what):
    (tmp_path / "this_is_beside.py").write_text("")
    sought = program.leave
    if what == "module":
        file = tmp_path / "importer.py"
        file.write_text("import sys\nassert 'this_is_beside' not in sys.modules\nimport this_is_beside\n")
        for _ in range(2):
            own(2, file)
    else:
        own(2, sought, what)
        own(2, program.process)
    assert own.pool.started == 1 and not own.pool.reasons


def test_child_that_is_left_fails_the_test(own, monkeypatch):
    monkeypatch.setattr(leftovers, "PATIENCE", 1.0)
    with pytest.raises(AssertionError, match=r"left behind:\n.*sleep 60"):
        own(2, program.leave_child)


def test_every_environment_has_ranks_of_its_own(own):
    own(2, program.setting, "GORMAPY_ONE_COPY", None)
    own(2, program.setting, "GORMAPY_ONE_COPY", "0", env={"GORMAPY_ONE_COPY": "0"})
    own(2, program.setting, "GORMAPY_ONE_COPY", None)
    assert own.pool.started == 2


def test_teams_make_room(own):
    for n in (7, 4, 7, 6, 5, 7):
        own(n, program.process)
        assert sum(team.size for team in own.pool.teams.values()) <= 20
    assert own.pool.started == 4


def test_team_that_was_killed_meanwhile(own):
    own(2, program.process)
    team = next(iter(own.pool.teams.values()))
    os.kill(team.ranks[1].pid, signal.SIGKILL)
    team._launcher.wait(10)
    own(2, program.process)
    assert own.pool.started == 2


def test_ranks_end_with_the_tests(tmp_path):
    """Ranks whose tests were killed end by themselves."""
    tests = Path(__file__).parent / "programs" / "resident_tests.py"
    (tmp_path / "ranks").mkdir()
    command = [sys.executable, tests, tmp_path / "ranks"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done
    mark = done.stdout.strip()
    assert mark and not leftovers.after(mark, leftovers.names())
