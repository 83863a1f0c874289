"""The programs of test_storm.py."""

import random
import signal
import time

import numpy as np
from rankside import MPI, hello, rank, reset, say, size, world

left, right = (rank - 1) % size, (rank + 1) % size


class Traffic:
    """Communication of all kinds, over two windows."""

    def __init__(self):
        self.private = np.zeros(50_000)
        self.open()

    def open(self):
        self.win = MPI.Win.Allocate(8 * size, 8, comm=world)
        self.created = MPI.Win.Create(self.private, 8, comm=world)

    def close(self):
        self.win.Free()
        self.created.Free()

    def parts(self, i):
        """Collectives with counts: short and long parts, from ranks that return at once and others that wait."""
        root = i % size
        counts = [(0, 1, 200, 9_000)[(i + r) % 4] for r in range(size)]
        displs = [sum(counts[:r]) for r in range(size)]
        mine, everything = np.full(counts[rank], rank + i, float), np.repeat(np.arange(size) + float(i), counts)
        got = np.zeros(sum(counts))
        world.Gatherv(mine, [got, counts] if rank == root else None, root)
        assert rank != root or (got == everything).all()
        got[:] = -1
        world.Allgatherv(mine, [got, (counts, displs)])
        assert (got == everything).all()
        got[:] = -1
        world.Scatterv([everything, counts] if rank == root else None, got[: counts[rank]], root)
        assert (got[: counts[rank]] == rank + i).all()
        got = np.zeros(counts[rank] * size)
        world.Alltoallv([everything, counts], [got, [counts[rank]] * size])
        assert (got == rank + i).all()

    def step(self, i):
        win, created = self.win, self.created
        n = (1, 500, 60_000)[i % 3]
        got = np.zeros(n)
        world.Sendrecv(np.full(n, rank + i, float), right, 1, got, left, 1)
        assert (got == left + i).all(), (got, left + i)
        world.Barrier()
        assert world.allreduce(i) == size * i
        assert world.bcast((i, "x" * n) if rank == i % size else None, root=i % size) == (i, "x" * n)
        self.parts(i)
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
        assert (self.private[: n % 50_000] == i).all()
        if i % 5 == 0:
            dup = world.Dup()
            assert dup.allreduce(1) == size
            dup.Free()


def until_it_is_killed():
    traffic = Traffic()
    hello()
    i = 0
    while True:
        i += 1
        traffic.step(i)


def until_it_is_over():
    traffic = Traffic()
    hello()
    for i in range(1, 60):
        traffic.step(i)


def interrupts_and_resets(rounds):
    traffic = Traffic()
    hello()
    for turn in range(rounds):
        i = 0
        try:
            say("turn", turn)
            while True:
                i += 1
                traffic.step(i)
        except KeyboardInterrupt:
            pass
        reset()
        traffic.close()
        assert world.allreduce(turn) == size * turn
        traffic.open()
        say("back", turn)


def signals_that_do_not_raise_do_no_harm():
    traffic = Traffic()
    seen = [0]

    def count(*_):
        seen[0] += 1

    signal.signal(signal.SIGUSR1, count)
    world.Barrier()
    hello()
    i = 0
    while i < 150 or not world.allreduce(seen[0], MPI.MIN):  # signals come to all ranks while they communicate
        i += 1
        traffic.step(i)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Python takes handlers away when it ends
    say("seen", seen[0] > 0)


def resets_of_ranks_that_come_late():
    random.seed(rank)
    for turn in range(10):
        time.sleep(random.choice((0, 0.001, 0.12)))  # longer than a slice of a wait
        reset()
        assert world.allreduce(turn) == turn * size
        world.Barrier()
