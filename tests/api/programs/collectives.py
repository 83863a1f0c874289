"""The programs of test_collectives.py."""

import functools
import math

import numpy as np
from badmemory import NETWORK
from rankside import fails, one_node, rank, size, world

from gormapy import MPI


def different_amounts():
    counts = [r % 3 for r in range(size)]
    displs = [4 * r for r in range(size)]
    mine = np.full(counts[rank], rank, "f8")

    def check(into):
        for r in range(size):
            part = into[4 * r : 4 * r + 4]
            assert (part[: counts[r]] == r).all() and (part[counts[r] :] == -1).all()

    for root in {0, size - 1}:
        into = np.full(4 * size, -1.0)
        world.Gatherv(mine, [into, (counts, displs), MPI.DOUBLE] if rank == root else None, root)
        if rank == root:
            check(into)
        back = np.zeros(counts[rank])
        world.Scatterv([into, counts, displs, "d"] if rank == root else None, back, root)
        assert (back == rank).all()
    into = np.full(4 * size, -1.0)
    world.Allgatherv(mine, [into, (counts, displs)])
    check(into)
    packed = np.zeros(sum(counts))
    world.Allgatherv(mine, [packed, counts])
    assert packed.tolist() == [r for r in range(size) for _ in range(counts[r])]
    out = np.repeat(np.arange(size), counts).astype("f8") + 100 * rank
    into = np.zeros(counts[rank] * size)
    world.Alltoallv([out, counts], [into, counts[rank]])
    assert into.tolist() == [100 * r + rank for r in range(size) for _ in range(counts[rank])]


def amounts_of_all_lengths():
    """Parts of lengths that travel in different ways, in all layouts: the result is that of the nonblocking call."""
    rng = np.random.default_rng(11)  # the same on all ranks
    spaced = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()  # 2 of 3 elements
    lengths = [0, 1, 2, 3, 100, 508, 511, 512, 513, 3000, 8192, 8193, 20_000, 140_000]
    for turn in range(60):
        amounts(turn, rng, lengths, spaced)
    spaced.Free()


def amounts(turn, rng, lengths, spaced):
    """Make each call once, with and without messages."""
    few = rng.choice(lengths[: 4 if turn % 3 == 0 else len(lengths)], (size, size)) // (size if turn % 2 else 1)
    gap, root, in_place = int(rng.integers(3)), int(rng.integers(size)), bool(rng.integers(2))
    as_given = [lambda x: list(map(int, x)), np.array, lambda x: np.array(x, "i")][turn % 3]

    def side(counts):
        """Return memory for parts, their counts, and their displacements."""
        displs = np.concatenate([[0], np.cumsum(counts + gap)[:-1]])
        return np.full(int(sum(counts)) + gap * size, -1.0), as_given(counts), as_given(displs)

    def filled(counts, displs, memory):
        for r in range(size):
            memory[displs[r] : displs[r] + counts[r]] = 1000 * rank + r + np.arange(counts[r]) / 1e7
        return memory

    # each call, with what it changes, also by messages
    def both(name, given, changes):
        arrays = []
        for way in name, "I" + name.lower():
            args, result = given()
            request = getattr(world, way)(*args)
            if request is not None:
                request.Wait()
            arrays.append(result)
        if changes:
            assert (arrays[0] == arrays[1]).all(), (turn, name, few.tolist(), gap, root)

    into, got = few[0], few[:, rank]

    def gather(rooted):
        memory, counts, displs = side(into)
        mine = np.arange(into[rank]) + 1000.0 * rank
        if in_place and (not rooted or rank == root):
            memory[displs[rank] : displs[rank] + counts[rank]] = mine
            mine = MPI.IN_PLACE
        elif turn % 4 == 1:
            mine = [np.repeat(mine, 3), len(mine) // 2, spaced] if len(mine) % 2 == 0 else mine
        there = [memory, counts, displs, MPI.DOUBLE]
        return ((mine, there if rank == root else None, root) if rooted else (mine, there)), memory

    def scatter():
        memory, counts, displs = side(into)
        mine = np.full(into[rank] + 1, -2.0)
        there = [filled(counts, displs, memory), (counts, displs), MPI.DOUBLE] if rank == root else None
        to = MPI.IN_PLACE if in_place and rank == root else [mine, int(into[rank]), MPI.DOUBLE]
        return (there, to, root), mine

    def exchange():
        memory, counts, displs = side(few[rank])
        where, incoming, places = side(got)
        return ([filled(counts, displs, memory), (counts, displs)], [where, (incoming, places)]), where

    def exchange_in_place():
        memory, counts, displs = side(few[rank] * 0 + few[0, 0])
        return (MPI.IN_PLACE, [filled(counts, displs, memory), counts, displs, MPI.DOUBLE]), memory

    both("Gatherv", lambda: gather(True), rank == root)
    both("Allgatherv", lambda: gather(False), True)
    both("Scatterv", scatter, True)
    both("Alltoallv", exchange, True)
    both("Alltoallv", exchange_in_place, True)


def parts_that_are_too_long():
    """A rank that gets more than it has room for gets an error, and no memory beyond the room is written.

    On one node nobody else gets an error; on several, others may, whose parts that rank passes on, and they may
    get one in its place.
    """
    for _ in range(8):  # as long as a communicator is new, the rooted ones send messages, whose errors say it otherwise
        world.Bcast(np.zeros(1))
    for room in 1, 4, 1000, 9000:
        for name in "Gatherv", "Scatterv", "Allgatherv", "Alltoallv":
            root, guilty = 0, size - 1  # guilty sends too much, or has too little room
            sent = [room + (name in ("Gatherv", "Allgatherv") and r == guilty) for r in range(size)]
            mine = np.ones(size * (room + 1))
            into = np.full(size * (room + 1), -1.0)
            displs = [r * (room + 1) for r in range(size)]
            everyone = [into, [room] * size, displs, MPI.DOUBLE]
            if name == "Gatherv":
                args = [mine, sent[rank], MPI.DOUBLE], everyone, root
            elif name == "Allgatherv":
                args = [mine, sent[rank], MPI.DOUBLE], everyone
            elif name == "Scatterv":
                args = (
                    [mine, [room + (r == guilty) for r in range(size)], displs, MPI.DOUBLE],
                    [into, room, MPI.DOUBLE],
                    root,
                )
            else:
                args = (
                    [mine, [room + (r == guilty and rank != guilty) for r in range(size)], displs, MPI.DOUBLE],
                    everyone,
                )
            failing = {
                "Gatherv": rank == root,
                "Allgatherv": True,
                "Scatterv": rank == guilty,
                "Alltoallv": rank == guilty,
            }
            error = None
            try:
                getattr(world, name)(*args)
            except MPI.Exception as caught:
                error = caught
            errors = world.allgather(error and (error.Get_error_class(), str(error)))
            expected = size > 1 or name != "Alltoallv"
            if one_node:
                assert (error is not None) == (failing[name] and expected), (name, error)
            assert any(errors) == expected, (name, room)
            for failed in filter(None, errors):
                if failed[0] == MPI.ERR_TRUNCATE:
                    words = (
                        f"{8 * room + 8} bytes" if NETWORK else f"{8 * room + 8} bytes for a part of {8 * room} bytes"
                    )
                    assert words in failed[1], failed
                else:
                    assert not one_node and "has given it up" in failed[1], failed
            assert not expected or any(failed and failed[0] == MPI.ERR_TRUNCATE for failed in errors), errors
            assert (into.reshape(size, room + 1)[:, room] == -1).all() or (name == "Scatterv" and into[room] == -1), (
                name
            )
            world.Barrier()


def long_reductions():
    """Reductions that no board has room for, of all lengths and layouts, whose operands must stay as they are."""
    rng = np.random.default_rng(7)
    for count in (2049, 4097, 8191, 16385, 40_000, 131_072, 262_147, 1_000_003):
        everyone = rng.integers(0, 1 << 40, (size, count))
        mine, total = everyone[rank].copy(), everyone.sum(0)
        for root in range(size):
            into = np.zeros(count, "i8")
            world.Reduce(mine, into if rank == root else None, root=root)
            assert rank != root or (into == total).all()
            into = mine.copy()
            world.Reduce(MPI.IN_PLACE if rank == root else into, into if rank == root else None, root=root)
            assert (into == (total if rank == root else everyone[rank])).all()
            every = np.zeros(2 * count, "i8")
            other = MPI.INT64_T.Create_vector(count, 1, 2).Commit()
            every[::2] = mine
            into = np.zeros(2 * count, "i8")
            world.Reduce([every, 1, other], [into, 1, other] if rank == root else None, root=root)
            assert rank != root or (into[::2] == total).all()
            assert not into[1::2].any() and not every[1::2].any()
            other.Free()
        assert (mine == everyone[rank]).all()
        part = count // size
        into = np.zeros(part, "i8")
        world.Reduce_scatter_block(mine[: part * size], into)
        assert (into == total[part * rank :][:part]).all()
        into = mine[: part * size].copy()
        world.Reduce_scatter_block(MPI.IN_PLACE, into)
        assert (into[:part] == total[part * rank :][:part]).all()
        assert (mine == everyone[rank]).all()
        # elements of 16 bytes with a gap: the lowest value, and who has it
        pairs = np.zeros(
            count, np.dtype({"names": ["v", "i"], "formats": ["f8", "i4"], "offsets": [0, 8], "itemsize": 16})
        )
        pairs["v"], pairs["i"] = everyone[rank], rank
        best = np.zeros_like(pairs)
        world.Reduce([pairs, count, MPI.DOUBLE_INT], [best, count, MPI.DOUBLE_INT] if rank == 0 else None, MPI.MINLOC)
        if rank == 0:
            assert (best["v"] == everyone.min(0)).all() and (best["i"] == everyone.argmin(0)).all()


def reductions():
    def operand(r, dtype, count):
        return ((np.arange(count) * 7 + 3 * r) % 5 + 1).astype(dtype)

    field = [(MPI.SUM, np.add), (MPI.PROD, np.multiply)]
    arithmetic = [*field, (MPI.MAX, np.maximum), (MPI.MIN, np.minimum)]
    logic = [(MPI.LAND, np.logical_and), (MPI.LOR, np.logical_or), (MPI.LXOR, np.logical_xor)]
    bits = [(MPI.BAND, np.bitwise_and), (MPI.BOR, np.bitwise_or), (MPI.BXOR, np.bitwise_xor)]
    table = [
        ("i1", arithmetic + logic + bits),
        ("u2", arithmetic + bits),
        ("i4", arithmetic + logic + bits),
        ("i8", arithmetic + logic + bits),
        ("u8", arithmetic),
        ("f4", arithmetic),
        ("f8", arithmetic),
        ("c16", field),
        ("?", logic),
        ("g", arithmetic),
    ]
    for dtype, ops in table:
        for op, function in ops:
            for count in (0, 1, 100, 5000):
                operands = [operand(r, dtype, count) for r in range(size)]
                expected = functools.reduce(function, operands).astype(dtype)
                mine = operands[rank]
                into = np.zeros_like(mine)
                world.Allreduce(mine, into, op)
                assert np.allclose(into, expected), (dtype, op, count)
                root = size - 1
                into = np.zeros_like(mine)
                world.Reduce(mine, into if rank == root else None, op, root)
                assert rank != root or np.allclose(into, expected)
                into = mine.copy()
                world.Allreduce(MPI.IN_PLACE, into, op)
                assert np.allclose(into, expected)
                world.Scan(mine, into, op)
                assert np.allclose(into, functools.reduce(function, operands[: rank + 1]).astype(dtype))
    pairs = np.zeros((3, 16), "u1")
    layout = {"names": ["v", "i"], "formats": ["f8", "i4"], "offsets": [0, 8], "itemsize": 16}
    view = pairs.reshape(-1).view(np.dtype(layout))
    view["v"], view["i"] = [rank, -rank, 5], rank
    best = np.zeros_like(pairs)
    world.Allreduce([pairs, 3, MPI.DOUBLE_INT], [best, 3, MPI.DOUBLE_INT], MPI.MAXLOC)
    best = best.reshape(-1).view(view.dtype)
    assert best["v"].tolist() == [size - 1, 0, 5] and best["i"].tolist() == [size - 1, 0, 0]
    blocks = np.arange(3 * size) + rank
    into = np.zeros(3, int)
    world.Reduce_scatter_block(blocks, into)
    assert (into == size * (np.arange(3) + 3 * rank) + sum(range(size))).all()
    counts = [r + 1 for r in range(size)]
    blocks = np.arange(sum(counts)) * 1.0
    into = np.zeros(rank + 1)
    world.Reduce_scatter(blocks, into, counts)
    begin = sum(counts[:rank])
    assert (into == size * np.arange(begin, begin + rank + 1)).all()
    before = np.full(2, -5)
    world.Exscan(np.full(2, rank + 1), before)
    assert (before == (sum(range(1, rank + 1)) if rank else -5)).all()

    # a function of the program, which does not commute: first operand and last one
    def ends(a, b, datatype):
        first, last = np.frombuffer(a, "i8").reshape(-1, 2), np.frombuffer(b, "i8").reshape(-1, 2)
        last[:, 0] = first[:, 0]

    op = MPI.Op.Create(ends, commute=False)
    into = np.zeros((2, 2), int)
    world.Allreduce(np.full((2, 2), rank), into, op)
    assert into.tolist() == [[0, size - 1]] * 2
    op.Free()


def nonblocking():
    into = [np.zeros(100) for _ in range(4)]
    rows = np.zeros((size, 100))
    bcast = np.full(10, 1.0 if rank == 0 else 0.0)
    mine = np.full(100, rank + 1.0)
    requests = [
        world.Iallreduce(mine, into[0]),
        world.Ibarrier(),
        world.Iallgather(mine, rows),
        world.Ibcast(bcast),
        world.Iallreduce(mine, into[1], MPI.MAX),
    ]
    MPI.Request.Waitall(requests)
    assert (into[0] == size * (size + 1) / 2).all() and (into[1] == size).all() and bcast.all()
    assert (rows == np.arange(1, size + 1)[:, None]).all()


def objects():
    for root in {0, size // 2, size - 1}:
        thing = {"list": [1, 2.5, "x" * 70_000], "root": root} if rank == root else None
        assert world.bcast(thing, root)["root"] == root
        got = world.gather((rank, "y" * rank), root)
        assert got == ([(r, "y" * r) for r in range(size)] if rank == root else None)
        parts = [{"to": r, "data": b"z" * r * 1000} for r in range(size)] if rank == root else None
        assert world.scatter(parts, root) == {"to": rank, "data": b"z" * rank * 1000}
        assert world.reduce([rank], root=root) == (list(range(size)) if rank == root else None)
    assert world.allgather({rank}) == [{r} for r in range(size)]
    assert world.alltoall([(rank, r) for r in range(size)]) == [(r, rank) for r in range(size)]
    assert world.allreduce(rank + 1, MPI.PROD) == math.factorial(size)
    assert world.allreduce(str(rank)) == "".join(map(str, range(size)))  # in rank order

    def pair(a, b):
        return a, b

    assert world.allreduce(rank, pair) == functools.reduce(pair, range(size))
    assert world.allreduce((abs(rank - 1), rank), MPI.MINLOC) == ((0, 1) if size > 1 else (1, 0))
    assert world.scan(rank) == sum(range(rank + 1))
    assert world.exscan(rank) == (sum(range(rank)) if rank else None)
    assert (world.allreduce(np.arange(3) + rank, MPI.MAX if size == 1 else MPI.SUM) >= 0).all()
    world.barrier()


def errors_before_anything_moves():
    a = np.zeros(4)
    with fails(MPI.ERR_ROOT):
        world.Bcast(a, root=5)
    with fails(MPI.ERR_OP):
        world.Allreduce(np.zeros(2), np.zeros(2), MPI.BAND)
    for call in (
        lambda: world.Allreduce(a, np.zeros(4, "i4")),
        lambda: world.Allreduce(a, [np.zeros(4), 3, MPI.DOUBLE]),
        lambda: world.Allgather(a, np.zeros(7)),
        lambda: world.scatter([1, 2, 3], root=rank),
    ):
        try:
            call()
        except (ValueError, MPI.Exception) as error:
            assert isinstance(error, ValueError) or error.Get_error_class() in (MPI.ERR_TYPE, MPI.ERR_COUNT), error
        else:
            raise AssertionError("no error")
    world.Barrier()


def buffers():
    world.Barrier()
    for comm in (world, MPI.COMM_SELF, world.Dup()):
        rank, size = comm.rank, comm.size
        for count in (0, 1, 5, 3000, 100_000):
            for root in {0, size - 1}:
                data = np.arange(count, dtype="i8") * 3 if rank == root else np.zeros(count, "i8")
                comm.Bcast(data, root)
                assert (data == np.arange(count) * 3).all()
                mine = np.arange(count) + 1000 * rank
                rows = np.zeros((size, count), int) if rank == root else None
                comm.Gather(mine, rows, root)
                if rank == root:
                    assert (rows == np.arange(count) + 1000 * np.arange(size)[:, None]).all()
                    rows += 1
                back = np.zeros(count, int)
                comm.Scatter(rows, [back, MPI.LONG], root=root)
                assert (back == mine + 1).all()
                if rank == root:
                    rows[root] = -1
                comm.Scatter(rows, MPI.IN_PLACE if rank == root else back, root)
                if rank == root:
                    rows[root] = mine
                    comm.Gather(MPI.IN_PLACE, rows, root)
                    assert (rows[root] == mine).all()
                else:
                    comm.Gather(mine, None, root)
            rows = np.zeros((size, count), int)
            comm.Allgather(mine, rows)
            assert (rows == np.arange(count) + 1000 * np.arange(size)[:, None]).all()
            rows[:] = -1
            rows[rank] = mine
            comm.Allgather(MPI.IN_PLACE, rows)
            assert (rows == np.arange(count) + 1000 * np.arange(size)[:, None]).all()
            out = np.array([[100 * rank + r] * count for r in range(size)])
            into = np.zeros_like(out)
            comm.Alltoall(out, into)
            expected = np.array([[100 * r + rank] * count for r in range(size)])
            assert (into == expected).all()
            comm.Alltoall(MPI.IN_PLACE, out)
            assert (out == expected).all()
