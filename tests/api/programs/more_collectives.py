"""The programs of test_more_collectives.py."""

import numpy as np
from rankside import fails, rank, size, world

from gormapy import MPI


def a_type_for_each_part():
    # the transposition of a matrix that lies in blocks of rows: each rank gets a block of columns as rows
    k = 3
    full = np.arange((k * size) ** 2, dtype="d").reshape(k * size, k * size)
    mine = np.ascontiguousarray(full[rank * k : rank * k + k])
    columns = MPI.DOUBLE.Create_vector(k, 1, k * size).Create_resized(0, 8).Commit()
    into = np.zeros_like(mine)
    for way in "blocking", "nonblocking", "persistent":
        into[:] = 0
        send = [mine, ([k] * size, [8 * k * r for r in range(size)]), [columns] * size]
        rows = MPI.DOUBLE.Create_vector(k, k, k * size).Commit()
        recv = [into, [1] * size, [8 * k * r for r in range(size)], [rows] * size]
        if way == "blocking":
            world.Alltoallw(send, recv)
        elif way == "nonblocking":
            request = world.Ialltoallw(send, recv)
            rows.Free()
            request.Wait()
        else:
            request = world.Alltoallw_init(send, recv)
            for _step in range(3):
                into[:] = 0
                request.Start()
                request.Wait()
            request.Free()
        expected = full.T[rank * k : rank * k + k]
        assert (into == expected).all(), (into, expected)
    values = np.arange(size, dtype="i4") + 100 * rank
    types = [MPI.INT] * size
    world.Alltoallw(MPI.IN_PLACE, [values, [0] * size, [0] * size, types])  # nothing
    world.Alltoallw(MPI.IN_PLACE, [values, [1] * size, [4 * r for r in range(size)], types])
    assert values.tolist() == [100 * r + rank for r in range(size)]
    for wrong in ([values], [values, [MPI.INT] * (size + 1)], [MPI.BOTTOM, [MPI.INT] * size]):
        try:
            world.Alltoallw(wrong, [values, types])
        except ValueError:
            pass
        else:
            raise AssertionError("no error")


def persistent():
    root = size - 1
    data, one, rows, parts = np.zeros(4), np.zeros(2), np.zeros((size, 2)), np.zeros((size, 2))
    total = np.zeros(2)
    counts = [2] * size
    requests = [
        world.Barrier_init(),
        world.Bcast_init(data, root),
        world.Gather_init(one, rows, root),
        world.Scatter_init(parts, total, root),
        world.Allgather_init(one, parts),
        world.Allgatherv_init(one, [rows, counts]),
        world.Alltoall_init(parts, rows),
        world.Alltoallv_init([parts, counts], [rows, counts]),
        world.Reduce_init(one, total, MPI.SUM, root),
        world.Allreduce_init(one, total),
        world.Reduce_scatter_block_init(parts, total),
        world.Reduce_scatter_init(parts, total, counts),
        world.Scan_init(one, total),
        world.Exscan_init(one, total),
        world.Gatherv_init(one, [rows, counts], root),
        world.Scatterv_init([parts, counts], total, root),
    ]
    barrier, bcast, gather, scatter, allgather, allgatherv, alltoall, alltoallv, reduce, *rest = requests
    allreduce, block, blocks, scan, exscan, gatherv, scatterv = rest
    r = np.arange(size)

    def run(request):
        assert isinstance(request, MPI.Prequest)
        request.Start()
        request.Wait()
        assert request != MPI.REQUEST_NULL

    for step in range(3):
        run(barrier)
        data[:] = step if rank == root else -1
        run(bcast)
        assert (data == step).all()
        one[:] = rank + step
        for request in gather, gatherv:
            rows[:] = -1
            run(request)
            assert rank != root or (rows == (r + step)[:, None]).all()
        run(allgatherv)
        assert (rows == (r + step)[:, None]).all()
        run(allgather)
        assert (parts == rows).all()
        for request in scatter, scatterv:
            run(request)
            assert (total == rank + step).all()
        parts[:] = (10 * rank + r)[:, None] + step
        for request in alltoall, alltoallv:
            rows[:] = -1
            run(request)
            assert (rows == (10 * r + rank)[:, None] + step).all()
        total[:] = -1
        run(reduce)
        assert rank != root or (total == sum(r + step)).all()
        run(allreduce)
        assert (total == sum(r + step)).all()
        for request in block, blocks:
            run(request)
            assert (total == sum(10 * r + rank + step)).all()
        run(scan)
        assert (total == sum((r + step)[: rank + 1])).all()
        total[:] = -1
        run(exscan)
        assert (total == (sum((r + step)[:rank]) if rank else -1)).all()
    MPI.Prequest.Startall([barrier, allreduce])
    MPI.Request.Waitall([barrier, allreduce])
    with fails(MPI.ERR_REQUEST):
        allreduce.Start()
        allreduce.Start()
    allreduce.Wait()
    for request in requests:
        request.Free()
        assert request == MPI.REQUEST_NULL


def nonblocking():
    root = size // 2
    r = np.arange(size)
    for count in (1, 30_000):
        mine = np.full(count, rank)
        rows, into, total = np.full((size, count), -1), np.full(count, -1), np.full(count, -1)
        parts = np.full((size, count), r[:, None]) if rank == root else None
        MPI.Request.Waitall(
            [
                world.Igather(mine, rows if rank == root else None, root),
                world.Iscatter(parts, into, root),
                world.Ireduce(mine, total if rank == root else None, root=root),
                world.Ibarrier(),
            ]
        )
        assert rank != root or ((rows == r[:, None]).all() and (total == r.sum()).all())
        assert (into == rank).all()
        counts = [count] * size
        MPI.Request.Waitall(
            [
                world.Igatherv(mine, [rows, counts] if rank == root else None, root),
                world.Iscatterv([parts, counts] if rank == root else None, into, root),
            ]
        )
        blocks = np.full((size, count), rank)
        requests = [
            world.Iallgatherv(mine, [rows, counts]),
            world.Ireduce_scatter_block(blocks, into),
            world.Iscan(mine, total),
        ]
        MPI.Request.Waitall(requests)
        assert (rows == r[:, None]).all() and (into == r.sum()).all() and (total == r[: rank + 1].sum()).all()
        world.Ialltoall(blocks, rows).Wait()
        assert (rows == r[:, None]).all()
        rows[:] = -1
        world.Ialltoallv([blocks, counts], [rows, counts]).Wait()
        assert (rows == r[:, None]).all()
        before = np.full(count, -7)
        world.Iexscan(mine, before).Wait()
        assert (before == (r[:rank].sum() if rank else -7)).all()


def nonblocking_ones_go_on_in_other_calls():
    other = world.Dup()
    one, total = np.ones(1), np.zeros(1)
    elsewhere = [
        lambda: other.Allreduce(one, total),
        other.Barrier,
        lambda: other.Sendrecv(one, (rank + 1) % size, 1, total, (rank - 1) % size, 1),
    ]
    for call in elsewhere:
        for count in (10, 100_000):
            for root in range(size):
                data = np.full(count, rank)
                request = world.Ibcast(data, root)
                if (rank - root) % size == size - 1:  # waits for the broadcast first, the others for it
                    request.Wait()
                    call()
                else:
                    call()
                    request.Wait()
                assert (data == root).all()
        new, request = world.Idup()
        if rank == size - 1:
            request.Wait()
            call()
        else:
            call()
            request.Wait()
        assert new.allreduce(1) == size
        new.Free()


def parts_that_are_too_long_for_their_own_rank():
    """A rank that sends itself more than it has room for gets an error, and no memory beyond the room is written."""
    column = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
    send, into = np.ones(3 * size), np.empty(2 * size)
    one, two, pairs = [1] * size, [1 + (r == rank) for r in range(size)], [2 * r for r in range(size)]
    calls = [lambda: world.Alltoallv([send, two, pairs, MPI.DOUBLE], [into, one, pairs, MPI.DOUBLE])]
    for root in range(size):
        for own in [send, 2, MPI.DOUBLE], [send, 1, column]:
            mine = own if rank == root else [send, 1, MPI.DOUBLE]
            calls.append(lambda mine=mine, root=root: world.Gatherv(mine, [into, one, pairs, MPI.DOUBLE], root))
        calls.append(lambda root=root: world.Scatterv([send, two, pairs, MPI.DOUBLE], [into, 1, MPI.DOUBLE], root))
    for i, call in enumerate(calls):
        into[:] = -1
        if i == 0 or rank == (i - 1) // 3:
            with fails(MPI.ERR_TRUNCATE, "this rank sends itself 16 bytes for a part of 8 bytes"):
                call()
        else:
            call()
        assert (into[1::2] == -1).all(), (i, into)
    column.Free()


def places_beyond_the_buffer():
    """Counts and displacements for which the buffer has no room are refused, on every rank, before anything moves."""
    one, own = np.zeros(1), np.zeros(size)
    places = list(range(size))
    beyond, before, many = [*places[:-1], size], [-1, *places[1:]], [1] * (size - 1) + [2]
    for counts, displs in ([1] * size, beyond), ([1] * size, before), (many, places):
        wrong = [own, counts, displs, MPI.DOUBLE]
        for call in (
            lambda wrong=wrong: world.Gatherv(one, wrong, rank),
            lambda wrong=wrong: world.Scatterv(wrong, one, rank),
            lambda wrong=wrong: world.Allgatherv(one, wrong),
            lambda wrong=wrong: world.Alltoallv([own, [1] * size, places, MPI.DOUBLE], wrong),
            lambda wrong=wrong: world.Alltoallv(wrong, [own, [1] * size, places, MPI.DOUBLE]),
            lambda wrong=wrong: world.Ialltoallv(wrong, wrong),
            lambda counts=counts, displs=displs: world.Alltoallw(
                [own, counts, [8 * displ for displ in displs], [MPI.DOUBLE] * size],
                [own, [1] * size, [8 * place for place in places], [MPI.DOUBLE] * size],
            ),
        ):
            try:
                call()
            except ValueError as error:
                assert "the buffer has" in str(error), error
            else:
                raise AssertionError("no error")
    got = np.zeros(size)
    world.Allgatherv(np.full(1, float(rank)), [got, [1] * size, places[::-1], MPI.DOUBLE])
    assert got.tolist() == [float(r) for r in places[::-1]]
