"""The programs of test_intercommunicator_errors.py."""

import json
import os
import re
import threading
import time

import numpy as np
from rankside import await_flag, error_of, fails, raise_flag, rank, reset, say
from two_groups import pair, root_argument

from gormapy import MPI
from gormapy._ext import core

# Calls of both groups that do not match: that of the even ranks, that of the odd ones, the class of the error, and what
# it says on the even and on the odd ranks.
MISMATCHES = {
    "another collective": (
        lambda comm: comm.Barrier(),
        lambda comm: comm.Allreduce(np.zeros(1), np.zeros(1)),
        MPI.ERR_OTHER,
        "this rank calls Barrier, rank . of the remote group Allreduce of 8 bytes",
        "this rank calls Allreduce of 8 bytes of .*, rank . of the remote group Barrier",
    ),
    "both wait for a root": (
        lambda comm: comm.Bcast(np.zeros(1), 0),
        lambda comm: comm.Bcast(np.zeros(1), 1),
        MPI.ERR_ROOT,
        "root 0 of the remote group, rank . of the remote group Bcast of .* with root 1 of the local group",
        "root 1 of the remote group, rank . of the remote group Bcast of .* with root 0 of the local group",
    ),
    "another operation": (
        lambda comm: comm.Reduce(None, np.zeros(1) if comm.rank == 0 else None, MPI.MAX, root_argument(comm, True)),
        lambda comm: comm.Reduce(np.zeros(1), None, MPI.MIN, 0),
        MPI.ERR_OP,
        "with MPI_MAX with root MPI.ROOT, rank . of the remote group Reduce of .* with MPI_MIN with root 0 of the local group",
        None,  # its operand has been sent
    ),
    "another size": (
        lambda comm: comm.Allreduce(np.zeros(1), np.zeros(1)),
        lambda comm: comm.Allreduce(np.zeros(2), np.zeros(2)),
        MPI.ERR_TRUNCATE,
        "this rank calls Allreduce of 8 bytes of .*, rank . of the remote group Allreduce of 16 bytes",
        "this rank calls Allreduce of 16 bytes of .*, rank . of the remote group Allreduce of 8 bytes",
    ),
    "another size from the root": (
        lambda comm: comm.Bcast(np.zeros(3), root_argument(comm, True)),
        lambda comm: comm.Bcast(np.zeros(2), 0),
        MPI.ERR_TRUNCATE,
        None,  # it has been sent
        "this rank calls Bcast of 16 bytes .* with root 0 of the remote group, rank . of the (remote|local) group "
        "(Bcast of 24 bytes .* with root MPI.ROOT|has)|rank 0 of the local group has given it up",
    ),
    "more than there is room for": (
        lambda comm: comm.Allgather(np.zeros(3), np.zeros(4)),
        lambda comm: comm.Allgather(np.zeros(2), np.zeros(4)),
        MPI.ERR_TRUNCATE,
        None,  # what comes fits, unless the others have failed before they have sent it
        "a message of 24 bytes from rank . of the remote group came for a buffer of 16 bytes",
    ),
    "nonblocking and blocking": (
        lambda comm: comm.Ibarrier().Wait(),
        lambda comm: comm.Allgather(np.zeros(1), np.zeros(2)),
        MPI.ERR_OTHER,
        "this rank calls Ibarrier, rank . of the remote group Allgather",
        "this rank calls Allgather, rank . of the remote group Ibarrier",
    ),
}


def calls_that_do_not_match(case):
    *calls, kind, on_even, on_odd = MISMATCHES[case]
    with pair() as (comm, _):
        wanted = (on_even, on_odd)[rank % 2]
        if wanted is None or (case == "another operation" and comm.rank):
            try:
                calls[rank % 2](comm)
            except MPI.Exception as failure:
                if case != "more than there is room for" or "has given it up" not in str(failure):
                    raise
        else:
            error = error_of(lambda: calls[rank % 2](comm))
            assert error.Get_error_class() == kind, error
            assert re.search(wanted, str(error)), error
        reset()


def another_root_than_the_root():
    with pair() as (comm, _):
        if rank % 2 == 0:
            comm.Bcast(np.zeros(1), root_argument(comm, True, 0))
        else:
            with fails(
                MPI.ERR_OTHER, "of the remote group has completed" if comm.rank == 0 else "rank 0 of the local group"
            ):
                comm.Bcast(np.zeros(1), 1)
        reset()


# Collectives of objects with a wrong root at the last rank, by a function of the communicator and the root.
OBJECTS = {
    "bcast": lambda comm, root: comm.bcast("x" * 2000, root),
    "gather": lambda comm, root: comm.gather(rank, root),
    "scatter": lambda comm, root: comm.scatter([1, 2] if root == MPI.ROOT else None, root),
}


def objects_with_another_root(call):
    """Ranks that fail in the first step of a collective of objects stay in step with the others."""
    with pair() as (comm, far):
        root = root_argument(comm, True) if rank % 2 == 0 else comm.rank  # rank 1 of the odd group names a wrong one
        failed = 0
        try:
            OBJECTS[call](comm, root)
        except MPI.Exception:
            failed = 1
        assert MPI.COMM_WORLD.allreduce(failed) > 0
        for _ in range(2):
            assert comm.allgather(rank) == far


def operations_of_the_program(call):
    """Amounts that differ between the groups are an error at all ranks, as those of a predefined operation."""
    op = MPI.Op.Create(lambda a, b, datatype: None)
    with pair(lambda r: r >= 2) as (comm, far):
        for few, many in ((1, 2), (0, 1), (4, 1000)):  # with its end, a part of 8 bytes is as long as one of none more
            n = few if rank < 2 else many
            error = error_of(lambda n=n: OPERATIONS[call](comm, n, op))
            assert error.Get_error_class() in (MPI.ERR_TRUNCATE, MPI.ERR_OTHER), error
            MPI.COMM_WORLD.Barrier()
            assert comm.allgather(rank) == far
        kept = comm.Allreduce_init(np.ones(3), np.zeros(3), op)
        for _ in range(2):
            kept.Start()
            kept.Wait()
        kept.Free()
    op.Free()


OPERATIONS = {
    "Allreduce": lambda comm, n, op: comm.Allreduce(np.ones(n), np.zeros(n), op),
    "Iallreduce": lambda comm, n, op: comm.Iallreduce(np.ones(n, "i4"), np.zeros(n, "i4"), op).Wait(),
    "Reduce_scatter": lambda comm, n, op: comm.Reduce_scatter(np.ones(n * comm.size), np.zeros(n), [n] * comm.size, op),
}


def amounts_that_do_not_fit():
    with pair() as (comm, _):
        if rank % 2:
            comm.Gatherv(np.zeros(3), None, 0)
            comm.Isend(np.zeros(4), 1, 6).Wait()
        elif comm.rank == 0:
            said = "a message of 24 bytes from rank 0 of the remote group came for a buffer of 8 bytes"
            with fails(MPI.ERR_TRUNCATE, said):
                comm.Gatherv(None, [np.zeros(4), (1, 3), None, MPI.DOUBLE], MPI.ROOT)
        else:
            comm.Gatherv(None, None, MPI.PROC_NULL)
            with fails(MPI.ERR_TRUNCATE, "a message of 32 bytes from rank 0 of the remote group with tag 6"):
                comm.Recv(np.zeros(2), 0, 6)
            with fails(MPI.ERR_TRUNCATE, "a message of 32 bytes from rank 1 of the remote group with tag 6"):
                comm.Recv(np.zeros(2), MPI.ANY_SOURCE, 6)
        reset()


# What the others do when world rank 3, which is rank 1 of the odd ranks, has ended; and what the error says on the even and
# on the odd ranks. None: the odd ones make no call.
WAITS = {
    "Recv": (lambda comm: comm.Recv(np.zeros(1), 1, 5), "receive from rank 1 of the remote group with tag 5", None),
    "Ssend": (lambda comm: comm.Ssend(np.zeros(1), 1, 5), "send to rank 1 of the remote group with tag 5", None),
    "Probe": (lambda comm: comm.Probe(1, 5), "probe for a message from rank 1 of the remote group", None),
    "Allreduce": (
        lambda comm: comm.Allreduce(np.zeros(1), np.zeros(1)),
        "rank 1 of the remote group",
        "rank 1 of the local group",
    ),
    "Allgather": (
        lambda comm: comm.Allgather(np.zeros(1), np.zeros(comm.remote_size)),
        "rank 1 of the remote group",
        None,
    ),
    "Barrier": (lambda comm: comm.Barrier(), "rank 1 of the remote group", "rank 1 of the local group"),
    "Dup": (lambda comm: comm.Dup(), "rank 1 of the remote group", "rank 1 of the local group"),
}


def rank_that_has_ended(wait):
    call, on_even, on_odd = WAITS[wait]
    with pair() as (comm, _):
        comm.Barrier()
        if rank == 3:
            os._exit(0)
        said = (on_even, on_odd)[rank % 2]
        if said:
            error = error_of(lambda: call(comm))
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            assert said in str(error) and "rank 3 (pid" in str(error), error
            say("told", rank)
        leave(range(3))


def leave(living):
    """End, when all that live are through: one that ended before would be why the others' calls fail."""
    raise_flag(f"through-{rank}")
    for r in living:
        await_flag(f"through-{r}")
    os._exit(0)  # the communicator can't be freed


def nobody_is_left_in_the_other_group():
    with pair() as (comm, _):
        comm.Barrier()
        if rank % 2 == 0:
            with fails(MPI.ERR_PROC_FAILED, "all ranks of the remote group have ended"):
                comm.Recv(np.zeros(1), MPI.ANY_SOURCE)
            say("told", rank)
            leave([0, 2])
        os._exit(0)


def wrong_arguments():
    one, many = np.zeros(1), np.zeros(8)
    with pair() as (comm, far):
        n = len(far)
        counts = [1] * n
        too_few, too_many = [1] * (n - 1), [1] * (n + 1)
        negative = [-1] + [1] * (n - 1)
        part = [many, counts, None, MPI.DOUBLE]
        out_of_range, in_place = (MPI.ERR_ROOT, "remote group"), (MPI.ERR_BUFFER, "IN_PLACE")
        # calls, and the class and a word of the MPI error, or the Python error
        wrong = [
            ("Bcast", (one, n), out_of_range),
            ("Bcast", (one, -7), out_of_range),
            ("Gather", (one, many, n), out_of_range),
            ("Scatter", (many, one, n), out_of_range),
            ("Reduce", (one, one, MPI.SUM, n), out_of_range),
            ("Gatherv", (one, None, n), out_of_range),
            ("Scatterv", (None, one, n), out_of_range),
            ("Bcast", (MPI.IN_PLACE, 0), TypeError),
            ("Gather", (MPI.IN_PLACE, None, 0), TypeError),
            ("Scatter", (None, MPI.IN_PLACE, 0), TypeError),
            ("Reduce", (MPI.IN_PLACE, one, MPI.SUM, 0), TypeError),
            ("Allreduce", (MPI.IN_PLACE, one), in_place),
            ("Reduce_scatter_block", (MPI.IN_PLACE, many[: comm.size]), in_place),
            ("Allgather", (MPI.IN_PLACE, many[:n]), in_place),
            ("Alltoall", (MPI.IN_PLACE, many[:n]), in_place),
            ("Allgatherv", (MPI.IN_PLACE, part), in_place),
            ("Alltoallv", (MPI.IN_PLACE, part), in_place),
            ("Alltoallw", (MPI.IN_PLACE, [many, counts, [0] * n, [MPI.DOUBLE] * n]), in_place),
            ("Gatherv", (None, [many, too_few, None, MPI.DOUBLE], MPI.ROOT), ValueError),
            ("Gatherv", (None, [many, too_many, None, MPI.DOUBLE], MPI.ROOT), ValueError),
            ("Gatherv", (None, [many, counts, [0] * (n + 1), MPI.DOUBLE], MPI.ROOT), ValueError),
            ("Gatherv", (None, [many, negative, None, MPI.DOUBLE], MPI.ROOT), (MPI.ERR_COUNT, "negative")),
            ("Scatterv", ([many, too_many, None, MPI.DOUBLE], None, MPI.ROOT), ValueError),
            ("Scatterv", ([many, negative, None, MPI.DOUBLE], None, MPI.ROOT), (MPI.ERR_COUNT, "negative")),
            ("Allgatherv", (one, [many, too_many, None, MPI.DOUBLE]), ValueError),
            ("Allgatherv", (one, [many, negative, None, MPI.DOUBLE]), (MPI.ERR_COUNT, "negative")),
            ("Alltoallv", (part, [many, negative, None, MPI.DOUBLE]), (MPI.ERR_COUNT, "negative")),
            ("Alltoallv", ([many, negative, None, MPI.DOUBLE], part), (MPI.ERR_COUNT, "negative")),
            ("Reduce_scatter", (many[: comm.size], many[:2], None), ValueError),
        ]
        for name, arguments, due in wrong:
            for call in (name, f"I{name.lower()}", f"{name}_init"):
                error = error_of(lambda: getattr(comm, call)(*arguments))  # noqa: B023
                if isinstance(due, tuple):
                    assert isinstance(error, MPI.Exception), (call, arguments, error)
                    assert error.Get_error_class() == due[0] and due[1] in str(error), (call, arguments, error)
                else:
                    assert isinstance(error, due), (call, arguments, error)
        for call in (comm.bcast, comm.gather, comm.scatter, comm.reduce):
            with fails(MPI.ERR_ROOT, "remote group"):
                call([1], root=n)
        for name in ("scatter", "alltoall"):
            arguments = ([0] * (n + 1), MPI.ROOT) if name == "scatter" else ([0] * (n + 1),)
            assert isinstance(error_of(lambda: getattr(comm, name)(*arguments)), ValueError)  # noqa: B023
        with fails(MPI.ERR_RANK, "remote group"):
            comm.send(1, n)
        with fails(MPI.ERR_COMM, "intracommunicator is needed"):
            MPI.Win.Allocate(8, comm=comm)
        with fails(MPI.ERR_COMM, "intracommunicator is needed"):
            MPI.File.Open(comm, "nowhere", MPI.MODE_RDONLY)
        # The ranks are in step, although each has made other calls than the others would have seen.
        assert comm.allgather(rank) == far
        assert not comm.Iprobe()


def amounts_of_a_reduction():
    with pair() as (comm, far):
        n = comm.size
        for wrong in (np.zeros(2 * n), np.zeros(n, "i")):  # too many items, others
            for call in (comm.Reduce_scatter_block, comm.Reduce_scatter_block_init, comm.Ireduce_scatter_block):
                error = error_of(lambda: call(wrong, np.zeros(1)))  # noqa: B023
                assert isinstance(error, ValueError) or error.Get_error_class() == MPI.ERR_TYPE, error
        assert comm.allgather(rank) == far


# Waits
# -----


SLOW = {
    "Bcast": lambda comm: comm.Bcast(np.zeros(1), root_argument(comm, rank == 1)),
    "Allgather": lambda comm: comm.Allgather(np.zeros(1), np.zeros(comm.remote_size)),
    "Recv": lambda comm: comm.Recv(np.zeros(1), 0, 4) if rank == 0 else comm.Send(np.zeros(1), 0, 4),
}


def what_a_rank_waits_for(call):
    """World rank 0 waits for world rank 1, which comes when a thread has seen what is told of the wait."""
    seen = []

    def watch():
        while not any(wait["on"] and wait["peer"] == 1 for wait in seen):
            time.sleep(0.01)
            seen[:] = json.loads(core.Waits())["waits"]
        raise_flag("seen")

    with pair(lambda r: r == 1) as (comm, _):  # {0, 2} and {1}
        if rank == 0:
            watcher = threading.Thread(target=watch)
            watcher.start()
            SLOW[call](comm)
            watcher.join()
            (wait,) = seen
            assert wait["on"] == "intercommunicator of 2 and 1" and sorted(wait["members"]) == [0, 1, 2], wait
            assert (wait["call"].lower(), wait["peer"], wait["all"]) == (call.lower(), 1, False), wait
        elif rank == 1 or call != "Recv":
            if rank == 1:
                await_flag("seen")
            SLOW[call](comm)
