"""Rank 1 is killed by signal 9 in the state that the argument names; the others are told, and go on with what lives."""

import os
import signal
import sys
import time

import numpy as np
from onesided import FLAVOURS, MPI, Window, rank, same, size, world

VICTIM = 1
AT_ONCE = 20.0  # seconds; the promise is one, on a machine that has nothing else to do
FLAVOUR = sys.argv[2] if sys.argv[2] in FLAVOURS else "allocate"  # on several nodes none is shared
LARGE = 64 << 20


def die(after=0.0):
    """Let another process kill this one."""
    if after:
        if os.fork() == 0:
            time.sleep(after)
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(0)
        return
    os.kill(os.getpid(), signal.SIGKILL)


def told(call, *, may_succeed=False):
    """Make a call that ends with MPI_ERR_PROC_FAILED, soon, and says which rank it was."""
    begun = time.monotonic()
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
        assert "rank 1" in str(error), error
        answer = True
    else:
        assert may_succeed, "the call succeeded"
        answer = False
    took = time.monotonic() - begun
    assert took < AT_ONCE, f"the error came after {took:.2f} s"
    return answer


def dead():
    """Wait until the victim is dead, and this rank knows."""
    told(lambda: world.Recv(np.zeros(1), VICTIM, 77))


def meet():
    """Let the victim go on when all others have; a barrier in which it had died would be an error for them."""
    world.Barrier()
    if rank != VICTIM:
        open(f"met-{sys.argv[1]}-{FLAVOUR}-{rank}", "w").close()
        return
    while not all(os.path.exists(f"met-{sys.argv[1]}-{FLAVOUR}-{r}") for r in others()):
        time.sleep(0.002)


def others():
    return [r for r in range(size) if r != VICTIM]


def group(*ranks):
    return world.Get_group().Incl(ranks)


def together():
    """Wait for the other living ranks."""
    for r in others():
        if r != rank:
            world.Isend(np.zeros(1), r, 9)
    for r in others():
        if r != rank:
            world.Recv(np.zeros(1), r, 9)


def still_works(w):
    """Use the window among those who live."""
    together()
    target = others()[(others().index(rank) + 1) % len(others())]
    value, got = np.array([rank + 5.0]), np.zeros(1)
    told(lambda: w.win.Lock(target), may_succeed=True) and w.win.Lock(target)
    w.win.Put(value, target, w.at(target, 3))
    w.win.Flush(target)
    w.win.Get(got, target, w.at(target, 3))
    w.win.Unlock(target)
    same(got, value)
    together()


def exclusive(w):
    """In an exclusive lock: one of those who wait for it is told that the data may be incomplete."""
    if rank == VICTIM:
        w.win.Lock(0)
        meet()
        die()
    meet()
    heard = told(lambda: w.win.Lock(0), may_succeed=True)
    if heard:
        w.win.Lock(0)
    w.win.Unlock(0)
    heard = [heard, *gathered(heard)]
    assert sum(heard) == 1, heard


def gathered(value):
    """Exchange a value with the other living ranks."""
    requests = [world.isend(value, r, 8) for r in others() if r != rank]
    found = [world.recv(source=r, tag=8) for r in others() if r != rank]
    MPI.Request.waitall(requests)
    return found


def shared(w):
    """In a shared lock, which it shared with others: whoever wants an exclusive one gets it, with an error or not."""
    w.win.Lock(0, MPI.LOCK_SHARED)
    meet()
    if rank == VICTIM:
        die()
    w.win.Unlock(0)
    if told(lambda: w.win.Lock(0), may_succeed=True):
        w.win.Lock(0)
    w.win.Unlock(0)


def lock_all(w):
    """In Lock_all, as the others are."""
    w.win.Lock_all()
    meet()
    if rank == VICTIM:
        die()
    time.sleep(0.1)
    value, old = np.ones(1), np.zeros(1)
    for _ in range(10):
        w.win.Fetch_and_op(value, old, 0, w.at(0))
        w.win.Flush(0)
    told(w.win.Unlock_all, may_succeed=True)
    if told(lambda: w.win.Lock(0), may_succeed=True):
        w.win.Lock(0)
    w.win.Unlock(0)


def fence(w):
    """In an epoch of fences: nobody gets out of the next one without an error."""
    w.win.Fence()
    w.win.Put(np.ones(1), 0, w.at(0, rank))
    meet()
    if rank == VICTIM:
        die()
    told(w.win.Fence)


def inside_fence(w):
    """Waiting in a fence for the others, which may get through since it had come; not through the next one."""
    meet()
    if rank == VICTIM:
        die(after=0.3)
        w.win.Fence()
        time.sleep(20)
    time.sleep(1.0)
    if not told(w.win.Fence, may_succeed=True):
        told(w.win.Fence)


def access(w):
    """Between Start and Complete: the target is told in Wait."""
    meet()
    if rank == VICTIM:
        w.win.Start(group(0))
        w.win.Put(np.ones(1), 0, w.at(0))
        die()
    if rank == 0:
        w.win.Post(group(VICTIM))
        told(w.win.Wait)


def exposure(w):
    """Before Post: who waits for that in Start is told."""
    meet()
    if rank == VICTIM:
        die(after=0.2)
        time.sleep(10)
    told(lambda: w.win.Start(group(VICTIM)))


def in_wait(w):
    """In Wait, exposed: its origins are told at the latest when they put, or not at all."""
    meet()
    if rank == VICTIM:
        w.win.Post(group(0, 2))
        die(after=0.3)
        w.win.Wait()
    if rank in (0, 2):
        if told(lambda: w.win.Start(group(VICTIM)), may_succeed=True):
            return
        dead()
        told(lambda: w.win.Put(np.ones(1), VICTIM, w.at(VICTIM)), may_succeed=True)
        told(w.win.Complete, may_succeed=True)


def complete(w):
    """An origin in Complete, with data under way to a living target as well: that has it all when its Wait ends."""
    with_room = Window(FLAVOUR, LARGE if rank == 2 else 8, "u1")
    meet()
    if rank == VICTIM:
        with_room.win.Post(group(0))
        world.Send(np.zeros(1), 0, 3)
        die(after=0.2)
        time.sleep(10)
    if rank == 2:
        with_room.win.Post(group(0))
        with_room.win.Wait()
        assert (with_room.mine == 3).all(), f"{np.count_nonzero(with_room.mine != 3)} bytes are missing"
    if rank == 0:
        world.Recv(np.zeros(1), VICTIM, 3)
        with_room.win.Start(group(VICTIM, 2))
        dead()
        values = np.full(LARGE, 3, "u1")
        told(lambda: with_room.win.Put(values[:8], VICTIM, with_room.at(VICTIM)), may_succeed=True)
        with_room.win.Put(values, 2, with_room.at(2))
        told(with_room.win.Complete, may_succeed=True)


def large_put(w):
    """In the middle of puts of 64 MiB."""
    with_room = Window(FLAVOUR, LARGE if rank == 0 else 0, "u1")
    if rank == VICTIM:
        values = np.ones(LARGE, "u1")
        with_room.win.Lock(0)
        meet()
        die(after=0.3)
        while True:
            with_room.win.Put(values, 0, with_room.at(0))
            with_room.win.Flush(0)
    meet()
    if told(lambda: with_room.win.Lock(0), may_succeed=True):
        with_room.win.Lock(0)
    if rank == 2:
        values = np.full(LARGE, 2, "u1")
        with_room.win.Put(values, 0, with_room.at(0))
    with_room.win.Unlock(0)
    together()
    assert rank or (with_room.mine == 2).all()


def large_get(w):
    """While others get its memory."""
    with_room = Window(FLAVOUR, LARGE if rank == VICTIM else 0, "u1")
    meet()
    if rank == VICTIM:
        die(after=0.3)
        time.sleep(10)
    values = np.ones(LARGE, "u1")
    begun = time.monotonic()
    while time.monotonic() - begun < 0.8:

        def get():
            with_room.win.Lock(VICTIM, MPI.LOCK_SHARED)
            with_room.win.Get(values, VICTIM, with_room.at(VICTIM))
            with_room.win.Unlock(VICTIM)

        if told(get, may_succeed=True):
            break


w = Window(FLAVOUR, 8)
print(f"pid {rank} {os.getpid()}", flush=True)
globals()[sys.argv[1]](w)
still_works(w)
print(f"through {rank}", flush=True)
os._exit(0)  # the window can't be freed without rank 1
