"""The programs of test_slot_fences.py."""

import os
import signal
import time

from rankside import await_flag, error_of, interrupted, raise_flag, rank, reset, size, world

from gormapy import MPI, slots

space = slots.Space(world)
left, right = (rank - 1) % size, (rank + 1) % size
mine = space.allocate(64)
space.exchange("x", {rank: mine})
theirs = space.get("x", right)


def counts():
    source = space.allocate(8)
    words = source.array.view("i8")
    # who sees the count sees the data, message after message
    rounds = 300
    back = space.allocate(8)
    space.exchange("back", {rank: back})
    answer = space.get("back", left)
    for i in range(1, rounds + 1):
        words[0] = i * (rank + 1)
        space.memcpy(theirs, 8 * (i % 8), source, 0, 8)
        space.fence(mine, received=1, timeout=20)
        assert mine.array.view("i8")[i % 8] == i * (left + 1)
        space.memcpy(answer, 0, source, 0, 8)  # its turn may go on
        space.fence(back, received=1, timeout=20)
    assert mine.messages_received == rounds and source.messages_sent == 2 * rounds
    space.fence(source, sent=2 * rounds, timeout=0)
    # counts are those since the last fence that succeeded; a fence that fails takes nothing
    error = error_of(lambda: space.fence(mine, received=1, timeout=0.05))
    assert isinstance(error, TimeoutError) and "received 0" in str(error), error
    space.fence("x")
    space.memcpy(theirs, 0, source, 0, 8)
    space.memcpy(theirs, 0, source, 0, 8)
    end = time.monotonic() + 30
    while mine.messages_received < rounds + 2:  # until both of the left neighbour have come
        assert time.monotonic() < end, mine.messages_received
        time.sleep(0.001)
    error = error_of(lambda: space.fence(mine, received=3, timeout=0.05))
    assert isinstance(error, TimeoutError) and "received 2" in str(error), error
    space.fence(space.get("x", rank), received=2, timeout=20)
    # of another rank's slot it looks at the counts over there
    space.fence("x")
    space.fence(theirs, received=rounds + 2, timeout=20) if size > 1 else None
    error = error_of(lambda: space.fence(theirs, received=1, timeout=0.05))
    assert isinstance(error, TimeoutError), error
    space.fence("x")
    space.close()


def fence_is_interrupted():
    if rank == 1:
        for wait in (lambda: space.fence(mine, received=1), theirs.acquire):
            await_flag("held")
            with interrupted():
                wait()
        raise_flag("interrupted")
        space.fence(mine, received=1, timeout=20)
        theirs.acquire(timeout=20)
        theirs.release()
    else:
        space.get("x", 0).acquire()
        raise_flag("held")
        await_flag("interrupted")
        space.memcpy(theirs, 0, mine, 0, 8)
        space.get("x", 0).release()
    space.close()


def a_death_ends_the_wait():
    lock = space.get("x", 0)
    if rank == 1:
        lock.acquire()
    space.fence("x")
    if rank == 1:
        while not (os.path.exists("flag-0") and os.path.exists("flag-2")):
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    raise_flag(str(rank))
    error = error_of(lambda: space.fence(mine, received=1, peers=[1]))
    assert isinstance(error, MPI.Exception) and error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    assert "rank 1" in str(error), error
    error = error_of(lambda: space.fence(space.get("x", 1), received=1))
    assert isinstance(error, (slots.SlotError, MPI.Exception)) and "rank 1" in str(error), error
    # one of the two frees the lock, and both get it in the end
    told = 0
    while True:
        try:
            lock.acquire(timeout=20)
            break
        except slots.HolderDied as error:
            assert "rank 1" in str(error), error
            told += 1
    lock.release()
    raise_flag(f"done-{rank}")
    await_flag(f"done-{2 - rank}")  # the lock lies on rank 0
    print("told", told, flush=True)


def locks(turns):
    lock = space.get("x", size - 1)
    local = space.allocate(8)
    word = local.array.view("i8")
    for _i in range(turns):
        with lock.locked(timeout=40):
            space.memcpy(local, 0, lock, 0, 8)
            word[0] += 1
            space.memcpy(lock, 0, local, 0, 8)
    space.fence("x")
    space.memcpy(local, 0, lock, 0, 8)
    assert word[0] == turns * size, word
    # only the holder releases; nobody acquires twice
    space.fence("x")
    if rank == 0:
        assert space.try_acquire(lock) and not space.try_acquire(lock)
        assert isinstance(error_of(lambda: lock.acquire(timeout=1)), slots.SlotError)
        space.fence("x")
        space.fence("x")
        space.release(lock)
        assert "nobody holds it" in str(error_of(lock.release))
    else:
        space.fence("x")
        assert not lock.try_acquire()
        error = error_of(lambda: space.acquire(lock, timeout=0.05))
        assert isinstance(error, TimeoutError) and "rank 0 holds it" in str(error), error
        assert "rank 0 holds it" in str(error_of(lock.release))
        space.fence("x")
    space.fence("x")
    # another slot has another lock
    with space.get("x", 0).locked() if rank == 0 else space.get("x", rank).locked(1):
        pass
    space.close()


def words():
    word = space.get("x", 0).word(8)
    for _ in range(1000):
        word.add(1)
    space.fence("x")
    assert word.load() == 1000 * size
    assert rank or mine.array.view("i8")[1] == 1000 * size
    assert isinstance(error_of(lambda: theirs.word(60)), slots.SlotRangeError)
    assert isinstance(error_of(lambda: theirs.word(64)), slots.SlotRangeError)
    assert isinstance(error_of(lambda: theirs.word(-8)), slots.SlotRangeError)
    space.close()


def usable_after_a_reset():
    channel = slots.spsc(space, "c", 0, 1, capacity=2, nbytes=8)
    if rank == 1:
        with interrupted():
            channel.pop(timeout=None)
    else:
        time.sleep(0.2)
    reset()
    space.memcpy(theirs, 0, mine, 0, 8)
    space.fence(mine, received=1, timeout=20)
    if rank == 0:
        channel.push(b"12345678")
    else:
        assert channel.pop(timeout=20) == b"12345678"
    space.fence("x")
    assert slots.spsc(space, "d", 0, 1, capacity=2, nbytes=8).depth == 0
    space.close()
