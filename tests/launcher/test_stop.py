"""However a job is stopped, its ranks hear of it and nothing of it is left."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from support import leftovers
from support.mpirun import ANY

WAITING = """
    from rankside import *
    hello()
    world.recv(source=(rank + 1) % size)
"""

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.mark.parametrize("number", STATUS, ids=lambda s: s.name)
def test_signal_to_the_launcher(mpirun, number):
    job = mpirun.start(3, WAITING)
    job.pids(3)
    time.sleep(0.2)
    sent = time.monotonic()
    job.signal(number)
    result = job.finish(expect=STATUS[number])
    assert time.monotonic() - sent < 30, str(result)
    assert result.stderr.count("Traceback") <= 1, str(result)


def test_interrupt_reaches_every_rank(mpirun):
    source = """
        from rankside import *
        try:
            hello()
            world.recv(source=(rank + 1) % size)
        except KeyboardInterrupt:
            say("interrupted", rank)
    """
    for _ in range(5):
        job = mpirun.start(3, source)
        job.pids(3)
        time.sleep(0.2)
        job.signal(signal.SIGINT)
        result = job.finish(expect=130)
        if "did not end within" not in result.stderr:  # the ranks have 0.8 s, which may be short on a busy machine
            break
    assert [line for line in result.lines if "interrupted" in line] == [f"interrupted {r}" for r in range(3)]


def test_rank_that_ignores_signals_is_killed(mpirun):
    job = mpirun.start(
        2,
        """
        import signal, time
        from rankside import *
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        hello()
        while True:
            time.sleep(1)
        """,
    )
    job.pids(2)
    sent = time.monotonic()
    job.signal(signal.SIGTERM)
    job.finish(expect=143)
    assert time.monotonic() - sent < 30


@pytest.mark.parametrize(
    "doing",
    [
        "world.recv(source=(rank + 1) % size)",
        "time.sleep(60)",
        "exec('while True: pass')",
        "subprocess.run(['sleep', '60'])",
        "subprocess.Popen(['sleep', '60'], start_new_session=True); time.sleep(60)",
    ],
    ids=["waits", "sleeps", "computes", "child", "session"],
)
def test_launcher_is_killed(mpirun, doing):
    job = mpirun.start(
        3,
        f"""
        import subprocess, time
        from rankside import *
        win = MPI.Win.Allocate(1 << 20, comm=world)
        hello()
        {doing}
        """,
    )
    job.pids(3)
    time.sleep(0.3)
    sent = time.monotonic()
    job.signal(signal.SIGKILL)
    job.finish(expect=-signal.SIGKILL)
    assert time.monotonic() - sent < 30


def test_launcher_is_killed_while_it_starts(mpirun):
    for delay in (0, 0.002, 0.005, 0.02, 0.05, 0.1):
        job = mpirun.start(4, WAITING)
        time.sleep(delay)
        job.signal(signal.SIGKILL)
        job.finish(expect=-signal.SIGKILL)


def guardian(job, other_than=0):
    """Return the process that ends the job if the launcher dies. It has nothing of the job's environment."""
    end = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError):  # a process or a thread that ends meanwhile
            for task in Path(f"/proc/{job.pid}/task").iterdir():  # a child is that of a thread
                for pid in map(int, (task / "children").read_text().split()):
                    name = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
                    if name == b"gormapy-guardian" and pid != other_than:
                        return pid
        assert time.monotonic() < end, "there is no guardian"
        time.sleep(0.01)


def replace_guardian(job):
    """Kill the guardian and wait for the next one; return both."""
    first = guardian(job)
    os.kill(first, signal.SIGKILL)
    return first, guardian(job, other_than=first)


def test_guardian_is_killed(mpirun, tmp_path):
    job = mpirun.start(
        2,
        """
        import os, time
        from rankside import *
        hello()
        while not os.path.exists("go on"):
            time.sleep(0.01)
        world.Barrier()
        """,
        launcher=["-v"],
    )
    job.pids(2)
    first, second = replace_guardian(job)
    (tmp_path / "go on").touch()
    result = job.finish()
    assert f"process {second} is the new one" in result.stderr, str(result)
    assert not leftovers.runs(first) and not leftovers.runs(second)


def test_launcher_is_killed_after_its_guardian(mpirun):
    job = mpirun.start(3, WAITING)
    job.pids(3)
    _, second = replace_guardian(job)
    job.signal(signal.SIGKILL)
    job.finish(expect=-signal.SIGKILL)
    end = time.monotonic() + 30
    while leftovers.runs(second):
        assert time.monotonic() < end, "the guardian goes on"
        time.sleep(0.01)


def test_everything_is_killed_at_once(mpirun):
    job = mpirun.start(3, WAITING)
    ranks = job.pids(3)
    os.kill(ranks[1], signal.SIGKILL)
    job.signal(signal.SIGKILL)
    job.finish(expect=ANY)


def test_stopped_and_continued(mpirun, tmp_path):
    job = mpirun.start(
        2,
        """
        import os, time
        from rankside import *
        hello()
        while not world.bcast(os.path.exists("go on")):
            world.Barrier()
            time.sleep(0.01)
        """,
    )
    ranks = job.pids(2)
    os.kill(ranks[0], signal.SIGSTOP)
    time.sleep(0.5)
    assert job.process.poll() is None, "a rank that is stopped has not ended"
    os.kill(ranks[0], signal.SIGCONT)
    (tmp_path / "go on").touch()
    job.finish()


def test_processes_that_leave_the_job_after_a_clean_end_are_left_alone(mpirun):
    job = mpirun.start(
        1, "import subprocess\nfrom rankside import *\nsubprocess.Popen(['sleep', '20'], start_new_session=True)\n"
    )
    result = job.finish(clean=False)
    left = leftovers.processes(job.mark)
    assert len(left) == 1 and "sleep 20" in left[0], left
    assert result.duration < 15
    job.stop()
