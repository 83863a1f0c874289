"""However a job is stopped, its ranks hear of it and nothing of it is left."""

import os
import signal
import time

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
    assert time.monotonic() - sent < 4, str(result)
    assert result.stderr.count("Traceback") <= 1, str(result)


def test_interrupt_reaches_every_rank(mpirun):
    job = mpirun.start(
        3,
        """
        from rankside import *
        hello()
        try:
            world.recv(source=(rank + 1) % size)
        except KeyboardInterrupt:
            say("interrupted", rank)
        """,
    )
    job.pids(3)
    time.sleep(0.2)
    job.signal(signal.SIGINT)
    result = job.finish(expect=130)
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
    assert time.monotonic() - sent < 4


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
    assert time.monotonic() - sent < 4


def test_launcher_is_killed_while_it_starts(mpirun):
    for delay in (0, 0.002, 0.005, 0.02, 0.05, 0.1):
        job = mpirun.start(4, WAITING)
        time.sleep(delay)
        job.signal(signal.SIGKILL)
        job.finish(expect=-signal.SIGKILL)


def test_guardian_is_killed(mpirun):
    job = mpirun.start(2, "from rankside import *\nimport time\nhello()\ntime.sleep(1)\nworld.Barrier()\n")
    ranks = job.pids(2)
    others = [int(line.partition(":")[0]) for line in leftovers.processes(job.mark)]
    for pid in others:
        if pid != job.pid and pid not in ranks.values():
            os.kill(pid, signal.SIGKILL)
    job.finish()


def test_everything_is_killed_at_once(mpirun):
    job = mpirun.start(3, WAITING)
    ranks = job.pids(3)
    os.kill(ranks[1], signal.SIGKILL)
    job.signal(signal.SIGKILL)
    job.finish(expect=ANY)


def test_stopped_and_continued(mpirun):
    job = mpirun.start(
        2,
        """
        import time
        from rankside import *
        hello()
        for i in range(100):
            world.Barrier()
            time.sleep(0.01)
        """,
    )
    ranks = job.pids(2)
    os.kill(ranks[0], signal.SIGSTOP)
    time.sleep(0.5)
    assert job.process.poll() is None, "a rank that is stopped has not ended"
    os.kill(ranks[0], signal.SIGCONT)
    job.finish()


def test_processes_that_leave_the_job_after_a_clean_end_are_left_alone(mpirun):
    job = mpirun.start(
        1, "import subprocess\nfrom rankside import *\nsubprocess.Popen(['sleep', '20'], start_new_session=True)\n"
    )
    result = job.finish(clean=False)
    left = leftovers.processes(job.mark)
    assert len(left) == 1 and "sleep 20" in left[0], left
    assert result.duration < 5
    job.stop()
