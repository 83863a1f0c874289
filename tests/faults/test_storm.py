"""Faults at any moment of busy communication: the job ends, or goes on, and never hangs or corrupts."""

import os
import random
import signal
import time

import pytest

pytestmark = pytest.mark.exhaustive

TRAFFIC = """
    import numpy as np
    from rankside import *

    left, right = (rank - 1) % size, (rank + 1) % size
    win = MPI.Win.Allocate(8 * size, 8, comm=world)
    private = np.zeros(50_000)
    created = MPI.Win.Create(private, 8, comm=world)

    def traffic(i):
        n = (1, 500, 60_000)[i % 3]
        got = np.zeros(n)
        world.Sendrecv(np.full(n, rank + i, float), right, 1, got, left, 1)
        assert (got == left + i).all(), (got, left + i)
        world.Barrier()
        assert world.allreduce(i) == size * i
        assert world.bcast((i, "x" * n) if rank == i % size else None, root=i % size) == (i, "x" * n)
        win.Lock(right)
        win.Put(np.full(1, i, float), right, rank)
        win.Unlock(right)
        old = np.zeros(1)
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(np.ones(1), old, 0, size - 1)
        win.Unlock(0)
        created.Fence()
        created.Put(np.full(n % 50_000, i, float), right)
        created.Fence()
        assert (private[: n % 50_000] == i).all()
        if i % 5 == 0:
            dup = world.Dup()
            assert dup.allreduce(1) == size
            dup.Free()
"""


@pytest.mark.parametrize("seed", range(6))
def test_rank_is_killed_in_the_middle(mpirun, seed):
    chance = random.Random(seed)
    job = mpirun.start(3, TRAFFIC + "\n    hello()\n    i = 0\n    while True:\n        i += 1\n        traffic(i)\n")
    ranks = job.pids(3)
    time.sleep(chance.uniform(0, 0.5))
    sent = time.monotonic()
    os.kill(ranks[chance.randrange(3)], signal.SIGKILL)
    result = job.finish(expect=137)
    assert time.monotonic() - sent < 3, str(result)
    assert "Traceback" not in result.stderr, str(result)


@pytest.mark.parametrize("ranks", [2, 3])
def test_interrupts_and_resets(mpirun, ranks):
    rounds = 12
    job = mpirun.start(
        ranks,
        TRAFFIC
        + f"""
    hello()
    for turn in range({rounds}):
        i = 0
        try:
            say("turn", turn)
            while True:
                i += 1
                traffic(i)
        except KeyboardInterrupt:
            pass
        reset()
        win.Free()
        created.Free()
        assert world.allreduce(turn) == size * turn
        win = MPI.Win.Allocate(8 * size, 8, comm=world)
        created = MPI.Win.Create(private, 8, comm=world)
        say("back", turn)
        """,
        timeout=60,
    )
    pids = job.pids(ranks)
    chance = random.Random(ranks)
    for turn in range(rounds):
        job.expect(rf"^turn {turn}$", ranks)
        time.sleep(chance.uniform(0.02, 0.15))
        for rank in chance.sample(sorted(pids), ranks):
            os.kill(pids[rank], signal.SIGINT)
            time.sleep(chance.choice((0, 0.0005, 0.05)))
        job.expect(rf"^back {turn}$", ranks)
    job.finish()


def test_signals_that_do_not_raise_do_no_harm(mpirun):
    job = mpirun.start(
        2,
        TRAFFIC
        + """
    import signal
    seen = [0]
    def count(*_):
        seen[0] += 1
    signal.signal(signal.SIGUSR1, count)
    world.Barrier()
    hello()
    for i in range(1, 150):
        traffic(i)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Python takes handlers away when it ends
    say("seen", seen[0] > 0)
        """,
        timeout=60,
    )
    pids = job.pids(2)
    while job.process.poll() is None and "seen" not in job.stdout:
        for pid in pids.values():
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                break
        time.sleep(0.002)
    result = job.finish()
    assert result.lines.count("seen True") == 2, str(result)


def test_ranks_are_stopped_and_continued_at_random(mpirun):
    job = mpirun.start(3, TRAFFIC + "\n    hello()\n    for i in range(1, 60):\n        traffic(i)\n", timeout=60)
    pids = job.pids(3)
    chance = random.Random(1)
    for _ in range(15):
        pid = pids[chance.randrange(3)]
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0.001, 0.06))
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            break
        time.sleep(chance.uniform(0.001, 0.02))
    job.finish()


@pytest.mark.parametrize("ranks", [2, 5])
def test_resets_of_ranks_that_come_late(mpirun, ranks):
    mpirun(
        ranks,
        """
        import random, time
        import gormapy
        from rankside import *
        random.seed(rank)
        for turn in range(10):
            time.sleep(random.choice((0, 0.001, 0.12)))  # longer than a slice of a wait
            gormapy.reset()
            assert world.allreduce(turn) == turn * size
            world.Barrier()
        """,
        timeout=60,
    )
