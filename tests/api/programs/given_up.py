"""The programs of test_given_up.py."""

import contextlib
import os
import pickle
import resource
import signal
import time

import rankside
from rankside import interrupted_in_a_wait, rank, size, world

from gormapy import MPI


class Kept(bytearray):
    """A pickle that says whether a buffer of it is held."""

    def is_held(self):
        try:
            self.append(0)
        except BufferError:
            return True
        return False


@contextlib.contextmanager
def kept_pickles():
    """Yield a list of the pickles that calls make meanwhile."""
    kept = []

    def dumps(o, *_):
        kept.append(Kept(pickle.dumps(o)))
        return kept[-1]

    MPI.pickle.__init__(dumps)
    try:
        yield kept
    finally:
        MPI.pickle.__init__()


def a_revoked_call_keeps_its_pickle():
    """Rank 2 may be reading the pickle of rank 0, whose call ends."""
    comm = world.Dup()
    comm.allgather(rank)
    world.Barrier()  # all have left the first collective
    if rank == 0:
        with kept_pickles() as kept, rankside.fails(MPI.ERR_REVOKED):
            comm.bcast(bytes(1_000_000))
        assert kept[0].is_held()
    elif rank == 1:
        rankside.await_call(0, "collective")
        comm.Revoke()
    world.Barrier()


def a_pickle_is_released_when_it_has_been_read():
    """Rank 0's call has failed, since rank 1 has died; rank 2 reads the pickle later."""
    world.allgather(rank)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        with rankside.fails(MPI.ERR_PROC_FAILED):
            world.recv(source=1)
        with kept_pickles() as kept, rankside.fails(MPI.ERR_PROC_FAILED):
            world.bcast(bytes(100_000))
        assert kept[0].is_held()
        rankside.raise_flag("failed")
        assert world.recv(source=2) == 100_000

        def released():
            world.sendrecv(1, 0, source=0)
            return not kept[0].is_held()

        rankside.until(released, lambda: "the pickle is held", 20)
    else:
        rankside.await_flag("failed")
        world.send(len(world.bcast(None)), 0)
    print("went on", flush=True)
    os._exit(0)


def resident():
    """Return how many MiB of memory this process uses."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20


def finalize_does_not_wait(what):
    """Both ranks give up what they send each other."""
    with interrupted_in_a_wait():
        getattr(world, what)(bytes(1_000_000), 1 - rank)
    world.Barrier()
    begun = time.monotonic()
    MPI.Finalize()
    assert time.monotonic() - begun < 20


SENDING = {
    "send": lambda data: world.send(data, 1),
    "Send": lambda data: world.Send(data, 1),
    "sendrecv": lambda data: world.sendrecv(data, 1, source=1),
    "isend": lambda data: world.isend(data, 1).wait(),
    "bcast": world.bcast,
    "Bcast": lambda data: world.Bcast(bytearray(data)),
}


def nothing_is_left_of_sends_to_the_dead(what):
    world.Barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with rankside.fails(MPI.ERR_PROC_FAILED):
        world.recv(source=1)
    data = bytes(20_000_000)
    for k in range(20):
        with rankside.fails(MPI.ERR_PROC_FAILED):
            SENDING[what](data)
        if k == 4:
            before = resident()
    assert resident() < before + 100, f"{before} MiB, then {resident()} MiB"
    print("went on", flush=True)
    os._exit(0)


def sends_given_up_before_the_death():
    """What rank 0 has given up is dropped when rank 1, which has not read it, dies."""
    world.Barrier()
    if rank == 1:
        rankside.await_flag("given up")
        os.kill(os.getpid(), signal.SIGKILL)
    data = bytes(50_000_000)
    for _ in range(4):
        with interrupted_in_a_wait():
            world.send(data, 1)
    del data
    rankside.raise_flag("given up")
    with rankside.fails(MPI.ERR_PROC_FAILED):
        world.recv(source=1)

    def released():
        with contextlib.suppress(MPI.Exception):
            world.send(None, 1)  # the extension looks at what it keeps
        return resident() < 150

    rankside.until(released, lambda: f"{resident()} MiB are in use", 20)
    print("went on", flush=True)
    os._exit(0)


CALLS = {
    "bcast": lambda comm: comm.bcast("x" if rank == 0 else None),
    "gather": lambda comm: comm.gather(rank, 1),
    "scatter": lambda comm: comm.scatter(list(range(size)) if rank == 0 else None),
    "allgather": lambda comm: comm.allgather(rank),
    "alltoall": lambda comm: comm.alltoall(list(range(size))),
    "allreduce": lambda comm: comm.allreduce(1),
}


def more_calls_than_slots(what):
    """Rank 1 is interrupted in more calls than a rank has slots; rank 0 then makes the same calls, and the next one works."""
    comm = world.Dup()
    comm.allgather(rank)
    rounds = 9
    if rank == 1:
        for _ in range(rounds):
            with interrupted_in_a_wait():
                CALLS[what](comm)
        world.send(None, 0)
    else:
        world.recv(source=1)
        for _ in range(rounds):
            with contextlib.suppress(MPI.Exception):
                CALLS[what](comm)
    assert comm.allgather(rank) == list(range(size))


def the_root_is_interrupted_as_it_waits_for_room(times):
    """The root of broadcasts runs ahead. The other rank then makes the same calls, and the next one works."""
    comm = world.Dup()
    calls = 0
    if rank == 0:
        for _ in range(times):
            with interrupted_in_a_wait():
                while True:
                    calls += 1
                    comm.bcast(calls)
        world.send(calls, 1)
    else:
        for k in range(1, world.recv(source=0) + 1):
            try:
                assert comm.bcast(None) == k  # if the root's message had gone
            except MPI.Exception as error:
                assert "has given it up" in str(error), error
    assert comm.allgather(rank) == list(range(size))


def nothing_is_left_of_what_was_refused():
    """What rank 0 sends for a call that rank 1 has given up is dropped there."""
    comm = world.Dup()
    comm.allgather(rank)
    data = bytes(20_000_000)
    for k in range(12):
        if rank == 1:
            with interrupted_in_a_wait():
                comm.bcast(None)
            world.send(None, 0)
        else:
            world.recv(source=1)
            with contextlib.suppress(MPI.Exception):
                comm.bcast(data)
        assert comm.allgather(k) == [k] * size
        if k == 3:
            before = resident()
    assert resident() < before + 100, f"{before} MiB, then {resident()} MiB"


def another_rank_has_refused():
    """The root's call ends since rank 2 has given it up; rank 1 calls later, and reads the root's pickle."""
    comm = world.Dup()
    comm.allgather(rank)
    good = bytes([7]) * 1_000_000
    for _ in range(3):
        world.Barrier()
        if rank == 2:
            with rankside.interrupted(1):
                comm.scatter(None)
            world.send(None, 0)
        elif rank == 0:
            world.recv(source=2)
            with kept_pickles() as kept, rankside.fails(MPI.ERR_OTHER, "has given it up"):
                comm.scatter([good] * size)
            for made in kept:
                if not made.is_held():
                    made[100:-100] = bytes([9]) * (len(made) - 200)
            world.send(None, 1)
        else:
            world.recv(source=0)
            with contextlib.suppress(MPI.Exception):
                assert comm.scatter(None) == good
        world.Barrier()


def the_error_names_the_death():
    """Rank 1 has died, the root has given calls up: rank 2 gets ERR_PROC_FAILED as well."""
    comm = world.Dup()
    comm.allgather(rank)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with rankside.fails(MPI.ERR_PROC_FAILED):
        world.recv(source=1)
    failed = 0
    for _ in range(12):
        try:
            comm.bcast(5)
        except MPI.Exception as error:
            failed += 1
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    world.sendrecv(None, 2 - rank, source=2 - rank)
    print("went on" if failed or rank == 2 else "no call failed", flush=True)
    os._exit(0)
