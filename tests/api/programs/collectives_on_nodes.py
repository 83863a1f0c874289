"""The programs of test_collectives_on_nodes.py."""

import os
import signal
import time

import numpy as np
from rankside import interrupted, rank, reset, say, size, world

from gormapy import MPI

PRIME = 1_000_003
COUNTS = [0, 1, 3, 60, 64, 65, 700, 5000, 20_000]  # of 8 bytes: short, the limit of a parcel, and long
OPS = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum, "BXOR": np.bitwise_xor}


def compose(low, high, datatype):
    """Compose affine functions modulo a prime, which does not commute: high = low op high."""
    a, b = (np.frombuffer(x, np.int64).reshape(-1, 2) for x in (low, high))
    b[:] = np.stack([a[:, 0] * b[:, 0] % PRIME, (a[:, 0] * b[:, 1] + a[:, 1]) % PRIME], 1)


def composed(arrays):
    """Compose as a serial program does."""
    out = arrays[0].copy()
    for array in arrays[1:]:
        a, b = out.reshape(-1, 2), array.reshape(-1, 2)
        out = np.stack([a[:, 0] * b[:, 0] % PRIME, (a[:, 0] * b[:, 1] + a[:, 1]) % PRIME], 1).ravel()
    return out


def folded(name, arrays):
    """Fold as a serial program does."""
    if name == "compose":
        return composed(arrays)
    out = arrays[0].copy()
    for array in arrays[1:]:
        out = OPS[name](out, array)
    return out


class Round:
    """One collective with random arguments, which all ranks draw alike."""

    def __init__(self, seed, number, comm):
        self.draw = np.random.default_rng([seed, number])
        self.seed, self.number, self.comm = seed, number, comm
        self.n, self.me = comm.size, comm.rank
        self.root = int(self.draw.integers(self.n))
        self.way = ["blocking", "nonblocking", "persistent"][self.draw.integers(3)]
        self.in_place = bool(self.draw.integers(3) == 0)
        self.count = int(self.draw.choice(COUNTS))
        self.op = str(self.draw.choice([*OPS, "compose"]))
        self.dtype = np.int64 if self.op in ("BXOR", "compose") else [np.int64, np.float64][self.draw.integers(2)]

    def values(self, of, count, salt=0):
        """Return what rank `of` contributes: small whole numbers."""
        draw = np.random.default_rng([self.seed, self.number, of, salt])
        return draw.integers(0, 1000, count).astype(self.dtype)

    def call(self, name, *arguments, root=None, op=None):
        """Make the call in one of the three ways."""
        keywords = {} if root is None else {"root": root}
        if op is not None:
            keywords["op"] = op
        if self.way == "blocking":
            getattr(self.comm, name)(*arguments, **keywords)
        elif self.way == "nonblocking":
            getattr(self.comm, "I" + name.lower())(*arguments, **keywords).Wait()
        else:
            request = getattr(self.comm, name + "_init")(*arguments, **keywords)
            request.Start()
            request.Wait()
            request.Free()

    def same(self, got, expected, what):
        assert np.array_equal(got, expected), (what, self.number, vars(self), got, expected)

    def spec(self, values, parts=1):
        """Return a buffer specification for an operation: pairs for the one that composes."""
        return [values, values.size // 2 // parts, PAIRS] if self.op == "compose" else values

    def layout(self, counts):
        """Return displacements of parts in any order with gaps, and the length."""
        displs, at = [0] * self.n, int(self.draw.integers(3))
        for r in self.draw.permutation(self.n):
            displs[r] = at
            at += counts[r] + int(self.draw.integers(3))
        return displs, at + 1

    def bcast(self):
        data = self.values(self.root, self.count) if self.me == self.root else np.zeros(self.count, self.dtype)
        self.call("Bcast", data, root=self.root)
        self.same(data, self.values(self.root, self.count), "Bcast")

    def allgather(self):
        counts = [int(self.draw.choice(COUNTS)) for _r in range(self.n)]
        displs, length = self.layout(counts)
        all = np.full(length, -1, self.dtype)
        mine = self.values(self.me, counts[self.me])
        send = mine
        if self.in_place:
            all[displs[self.me] : displs[self.me] + mine.size] = mine
            send = MPI.IN_PLACE
        self.call("Allgatherv", send, [all, counts, displs, MPI._typedict[all.dtype.char]])
        expected = np.full(length, -1, self.dtype)
        for r in range(self.n):
            expected[displs[r] : displs[r] + counts[r]] = self.values(r, counts[r])
        self.same(all, expected, "Allgatherv")
        every = np.zeros(self.count * self.n, self.dtype)
        self.call("Allgather", self.values(self.me, self.count), every)
        self.same(every, np.concatenate([self.values(r, self.count) for r in range(self.n)]), "Allgather")

    def gather_and_scatter(self):
        counts = [int(self.draw.choice(COUNTS)) for _r in range(self.n)]
        displs, length = self.layout(counts)
        mine, expected = self.values(self.me, counts[self.me]), np.full(length, -1, self.dtype)
        for r in range(self.n):
            expected[displs[r] : displs[r] + counts[r]] = self.values(r, counts[r])
        all, where = None, None
        if self.me == self.root:
            all = np.full(length, -1, self.dtype)
            where = [all, counts, displs, MPI._typedict[all.dtype.char]]
        self.call("Gatherv", mine, where, root=self.root)
        if self.me == self.root:
            self.same(all, expected, "Gatherv")
        back = np.zeros_like(mine)
        self.call("Scatterv", where, back, root=self.root)
        self.same(back, mine, "Scatterv")
        every = np.zeros(self.count * self.n, self.dtype) if self.me == self.root else None
        self.call("Gather", self.values(self.me, self.count), every, root=self.root)
        if self.me == self.root:
            self.same(every, np.concatenate([self.values(r, self.count) for r in range(self.n)]), "Gather")
        back = np.zeros(self.count, self.dtype)
        self.call("Scatter", every, back, root=self.root)
        self.same(back, self.values(self.me, self.count), "Scatter")

    def alltoall(self):
        amounts = [c for c in COUNTS if c <= 700]
        counts = self.draw.choice(amounts, (self.n, self.n))  # from, to
        mine = np.concatenate([self.values(self.me, c, 1 + to) for to, c in enumerate(counts[self.me])])
        column = [int(c) for c in counts[:, self.me]]
        displs, length = self.layout(column)
        into, expected = np.full(length, -1, self.dtype), np.full(length, -1, self.dtype)
        for r in range(self.n):
            expected[displs[r] : displs[r] + column[r]] = self.values(r, column[r], 1 + self.me)
        kind = MPI._typedict[into.dtype.char]
        self.call("Alltoallv", [mine, [int(c) for c in counts[self.me]]], [into, column, displs, kind])
        self.same(into, expected, "Alltoallv")
        count = min(self.count, 700)
        out = np.concatenate([self.values(self.me, count, 1 + to) for to in range(self.n)])
        into = out.copy() if self.in_place else np.zeros_like(out)
        self.call("Alltoall", MPI.IN_PLACE if self.in_place else out, into)
        self.same(into, np.concatenate([self.values(r, count, 1 + self.me) for r in range(self.n)]), "Alltoall")

    def reductions(self):
        count = self.count // 2 * 2
        op = COMPOSE if self.op == "compose" else getattr(MPI, self.op)
        all = [self.values(r, count) for r in range(self.n)]
        mine, into = all[self.me].copy(), np.zeros(count, self.dtype)
        if self.in_place:
            into = mine.copy()
        send = MPI.IN_PLACE if self.in_place else self.spec(mine)
        self.call("Allreduce", send, self.spec(into), op=op)
        self.same(into, folded(self.op, all), "Allreduce")
        into = mine.copy()
        root_sends = MPI.IN_PLACE if self.in_place and self.me == self.root else self.spec(mine)
        self.call("Reduce", root_sends, self.spec(into) if self.me == self.root else None, root=self.root, op=op)
        if self.me == self.root:
            self.same(into, folded(self.op, all), "Reduce")
        into = mine.copy()
        self.call("Scan", send, self.spec(into), op=op)
        self.same(into, folded(self.op, all[: self.me + 1]), "Scan")
        into = mine.copy()
        self.call("Exscan", send, self.spec(into), op=op)
        if self.me > 0:
            self.same(into, folded(self.op, all[: self.me]), "Exscan")
        count = min(count, 700)
        wide = [self.values(r, count * self.n, 9) for r in range(self.n)]
        into = np.zeros(count, self.dtype)
        self.call("Reduce_scatter_block", self.spec(wide[self.me], self.n), self.spec(into), op=op)
        self.same(into, folded(self.op, wide)[count * self.me : count * (self.me + 1)], "Reduce_scatter_block")

    def floats(self):
        # whatever the order, it is the same on all ranks
        mine = 1 / (3 + np.arange(self.count) * 7 + self.me**2)
        into = np.zeros(self.count)
        self.call("Allreduce", mine, into)
        for theirs in self.comm.allgather(into.tobytes()):
            assert theirs == into.tobytes()
        assert np.allclose(into, sum(1 / (3 + np.arange(self.count) * 7 + r**2) for r in range(self.n)))

    def objects(self):
        things = [{"rank": r, "data": [r] * (r * 100)} for r in range(self.n)]
        comm, me = self.comm, self.me
        assert comm.bcast(things[me] if me == self.root else None, self.root) == things[self.root]
        assert comm.gather(things[me], self.root) == (things if me == self.root else None)
        assert comm.scatter(things if me == self.root else None, self.root) == things[me]
        assert comm.allgather(things[me]) == things
        assert comm.alltoall([(me, r) for r in range(self.n)]) == [(r, me) for r in range(self.n)]
        assert comm.allreduce(str(me)) == "".join(map(str, range(self.n)))
        assert comm.scan(str(me)) == "".join(map(str, range(me + 1)))
        comm.Barrier()


PAIRS = MPI.INT64_T.Create_contiguous(2).Commit()
COMPOSE = MPI.Op.Create(compose)
KINDS = ["bcast", "allgather", "gather_and_scatter", "alltoall", "reductions", "floats", "objects"]


def random_collectives(seed, rounds):
    comms = [world, world.Split(0, -rank), world.Split(rank % 2, 0), world.Split(int(rank > 1), rank)]
    for number in range(rounds):
        plan = np.random.default_rng([seed, number, 77])
        comm = comms[plan.integers(len(comms))]
        getattr(Round(seed, number, comm), KINDS[plan.integers(len(KINDS))])()


def several_at_once(seed):
    """Nonblocking collectives that are started in one order and completed in another, and blocking ones meanwhile."""
    draw = np.random.default_rng(seed)
    begun = []
    for k in range(30):
        count = int(draw.choice([1, 100, 5000]))
        into, every = np.zeros(count), np.zeros(count * size)
        begun.append((world.Iallreduce(np.full(count, rank + k, float), into), into, sum(range(size)) + k * size))
        begun.append((world.Iallgather(np.full(count, k, float), every), every, k))
        begun.append(
            (world.Ialltoall(np.full(count * size, rank, float), every := np.zeros(count * size)), every, None)
        )
        if k % 7 == 0:
            assert world.allreduce(1) == size
    for i in np.random.default_rng([seed, rank]).permutation(len(begun)):
        request, into, value = begun[i]
        request.Wait()
        if value is None:
            value = np.repeat(np.arange(size), into.size // size)
        assert (into == value).all(), i


DEATHS = {
    "Barrier": world.Barrier,
    "Allreduce": lambda: world.Allreduce(np.ones(1), np.zeros(1)),
    "long Allreduce": lambda: world.Allreduce(np.ones(100_000), np.zeros(100_000)),
    "Allgather": lambda: world.Allgather(np.ones(3), np.zeros(3 * size)),
    "long Allgather": lambda: world.Allgather(np.ones(30_000), np.zeros(30_000 * size)),
    "Alltoall": lambda: world.Alltoall(np.ones(size), np.zeros(size)),
    "Alltoallv": lambda: world.Alltoallv(np.ones(900 * size), np.zeros(900 * size)),
    "Reduce_scatter_block": lambda: world.Reduce_scatter_block(np.ones(size), np.zeros(1)),
    "Iallreduce": lambda: world.Iallreduce(np.ones(1), np.zeros(1)).Wait(),
}


def death(call, victim):
    """A rank is killed before or in the middle of one of many calls; the others get an error that names it, soon."""
    world.Barrier()
    if rank == victim and os.fork() == 0:
        time.sleep(0.2)
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)
    begun = time.monotonic()
    try:
        while True:
            DEATHS[call]()
            assert time.monotonic() - begun < 20, "no error"
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
        assert f"rank {victim}" in str(error), error
    assert time.monotonic() - begun < 20, "the error came late"
    say("told")


def interrupt_and_reset(seed):
    """All ranks but one are in a collective when they are interrupted; after the reset all works."""
    other = world.Dup()
    for number, call in enumerate(DEATHS.values()):
        absent = (number + seed) % size
        with interrupted():
            try:
                (other.Barrier if rank == absent else call)()
            except MPI.Exception as error:
                assert "has given it up" in str(error), error  # it was interrupted before this one
                time.sleep(25)  # until its own signal comes
        reset()
        for kind in ("reductions", "alltoall", "objects"):
            getattr(Round(seed, number, world), kind)()
