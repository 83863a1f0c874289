"""Synchronisation of all kinds, one after the other in one window, and what each of them promises."""

import time

import numpy as np
from onesided import MPI, Window, case, main, rank, same, size, world

right, left = (rank + 1) % size, (rank - 1) % size


def group(*ranks):
    """Return a group of ranks of the world."""
    return world.Get_group().Incl(sorted(set(ranks)))


@case
def post_start_complete_wait(flavour):
    """Every rank exposes its part to its left and accesses its right."""
    with Window(flavour, 4, "i8") as w:
        for turn in range(20):
            w.mine[:] = -1
            w.win.Post(group(left))
            w.win.Start(group(right))
            values = np.array([rank, turn])
            w.win.Put(values, right, w.at(right, 1))
            w.win.Complete()
            assert w.win.Wait() is True
            same(w.mine, [-1, left, turn, -1])
            w.win.Post(group(left))
            w.win.Start(group(right))
            got = np.zeros(2, "i8")
            w.win.Get(got, right, w.at(right, 1))
            w.win.Accumulate(values, right, w.at(right, 2))
            w.win.Complete()
            same(got[0], rank)
            w.win.Wait()
            same(w.mine, [-1, left, turn + left, -1 + turn])


@case
def complete_is_local_until_wait(flavour):
    """A target that posts late holds up the operations, not more; a late origin holds up Wait."""
    if size == 1:
        return
    with Window(flavour, 1, "i8") as w:
        w.mine[0] = 5
        world.Barrier()
        if rank == 0:
            time.sleep(0.1)
            w.mine[0] = 6  # before Post, so no origin has been here
            w.win.Post(group(*range(1, size)))
            w.win.Wait()
            same(w.mine, [6 + sum(range(1, size))])
        else:
            if rank == size - 1:
                time.sleep(0.1)
            w.win.Start(group(0))
            w.win.Accumulate(np.array([rank]), 0, w.at(0))
            w.win.Complete()


@case
def test_in_place_of_wait(flavour):
    with Window(flavour, 1, "i8") as w:
        w.win.Post(group(left))
        if rank == 0:
            time.sleep(0.05)
        w.win.Start(group(right))
        w.win.Put(np.array([rank]), right, w.at(right))
        w.win.Complete()
        tries = 0
        while not w.win.Test():
            tries += 1
            time.sleep(0.001)
        same(w.mine, [left])


@case
def groups_that_change(flavour):
    """Targets and origins are other ranks each time: one to all, all to one, pairs, nobody."""
    with Window(flavour, size, "i8") as w:
        for root in range(size):
            others = [r for r in range(size) if r != root]
            # one to all others
            w.mine[:] = -1
            if rank == root:
                w.win.Start(group(*others))
                for r in others:
                    w.win.Put(np.array([root * 10 + r]), r, w.at(r, root))
                w.win.Complete()
            else:
                w.win.Post(group(root))
                w.win.Wait()
                assert w.mine[root] == root * 10 + rank
            # all others to one
            if rank == root:
                w.win.Post(group(*others))
                w.win.Wait()
                same(w.mine[others], [r * 100 for r in others])
            else:
                w.win.Start(group(root))
                w.win.Put(np.array([rank * 100]), root, w.at(root, rank))
                w.win.Complete()
        # pairs, while the others have nothing to do with it
        partner = rank ^ 1
        if partner < size:
            w.win.Post(group(partner))
            w.win.Start(group(partner))
            w.win.Put(np.array([rank + 7]), partner, w.at(partner))
            w.win.Complete()
            w.win.Wait()
            assert w.mine[0] == partner + 7
        empty = MPI.GROUP_EMPTY
        w.win.Post(empty)
        w.win.Start(empty)
        w.win.Complete()
        w.win.Wait()


@case
def exposure_and_access_at_the_same_time(flavour):
    """Every rank is target and origin of all others, and of itself."""
    everyone = world.Get_group()
    with Window(flavour, size + 1, "i8") as w:
        for turn in range(5):
            w.win.Post(everyone)
            w.win.Start(everyone)
            value = np.array([rank + 1])
            for r in range(size):
                w.win.Put(value, r, w.at(r, rank))
                w.win.Accumulate(value, r, w.at(r, size))
            w.win.Complete()
            w.win.Wait()
            same(w.mine[:size], np.arange(size) + 1)
            same(w.mine[size], (turn + 1) * size * (size + 1) // 2)


@case
def assertions_change_nothing_but_time(flavour):
    with Window(flavour, size, "i8") as w:
        value = np.array([rank + 1])
        w.win.Fence(MPI.MODE_NOPRECEDE)
        w.win.Put(value, right, w.at(right, rank))
        w.win.Fence(MPI.MODE_NOSTORE)
        w.win.Put(value, right, w.at(right, rank))
        w.win.Fence(MPI.MODE_NOPUT)
        got = np.zeros(1, "i8")
        w.win.Get(got, right, w.at(right, rank))
        w.win.Fence(MPI.MODE_NOSTORE | MPI.MODE_NOSUCCEED | MPI.MODE_NOPUT)
        same(got, value)
        same(w.mine[left], left + 1)
        for post, start in (
            (MPI.MODE_NOSTORE, 0),
            (MPI.MODE_NOPUT, 0),
            (MPI.MODE_NOCHECK, MPI.MODE_NOCHECK),
        ):
            w.win.Post(group(left), post)
            world.Barrier()  # what NOCHECK promises
            w.win.Start(group(right), start)
            w.win.Put(value, right, w.at(right, rank)) if post != MPI.MODE_NOPUT else None
            w.win.Get(got, right, w.at(right, right))
            w.win.Complete()
            w.win.Wait()
        w.win.Lock(right, MPI.LOCK_SHARED, MPI.MODE_NOCHECK)
        w.win.Put(value, right, w.at(right, rank))
        w.win.Unlock(right)
        w.settle()
        same(w.mine[left], left + 1)


@case
def one_after_the_other(flavour):
    """Fence, lock, lock all, post and start in one window, over and over."""
    with Window(flavour, 6, "i8") as w:
        one = np.ones(1, "i8")
        rounds = 6
        for _ in range(rounds):
            w.win.Fence()
            w.win.Accumulate(one, right, w.at(right))
            w.win.Fence(MPI.MODE_NOSUCCEED)
            w.win.Lock(right)
            w.win.Accumulate(one, right, w.at(right, 1))
            w.win.Unlock(right)
            w.win.Lock_all()
            for r in range(size):
                w.win.Accumulate(one, r, w.at(r, 2))
            w.win.Flush_all()
            w.win.Unlock_all()
            w.win.Post(group(left))
            w.win.Start(group(right))
            w.win.Accumulate(one, right, w.at(right, 3))
            w.win.Complete()
            w.win.Wait()
            w.win.Fence()
            w.win.Accumulate(one, left, w.at(left, 4))
            w.win.Fence()  # opens an epoch that a lock closes
            world.Barrier()
            w.win.Lock(left, MPI.LOCK_SHARED)
            w.win.Accumulate(one, left, w.at(left, 5))
            w.win.Unlock(left)
            world.Barrier()
        w.settle()
        same(w.mine, [rounds, rounds, rounds * size, rounds, rounds, rounds])


@case
def exposed_part_is_locked_by_others(flavour):
    """Fences order stores of the target with what origins do before and after."""
    with Window(flavour, 1, "i8") as w:
        for turn in range(10):
            w.mine[0] = turn
            w.win.Fence()
            got = np.zeros(1, "i8")
            w.win.Get(got, right, w.at(right))
            w.win.Fence()
            same(got, [turn])


@case
def locks_exclude(flavour):
    """Nobody is inside an exclusive lock together with anybody; shared ones are inside together."""
    with Window(flavour, 3, "i8") as w:
        inside, one, minus = np.zeros(1, "i8"), np.ones(1, "i8"), -np.ones(1, "i8")
        draw = np.random.default_rng(rank)
        for _ in range(25):
            exclusive = draw.random() < 0.5
            target = 0
            w.win.Lock(target, MPI.LOCK_EXCLUSIVE if exclusive else MPI.LOCK_SHARED)
            slot = 0 if exclusive else 1
            w.win.Accumulate(one, target, w.at(target, slot))
            w.win.Flush(target)
            w.win.Fetch_and_op(one, inside, target, w.at(target, 0), MPI.NO_OP)
            w.win.Flush(target)
            assert inside[0] == (1 if exclusive else 0), inside
            if exclusive:
                w.win.Fetch_and_op(one, inside, target, w.at(target, 1), MPI.NO_OP)
                w.win.Flush(target)
                assert inside[0] == 0, inside
            w.win.Accumulate(minus, target, w.at(target, slot))
            w.win.Unlock(target)
        world.Barrier()  # all meet inside a shared lock
        w.win.Lock(0, MPI.LOCK_SHARED)
        world.Barrier()
        w.win.Unlock(0)


@case
def lock_all_with_locks_of_others(flavour):
    """Lock_all of some ranks and exclusive locks of others exclude each other and get on."""
    with Window(flavour, 1, "i8") as w:
        value = np.zeros(1, "i8")
        done = 0
        for turn in range(12):
            if (rank + turn) % 2:
                w.win.Lock_all()
                w.win.Fetch_and_op(np.ones(1, "i8"), value, 0, w.at(0))
                w.win.Unlock_all()
            else:
                w.win.Lock(0)
                w.win.Get(value, 0, w.at(0))
                w.win.Flush(0)
                value += 1
                w.win.Put(value, 0, w.at(0))
                w.win.Unlock(0)
            done += 1
        total = world.allreduce(done)
        w.settle()
        assert rank or w.mine[0] == total


@case
def flush_makes_it_seen(flavour):
    """What was flushed before a message was sent is there when the message has come."""
    if size == 1:
        return
    with Window(flavour, 100, "i8") as w:
        w.win.Lock_all()
        token = np.zeros(1)
        for turn in range(10):
            if rank == 0:
                w.win.Put(np.full(100, turn + 1), size - 1, w.at(size - 1))
                w.win.Flush(size - 1)
                world.Send(token, size - 1)
                world.Recv(token, size - 1)
            elif rank == size - 1:
                world.Recv(token, 0)
                w.win.Sync()
                same(w.mine, np.full(100, turn + 1))
                world.Send(token, 0)
        w.win.Unlock_all()


@case
def buffers_are_free_after_local_flush(flavour):
    """The origin's memory may be used again as soon as the operation is complete locally."""
    with Window(flavour, 50, "i8") as w:
        buffer = np.zeros(1, "i8")
        w.win.Lock(right, MPI.LOCK_SHARED)
        for i in range(50):
            buffer[0] = i
            w.win.Put(buffer, right, w.at(right, i))
            w.win.Flush_local(right) if i % 2 else w.win.Flush_local_all()
        buffer[0] = -1
        w.win.Unlock(right)
        w.settle()
        same(w.mine, np.arange(50))


main()
