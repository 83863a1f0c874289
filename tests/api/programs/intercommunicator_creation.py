"""The programs of test_intercommunicator_creation.py."""

import os
import signal
import threading
import time

from rankside import await_flag, error_of, fails, interrupted, raise_flag, rank, reset, say, size, world

from gormapy import MPI


def near_and_leaders():
    """Return the communicator of this rank's side, and the world rank of the other side's leader, the last of it."""
    near = world.Split(rank % 2, rank)
    return near, max(r for r in range(size) if r % 2 != rank % 2)


def made(near, other, **options):
    """Make an intercommunicator as it has to be, to see that the refused calls left nothing."""
    comm = near.Create_intercomm(near.size - 1, world, other, **options)
    assert comm.allgather(rank) == [r for r in range(size) if r % 2 != rank % 2]
    return comm


REFUSED = {
    "local leader": lambda near, other: (
        MPI.ERR_RANK,
        "local leader 9",
        lambda: near.Create_intercomm(9, world, other),
    ),
    "tag": lambda near, other: (MPI.ERR_TAG, "-1", lambda: near.Create_intercomm(0, world, other, -1)),
    "remote leader": lambda near, other: (
        MPI.ERR_RANK,
        "remote leader 99",
        lambda: near.Create_intercomm(near.size - 1, world, 99),
    ),
    "no remote leader": lambda near, other: (
        MPI.ERR_RANK,
        "remote leader -",
        lambda: near.Create_intercomm(near.size - 1, world, MPI.PROC_NULL),
    ),
    "no peer": lambda near, other: (
        MPI.ERR_COMM,
        "COMM_NULL",
        lambda: near.Create_intercomm(near.size - 1, MPI.COMM_NULL, other),
    ),
    "one group": lambda near, other: (
        MPI.ERR_COMM,
        "disjoint",
        lambda: near.Create_intercomm(near.size - 1, near, near.size - 1),
    ),
    "remote leader near": lambda near, other: (
        MPI.ERR_COMM,
        "disjoint",
        lambda: near.Create_intercomm(near.size - 1, near, 0),
    ),
    "remote leader in the world": lambda near, other: (
        MPI.ERR_COMM,
        f"rank {rank % 2} is in both groups",
        lambda: near.Create_intercomm(near.size - 1, world, rank % 2),
    ),
    "one group in a group": lambda near, other: (
        MPI.ERR_COMM,
        f"Create_from_groups: rank {rank % 2} is in both groups",
        lambda: MPI.Intercomm.Create_from_groups(near.group, 0, near.group, 1),
    ),
    "a rank in both groups": lambda near, other: (
        MPI.ERR_COMM,
        f"Create_from_groups: rank {rank % 2} is in both groups",
        lambda: MPI.Intercomm.Create_from_groups(
            *([near.group, 0, world.group, 1] if rank % 2 else [near.group, 0, world.group.Excl([2]), 1])
        ),
    ),
    "remote leader in a group": lambda near, other: (
        MPI.ERR_RANK,
        "9",
        lambda: MPI.Intercomm.Create_from_groups(
            near.group, near.size - 1, world.group.Incl([r for r in range(size) if r % 2 != rank % 2]), 9
        ),
    ),
    "local leader in a group": lambda near, other: (
        MPI.ERR_RANK,
        "local leader 9",
        lambda: MPI.Intercomm.Create_from_groups(near.group, 9, MPI.GROUP_NULL, 0),
    ),
}
LEADER_ONLY = (  # have no meaning elsewhere
    "remote leader",
    "no remote leader",
    "no peer",
    "one group",
    "remote leader near",
    "remote leader in the world",
    "remote leader in a group",
)


def creation_that_is_refused(how):
    near, other = near_and_leaders()
    for _ in range(3):
        kind, said, call = REFUSED[how](near, other)
        leads = near.rank == near.size - 1
        if how in LEADER_ONLY and not leads:
            said = f"rank {near.size - 1} of the communicator, the leader, could not meet the other leader"
            if how == "no peer":  # the members may well have one

                def call():
                    return near.Create_intercomm(near.size - 1, world, other)

        with fails(kind, said):
            call()
    made(near, other).Free()
    near.Free()


def overlapping_groups():
    """Rank 1 is in both groups, and makes the call for each."""
    left, right = (world.Create_group(world.group.Incl(group), tag) for tag, group in enumerate(([0, 1], [1, 2])))
    for comm, leader, other in ((left, 0, 2), (right, 1, 0)):
        if comm:
            with fails(MPI.ERR_COMM, "rank 1 is in both groups"):
                comm.Create_intercomm(leader, world, other, 5)
            comm.Free()


def one_tag_for_two():
    near, other = near_and_leaders()
    first, second = made(near, other, tag=3), made(near, other, tag=3)
    if near.rank == 0:
        first.send("first", 0, 1)
        second.send("second", 0, 1)
        assert second.recv(source=0, tag=1) == "second"
        assert first.recv(source=0, tag=1) == "first"
    first.Free()
    second.Free()
    near.Free()


def killed_leader(when):
    """World rank 3, the leader of the odd ranks, is killed before it calls, or as it waits for the other leader."""
    near, other = near_and_leaders()
    world.Barrier()
    if rank == 3 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 3:
        if os.fork() == 0:
            time.sleep(0.3)
            os.kill(os.getppid(), signal.SIGKILL)
            raise_flag("killed")
            os._exit(0)
        near.Create_intercomm(1, world, other)
    if rank != 1:
        if when == "in the middle":
            await_flag("killed")
        told = "rank 3 (pid" if rank == 4 else "rank 2 of the communicator, the leader, could not meet"
    else:
        told = "rank 3 (pid"
    error = error_of(lambda: near.Create_intercomm(near.size - 1, world, other))
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    assert told in str(error), error
    say("told", rank)
    if rank != 1:  # those that live can go on
        assert near.allgather(rank) == [0, 2, 4]


def interrupted_creation():
    """The leaders do not meet: that of the even ranks makes no call."""
    near, other = near_and_leaders()
    if near.rank < near.size - 1 or rank % 2:
        with interrupted():
            near.Create_intercomm(near.size - 1, world, other)
    else:
        time.sleep(0.4)
    reset()
    for _ in range(2):
        made(near, other).Free()
    near.Free()


def tags_of_all_sizes():
    """Two threads create with different tags, each rank in another order."""
    most = world.Get_attr(MPI.TAG_UB)
    for tags in ((1, 1 + (1 << 28)), (0, most), (1 << 30, 0), (most, most - 1)):
        alone = [MPI.COMM_SELF.Dup() for _ in tags]
        made = {}

        def create(k, alone=alone, made=made, tags=tags):
            made[k] = alone[k].Create_intercomm(0, world, 1 - rank, tags[k])

        threads = []
        for k in (0, 1) if rank == 0 else (1, 0):
            threads.append(threading.Thread(target=create, args=(k,)))
            threads[-1].start()
            time.sleep(0.1)
        for thread in threads:
            thread.join()
        sent = [made[k].isend(k, 0) for k in (0, 1)]
        assert [made[k].recv(source=0) for k in (0, 1)] == [0, 1], tags
        MPI.Request.waitall(sent)
        groups = [world.Create_group(world.group, tag) for tag in tags]
        for comm in [*alone, made[0], made[1], *groups]:
            comm.Free()


def a_leader_that_was_interrupted_calls_again():
    alone = world.Split(rank)
    for turn in range(3):
        if rank == turn % 2:
            with interrupted():
                alone.Create_intercomm(0, world, 1 - rank, 3)
        world.Barrier()
        for _ in range(3):
            both = alone.Create_intercomm(0, world, 1 - rank, 3)
            assert both.allgather(rank) == [1 - rank]
            both.Free()
    alone.Free()


def groups_are_given_back():
    """Create_from_groups leaves no group behind in the core."""
    mine, far = (world.group.Incl([r]) for r in (rank, 1 - rank))

    def slot():
        group = world.Get_group()
        number = group.handle & 0xFFFFFFFF
        group.Free()
        return number

    before = slot()
    for _ in range(20):
        MPI.Intercomm.Create_from_groups(mine, 0, far, 0, "back").Free()
    assert slot() == before
