"""The programs of test_nonblocking.py."""

import contextlib
import itertools
import mmap
import os
import time

import numpy as np
from rankside import raise_flag

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def contribution(r, i, length):
    """Return what rank r contributes to collective i."""
    return np.arange(length) + 1000.0 * r + i


def started(comm, name, i, length, root):
    """Start a nonblocking collective; return its request, and the array and the value that it is to have."""
    mine, every = contribution(rank, i, length), [contribution(r, i, length) for r in range(size)]
    rows, one, at_root = np.full((size, length), -1.0), np.full(length, -1.0), rank == root
    blocks = np.array([contribution(rank, i + 100 * r, length) for r in range(size)])
    match name:
        case "Ibarrier":
            return comm.Ibarrier(), one, one.copy()
        case "Ibcast":
            data = mine.copy() if at_root else one
            return comm.Ibcast(data, root), data, every[root]
        case "Iallreduce":
            return comm.Iallreduce(mine, one), one, sum(every)
        case "Iallreduce in place":
            return comm.Iallreduce(MPI.IN_PLACE, mine), mine, sum(every)
        case "Ireduce":
            return comm.Ireduce(mine, one, root=root), one, sum(every) if at_root else one.copy()
        case "Iallgather":
            return comm.Iallgather(mine, rows), rows, np.array(every)
        case "Igather":
            return comm.Igather(mine, rows, root), rows, np.array(every) if at_root else rows.copy()
        case "Iscatter":
            theirs = np.array([contribution(root, i + 100 * r, length) for r in range(size)])
            return comm.Iscatter(theirs if at_root else None, one, root), one, theirs[rank]
        case "Ialltoall":
            wanted = np.array([contribution(r, i + 100 * rank, length) for r in range(size)])
            return comm.Ialltoall(blocks, rows), rows, wanted
        case "Iscan":
            return comm.Iscan(mine, one), one, sum(every[: rank + 1])
        case "Iexscan":
            return comm.Iexscan(mine, one), one, sum(every[:rank]) if rank else one.copy()
        case "Ireduce_scatter_block":
            wanted = sum(contribution(r, i + 100 * rank, length) for r in range(size))
            return comm.Ireduce_scatter_block(blocks, one), one, wanted
    raise ValueError(name)


NAMES = (
    "Ibarrier",
    "Ibcast",
    "Iallreduce",
    "Iallreduce in place",
    "Ireduce",
    "Iallgather",
    "Igather",
    "Iscatter",
    "Ialltoall",
    "Iscan",
    "Iexscan",
    "Ireduce_scatter_block",
)


def many_at_once(seed):
    """Up to 40 of all kinds under way, blocking ones between, and waited for in another order at each rank."""
    same, own = np.random.default_rng(seed), np.random.default_rng([seed, rank])
    comm = world.Dup()
    for _ in range(60):
        requests, results = [], []
        for i in range(same.integers(1, 40)):
            name, length, root = same.choice(NAMES), int(same.choice([1, 3, 6, 40, 500, 600])), int(same.integers(size))
            if same.random() < 0.1:
                total = np.zeros(length)
                comm.Allreduce(contribution(rank, i, length), total)
                assert (total == sum(contribution(r, i, length) for r in range(size))).all()
            request, *result = started(comm, name, i, length, root)
            requests.append(request)
            results.append((name, i, *result))
        order = [requests[k] for k in own.permutation(len(requests))]
        match own.integers(3):
            case 0:
                MPI.Request.Waitall(order)
            case 1:
                for request in order:
                    request.Wait()
            case 2:
                for request in order:
                    while not request.Test():
                        pass
        for name, i, got, wanted in results:
            assert (got == wanted).all(), (name, i, got, wanted)
    comm.Free()


def one_rank_runs_ahead():
    """A root completes its broadcasts, as far as there is room, although nobody else has called any; and nobody else needs it then."""
    comm = world.Dup()
    data = [np.full(10, rank + k) for k in range(20)]
    if rank == 0:
        requests = [comm.Ibcast(d) for d in data]
        assert requests[0].Test()
        world.Barrier()  # the others have called none
    else:
        world.Barrier()
        requests = [comm.Ibcast(d) for d in data]
    MPI.Request.Waitall(requests)
    assert all((d == k).all() for k, d in enumerate(data))
    comm.Free()


def freed_while_under_way():
    """A communicator is freed with collectives under way, and others get its memory only then."""
    for k in range(30):
        comm = world.Dup()
        total, all_of_them = np.zeros(1), np.zeros((size, 100))
        requests = [comm.Iallreduce(np.full(1, float(k)), total)] if k % 2 else []
        requests += [comm.Iallgather(np.full(100, float(rank)), all_of_them) for _ in range(10)]
        if k % 3 == rank % 3:
            for request in requests[1:5]:
                request.Free()
            requests[1:5] = []
        comm.Free()
        other = world.Dup()
        got = np.zeros(1)
        other.Iallreduce(np.ones(1), got).Wait()
        assert got[0] == size
        MPI.Request.Waitall(requests)
        assert (all_of_them == np.arange(size)[:, None]).all()
        assert not k % 2 or total[0] == k * size
        other.Free()


one, more = np.ones(1), np.ones(8 * size)
MISMATCHES = {
    "roots": lambda comm: comm.Ibcast(one, (rank + 1) % size),
    "roots of a gather": lambda comm: comm.Igather(one, more[:size], rank),
    "counts": lambda comm: comm.Iallreduce(more[: 1 + rank % 2], more[8 : 9 + rank % 2].copy()),
    "a long one": lambda comm: comm.Iallgather(np.ones(1 + rank % 2 * 9999), np.ones((1 + rank % 2 * 9999) * size)),
    "operations": lambda comm: comm.Iallreduce(one, more[:1].copy(), MPI.MAX if rank % 2 else MPI.MIN),
    "kinds": lambda comm: (
        comm.Iallgather(one, more[:size].copy()) if rank % 2 else comm.Iallreduce(one, more[:1].copy())
    ),
    "a barrier": lambda comm: comm.Ibarrier() if rank % 2 else comm.Iallreduce(one, more[:1].copy()),
    "blocking": lambda comm: (
        comm.Allreduce(one, more[:1].copy()) if rank % 2 else comm.Iallreduce(one, more[:1].copy())
    ),
    "blocking roots": lambda comm: (
        comm.Bcast(one, (rank + 1) % size) if rank % 2 else comm.Ibcast(one, (rank + 1) % size)
    ),
    "a long one and a root": lambda comm: (
        comm.Bcast(one, 1) if rank != 1 else comm.Ireduce(np.ones(600), np.ones(600), root=1)
    ),
    "objects": lambda comm: comm.allgather(1) if rank % 2 else comm.Iallreduce(one, more[:1].copy()),
}


def mismatches(name):
    """Ranks make different calls: those that can't complete get an error, and afterwards the communicator works."""
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    for k in range(12):  # more than there are slots
        failed = 0
        try:
            request = MISMATCHES[name](comm)
            if isinstance(request, MPI.Request):
                request.Wait()
        except MPI.Exception as error:
            failed = 1
            text = error.Get_error_string()
            assert "the ranks do not call the same" in text or "given it up" in text, text
        assert world.allreduce(failed) > 0, (name, k)
        total = np.zeros(1)
        comm.Iallreduce(np.ones(1), total).Wait()
        assert total[0] == size, (name, k, total)
    comm.Free()


def other_roots_with_more_under_way():
    """Ranks that take others for the root find that out, although they have started more since than there are slots."""
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    for more in (1, 7, 8, 12, 40):
        first = comm.Ibcast(np.ones(1), (rank + 1) % size)
        totals = [np.zeros(1) for _ in range(more)]
        others = [comm.Iallreduce(np.ones(1), total) for total in totals]
        try:
            first.Wait()
            raise AssertionError("no error")
        except MPI.Exception as error:
            text = error.Get_error_string()
            assert "the ranks do not call the same" in text or "given it up" in text, text
        MPI.Request.Waitall(others)
        assert all(total[0] == size for total in totals), (more, totals)
    comm.Free()


OTHERS = {
    "Bcast": lambda comm, some, _: comm.Bcast(some, 1),
    "Scatter": lambda comm, some, _: comm.Scatter(None, some, 1),
    "Gather": lambda comm, some, all_of_them: comm.Gather(some, all_of_them if rank == 0 else None),
    "Allgather": lambda comm, some, all_of_them: comm.Allgather(some, all_of_them),
    "Ibcast": lambda comm, some, _: comm.Ibcast(some[:5], 1),
    "Iallgather": lambda comm, some, all_of_them: comm.Iallgather(some[:5], all_of_them[: 5 * size]),
}
BY_MESSAGES = {
    "Ireduce": lambda comm: comm.Ireduce(np.ones(9000), np.ones(9000), root=1),
    "Ialltoall": lambda comm: comm.Ialltoall(np.ones(9000 * size), np.ones(9000 * size)),
    "Iallgatherv": lambda comm: comm.Iallgatherv(np.ones(3), np.ones(3 * size)),
}


def another_call_than_one_by_messages(length, more):
    """A rank that waits for messages of another call finds that, however many collectives the other ranks have called since."""
    some, all_of_them = np.ones(length), np.ones(length * size)
    for other, by_messages in itertools.product(OTHERS.values(), BY_MESSAGES.values()):
        comm = world.Dup()
        comm.Allgather(some, all_of_them)
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        request, failed = None, 0
        try:
            request = other(comm, some, all_of_them) if rank == 0 else by_messages(comm)
        except MPI.Exception:
            failed = 1
        for _ in range(more):
            comm.Allreduce(np.ones(1), np.ones(1))
        later = [comm.Ibarrier() for _ in range(more)]
        try:
            if request is not None:
                request.Wait()
        except MPI.Exception:
            failed = 1
        MPI.Request.Waitall(later)
        assert world.allreduce(failed) > 0
        comm.Free()


def faulting():
    """Memory that faults is the error of its rank; others that need it have one, too; and the communicator works."""
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"nonblocking-{os.getpid()}")
    with open(path, "wb+") as file:
        file.truncate(mmap.PAGESIZE)
        gone = np.frombuffer(mmap.mmap(file.fileno(), mmap.PAGESIZE), "f8")
        file.truncate(0)
    os.unlink(path)
    calls = {
        "Iallreduce from": lambda bad: world.Iallreduce(gone[:4] if bad else np.ones(4), np.zeros(4)),
        "Iallreduce to": lambda bad: world.Iallreduce(np.ones(4), gone[:4] if bad else np.zeros(4)),
        "Ibcast": lambda bad: world.Ibcast(gone[:100] if bad else np.ones(100), 0),
        "Iallgather": lambda bad: world.Iallgather(gone[:100] if bad else np.ones(100), np.ones(100 * size)),
        "Igather": lambda bad: world.Igather(gone[:1] if bad else np.ones(1), np.ones(size), 0),
    }
    for name, call in calls.items():
        for victim in range(size):
            good = np.zeros(1)
            before = world.Iallreduce(np.ones(1), good)
            request, failed = call(rank == victim), False
            try:
                request.Wait()
            except MPI.Exception as error:
                failed = True
                text = error.Get_error_string()
                assert ("memory" in text) == (rank == victim) or "given it up" in text, text
            assert failed or rank != victim, name
            before.Wait()
            after = np.zeros(1)
            world.Iallreduce(np.ones(1), after).Wait()
            assert good[0] == after[0] == size


def a_rank_ends(kind, when):
    """Ranks that wait in a nonblocking collective for one that has ended get an error, or the result if that had contributed."""
    raise_flag("running")
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    last = size - 1
    requests = []
    for k in range(20):
        if rank == last and k == when:
            os._exit(0)
        requests.append(started(comm, kind, k, 5, last if kind == "Ibcast" else 0)[0])
    failed = 0
    begun = time.monotonic()
    for request in requests:
        try:
            request.Wait()
        except MPI.Exception as error:
            failed += 1
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    assert time.monotonic() - begun < 30
    print("failed", failed)
    os._exit(0)


def revoked():
    """Revoke ends those that can't complete, at all ranks."""
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    requests = [comm.Iallreduce(np.ones(1), np.zeros(1)) for _ in range(20)] if rank else []
    world.Barrier()
    if rank == 0:
        comm.Revoke()
    errors = 0
    for request in requests:
        with contextlib.suppress(MPI.Exception):
            request.Wait()
            continue
        errors += 1
    assert errors == len(requests)
    comm.Free()
