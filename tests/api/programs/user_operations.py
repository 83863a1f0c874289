"""The programs of test_user_operations.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B007, B023

import threading

import numpy as np
from rankside import fails, rank, size, world

from gormapy import MPI


def in_every_call():
    # Pairs (first, last) of neighbouring intervals of ranks: associative, not commutative.
    calls = []

    def join(a, b, datatype):
        calls.append(threading.get_ident())
        first, second = np.frombuffer(a, "i8").reshape(-1, 2), np.frombuffer(b, "i8").reshape(-1, 2)
        assert (first[:, 1] + 1 == second[:, 0]).all(), (first, second)
        second[:, 0] = first[:, 0]

    op = MPI.Op.Create(join, commute=False)

    def pairs(count, first=rank, last=rank):
        return np.tile([first, last], (count, 1))

    for count in (0, 1, 50, 20_000):
        for way in "blocking", "nonblocking", "persistent":

            def run(name, *args, **kwargs):
                if way == "blocking":
                    getattr(world, name)(*args, **kwargs)
                elif way == "nonblocking":
                    request = getattr(world, "I" + name.lower())(*args, **kwargs)
                    calls.clear()
                    request.Wait()
                else:
                    request = getattr(world, name + "_init")(*args, **kwargs)
                    for _ in range(2):
                        request.Start()
                        request.Wait()
                    request.Free()

            mine = pairs(count)
            into = pairs(count, -9, -9)
            run("Allreduce", mine, into, op)
            assert (into == pairs(count, 0, size - 1)).all()
            if way != "persistent":
                into = mine.copy()
                run("Allreduce", MPI.IN_PLACE, into, op)
                assert (into == pairs(count, 0, size - 1)).all()
            into = pairs(count, -9, -9)
            root = size - 1
            run("Reduce", mine, into if rank == root else None, op, root=root)
            assert (into == (pairs(count, 0, size - 1) if rank == root else -9)).all()
            run("Scan", mine, into, op)
            assert (into == pairs(count, 0, rank)).all()
            into = pairs(count, -9, -9)
            run("Exscan", mine, into, op)
            assert (into == (pairs(count, 0, rank - 1) if rank else -9)).all()
            blocks = np.tile(pairs(count), (size, 1, 1))
            run("Reduce_scatter_block", blocks, into, op)
            assert (into == pairs(count, 0, size - 1)).all()
            counts = [2 * (count + r) for r in range(size)]
            part = np.full(counts[rank], -9)
            run("Reduce_scatter", pairs(sum(counts) // 2), part, counts, op)
            assert (part.reshape(-1, 2) == pairs(count + rank, 0, size - 1)).all()
            assert set(calls) <= {threading.get_ident()}
    assert calls or size == 1
    op.Free()


def functions_run_where_the_program_waits():
    where = []

    def add(a, b, datatype):
        where.append(threading.current_thread().name)
        np.frombuffer(b, "d")[:] += np.frombuffer(a, "d")

    op = MPI.Op.Create(add, commute=True)
    into = np.zeros((4, 5))
    requests = [world.Iallreduce(np.full(5, k + 1.0), into[k], op) for k in range(4)]
    op.Free()  # the operations in progress keep it
    assert not where

    def complete(name, function):
        thread = threading.Thread(target=function, name=name)
        thread.start()
        thread.join()
        assert where and set(where) == {name}, where
        where.clear()

    complete("one", requests[0].Wait)
    complete("two", lambda: MPI.Request.Waitall(requests[1:3], [MPI.Status(), MPI.Status()]))
    while not requests[3].Get_status():
        pass
    assert (into[3] == 4 * size).all()
    requests[3].Wait()
    assert set(where) == {"MainThread"} and len(where) == size - 1  # not once more
    assert (into == size * np.arange(1, 5)[:, None]).all()


def an_exception_of_the_function_is_the_callers():
    def fail(a, b, datatype):
        raise ArithmeticError("not today")

    op = MPI.Op.Create(fail)
    into = np.zeros(3)
    other = np.zeros(1)
    good = world.Iallreduce(np.ones(1), other)
    for call in (
        lambda: world.Allreduce(np.ones(3), into, op),
        lambda: world.Iallreduce(np.ones(3), into, op).Wait(),
        lambda: MPI.Request.Waitall([world.Iallreduce(np.ones(3), into, op), good]),
    ):
        try:
            call()
        except ArithmeticError as error:
            assert str(error) == "not today"
        else:
            raise AssertionError("no error")
    assert good == MPI.REQUEST_NULL and other[0] == size  # completed all the same
    op.Free()
    with fails(MPI.ERR_OP):
        world.Allreduce(np.ones(3), into, op)
    world.Barrier()


def blocks_of_different_sizes():
    counts = [(r * 3) % 5 for r in range(size)]
    total, begin = sum(counts), sum(counts[:rank])
    mine = np.arange(total) * 1.0 + rank
    expected = (size * np.arange(total) + sum(range(size)))[begin : begin + counts[rank]]
    into = np.full(counts[rank], -1.0)
    world.Reduce_scatter(mine, into, counts)
    assert (into == expected).all()
    into[:] = -1
    world.Ireduce_scatter(mine, into).Wait()  # the counts are found out
    assert (into == expected).all()
    world.Reduce_scatter(MPI.IN_PLACE, mine, counts)
    assert (mine[: counts[rank]] == expected).all()
    with fails(MPI.ERR_OP):
        world.Reduce_scatter(np.zeros(total), into, counts, MPI.BAND)
    for wrong in ([*counts, 1], [-1] * size, [c + 1 for c in counts]):
        try:
            world.Reduce_scatter(np.zeros(total), into, wrong)
        except ValueError:
            pass
        else:
            raise AssertionError("no error")


def derived_types():
    # the even columns of a matrix, whose type is freed while the operation is in progress
    matrix = np.arange(24.0).reshape(4, 6) + rank
    into = np.zeros((4, 6))
    columns = MPI.DOUBLE.Create_vector(12, 1, 2).Commit()
    add = MPI.Op.Create(lambda a, b, t: np.frombuffer(b, "d").__iadd__(np.frombuffer(a, "d")))
    request = world.Iallreduce([matrix, 1, columns], [into, 1, columns], add)
    columns.Free()
    request.Wait()
    assert (into[:, ::2] == 3 * np.arange(24.0).reshape(4, 6)[:, ::2] + 3).all()
    assert (into[:, 1::2] == 0).all()


# The result of each call for operands that are intervals of ranks, and the arguments after the operands.
BLOCKING = {
    "Allreduce": (lambda: (0, size - 1), ()),
    "Reduce": (lambda: (0, size - 1) if rank == 0 else None, ()),
    "Scan": (lambda: (0, rank), ()),
    "Exscan": (lambda: (0, rank - 1) if rank else None, ()),
    "Reduce_scatter_block": (lambda: (0, size - 1), ()),
}


def join(a, b, datatype):
    """Combine two intervals that follow each other."""
    (first, last), (begin, end) = a.cast("q"), b.cast("q")
    assert last + 1 == begin
    b.cast("q")[:] = memoryview(bytearray(np.array([first, end]).tobytes())).cast("q")


def ways_of_one_call_mix():
    """The ranks of a call may give arguments that the extension reads, and others: a derived type, or a subclass of list."""

    class Other(list):
        pass

    pair = MPI.LONG.Create_contiguous(2).Commit()
    op = MPI.Op.Create(join)
    for name, (expected, rest) in BLOCKING.items():
        parts = size if name == "Reduce_scatter_block" else 1
        for turn in range(2 * size):
            mine, into = np.array([rank, rank] * parts), np.full(2, -1)
            if (turn + rank) % 3 == 0:
                args = [mine, pair], [into, pair]
            elif (turn + rank) % 3 == 1:
                args = Other([mine, MPI.LONG]), Other([into, MPI.LONG])
            else:
                args = mine, [into, MPI.LONG]
            getattr(world, name)(*args, op, *rest)
            assert tuple(into) == (expected() or (-1, -1)), (name, turn, into)
            into = mine.copy()
            if name != "Reduce" or rank == 0:
                getattr(world, name)(MPI.IN_PLACE, [into, pair] if (turn + rank) % 2 else into, op, *rest)
            else:
                getattr(world, name)(mine, None, op, *rest)
            assert tuple(into[:2]) == (expected() or (rank, rank)), (name, turn, into)
    pair.Free()
    op.Free()


def what_a_function_gets_and_does():
    """It gets writable bytes and the datatype; it may keep them, call MPI, free the operation and the communicator."""
    kept = []

    def add(a, b, datatype):
        assert type(a) is MPI.buffer and type(b) is MPI.buffer and datatype == MPI.DOUBLE
        assert len(a) == len(b) == 8 * count and not a.readonly and not b.readonly and a.obj is None
        kept.append((a, np.frombuffer(b)))
        np.frombuffer(b)[:] += np.frombuffer(a)
        assert MPI.COMM_SELF.allreduce(1) == 1
        single = np.zeros(1)
        MPI.COMM_SELF.Allreduce(np.ones(1), single, op if op else MPI.SUM)
        assert single == 1
        if op and free:
            op.Free()
            comm.Free()
        return "what nobody looks at"

    for count in 1, 3, 5000:
        for free in False, True:
            op, comm, into = MPI.Op.Create(add), world.Dup(), np.zeros(count)
            comm.Allreduce(np.arange(count) + 1.0, into, op)
            assert (into == size * (np.arange(count) + 1)).all()
            if op:
                op.Free()
                comm.Free()
    assert len(kept) == 6 * (size - 1)
    noise = [bytearray(b"\xff" * 8 * n) for n in (1, 3, 5000) for _ in range(50)]
    for i in range(0, len(kept), size - 1):
        operands = kept[i : i + size - 1]
        count = len(operands[0][1])
        for k, (a, _) in enumerate(operands):
            assert (np.frombuffer(a) == np.arange(count) + 1).all(), k
        assert (operands[0][1] == size * (np.arange(count) + 1)).all()  # one memory for all
    del noise


def different_amounts_are_told():
    op = MPI.Op.Create(lambda a, b, t: None)
    for name in BLOCKING:
        comm = world.Dup()
        parts = size if name == "Reduce_scatter_block" else 1
        count = 3 if rank == 1 else 2
        try:
            getattr(comm, name)(np.ones(count * parts), np.ones(count), op)
        except MPI.Exception as error:
            assert error.Get_error_class() in (MPI.ERR_TRUNCATE, MPI.ERR_COUNT, MPI.ERR_ARG, MPI.ERR_OTHER), error
            told = True
        else:
            told = False
        assert told or (name == "Reduce" and rank != 0), name
        world.Barrier()
    into = np.zeros(2)
    for wrong in ((np.ones(1), into), (np.ones(2, "f"), into)):
        try:
            world.Allreduce(*wrong, op)
        except ValueError as error:
            assert "mismatch" in str(error), error
        else:
            raise AssertionError("no error")


def threads_reduce_at_once():
    comms = [world.Dup() for _ in range(4)]
    op = MPI.Op.Create(lambda a, b, t: np.frombuffer(b).__iadd__(np.frombuffer(a)))
    failures = []

    def reduce(comm, k):
        try:
            for i in range(200):
                into = np.zeros(k + 1)
                comm.Allreduce(np.full(k + 1, i + 1.0), into, op)
                assert (into == size * (i + 1)).all()
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=reduce, args=(comm, k)) for k, comm in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for comm in comms:
        comm.Free()
    op.Free()
