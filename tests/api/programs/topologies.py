"""The programs of test_topologies.py."""

import itertools
import resource
from itertools import chain
from unittest import mock

import numpy as np
import pytest
from rankside import fails, rank, size, world

from gormapy import MPI
from gormapy._ext import fast


def neighbors_on_a_grid():
    # periodic directions of 1 and 2, where both neighbors are one rank, too
    for dims in {(size,), (1, size), (size, 1), tuple(MPI.Compute_dims(size, 2))}:
        for periods in itertools.product([False, True], repeat=len(dims)):
            grid = world.Create_cart(dims, periods)
            around = [r for d in range(len(dims)) for r in grid.Shift(d, 1)]
            edges = len(around)
            assert grid.inoutedges == (around, around) and grid.degrees == (edges, edges)
            # what came from the one before is what it had for the one after
            expected = [-1 if r == MPI.PROC_NULL else 100 * r + (e ^ 1) for e, r in enumerate(around)]
            mine = np.arange(edges, dtype="i4") + 100 * rank
            into = np.full(edges, -1, "i4")
            grid.Neighbor_alltoall(mine, into)
            assert into.tolist() == expected, (dims, periods, into, expected)
            assert grid.neighbor_alltoall([("to", v) for v in mine.tolist()]) == [
                None if v < 0 else ("to", v) for v in expected
            ]
            counts = [1] * edges
            types = [MPI.INT] * edges
            displs = [4 * e for e in range(edges)]
            for start, args in (
                (grid.Ineighbor_alltoall, (mine, into)),
                (grid.Ineighbor_alltoallv, ([mine, counts], [into, counts])),
                (grid.Ineighbor_alltoallw, ([mine, counts, displs, types], [into, counts, displs, types])),
            ):
                start(*args).Wait()
                assert into.tolist() == expected
                into[:] = -1
            every = grid.Neighbor_alltoall_init(mine, into)
            for turn in range(3):
                mine += 1
                every.Start()
                every.Wait()
                assert into.tolist() == [v if v < 0 else v + turn + 1 for v in expected]
            every.Free()
            ranks = np.full((edges, 2), -1)
            grid.Neighbor_allgather(np.full(2, rank), ranks)
            assert ranks[:, 0].tolist() == [-1 if r == MPI.PROC_NULL else r for r in around]
            assert grid.neighbor_allgather(rank) == [None if r == MPI.PROC_NULL else r for r in around]
            grid.Free()


def neighbors_by_unusual_buffers():
    grid = world.Create_cart([size], [True])
    before, after = grid.Shift(0, 1)
    column = MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
    mine = np.arange(16.0).reshape(4, 4) + 100 * rank
    into = np.zeros((4, 4))
    sides = [mine, [1, 1], [0, 8], [column, column]], [into, [1, 1], [16, 24], [column, column]]
    every = grid.Neighbor_alltoallw_init(*sides)
    grid.Neighbor_alltoallw(*sides)
    column.Free()  # the persistent request has what it needs of it
    for _ in range(3):
        assert into[:, 2].tolist() == [100 * before + v for v in (1, 5, 9, 13)]
        assert into[:, 3].tolist() == [100 * after + v for v in (0, 4, 8, 12)]
        into[:] = 0
        every.Start()
        every.Wait()
    every.Free()
    four, got = np.arange(4.0), np.zeros(4)
    with fails(MPI.ERR_TRUNCATE):
        grid.Neighbor_alltoallv([four, [2, 2]], [got, [1, 1]])
    world.Barrier()
    with fails(MPI.ERR_TYPE):
        grid.Neighbor_alltoall([four, 1, MPI.DOUBLE.Create_contiguous(2)], got)  # not committed
    for spec in (four, [four, 2], [four, MPI.DOUBLE], [four, 2, MPI.DOUBLE]):
        got[:] = -1
        grid.Neighbor_alltoall(spec, got)
        assert got.tolist() == [2, 3, 0, 1]
    spaced = np.full((4, 2), -1.0)
    with pytest.raises(BufferError):
        grid.Neighbor_alltoall(four, spaced[:, 0])
    with pytest.raises(ValueError):
        grid.Neighbor_alltoall(four[:3], got)
    with pytest.raises(BufferError):
        grid.Ineighbor_alltoall(four, bytes(32))
    grid.Dup().Neighbor_allgather(four[:2], got)
    assert got.tolist() == [0, 1, 0, 1]
    alone = world.Create_dist_graph_adjacent([], [])
    alone.Neighbor_alltoall(four[:0], got[:0])
    alone.Neighbor_allgather(four, got[:0])
    alone.Ineighbor_allgather(four, got[:0]).Wait()


def neighbors_by_different_counts():
    """Every way to give counts and displacements gives the same: the usual ones are parsed in C, the others in Python."""
    grid = world.Create_cart([size], [True])
    before, after = grid.Shift(0, 1)
    six, got = np.arange(6.0) + 100 * rank, np.zeros(6)
    for way in (
        lambda buf, counts, displs: [buf, (counts, displs)],
        lambda buf, counts, displs: (buf, (tuple(counts), tuple(displs)), MPI.DOUBLE),
        lambda buf, counts, displs: [buf, counts, displs, MPI.DOUBLE],
        lambda buf, counts, displs: [buf, counts, displs, "d"],
        lambda buf, counts, displs: [buf, (np.array(counts), [np.int32(d) for d in displs])],
    ):
        sides = way(six, [1, 2], [0, 3]), way(got, [2, 1], [0, 4])
        for call in (grid.Neighbor_alltoallv, lambda *sides: grid.Ineighbor_alltoallv(*sides).Wait()):
            got[:] = -1
            call(*sides)
            assert got.tolist() == [100 * before + 3, 100 * before + 4, -1, -1, 100 * after, -1]
        for call in (grid.Neighbor_allgatherv, lambda *sides: grid.Ineighbor_allgatherv(*sides).Wait()):
            got[:] = -1
            call(six[:2], way(got, [2, 2], [1, 4]))
            assert got.tolist() == [-1, *(100 * before + k for k in (0, 1)), -1, *(100 * after + k for k in (0, 1))]
    got[:] = -1
    grid.Neighbor_alltoallv([six, [1, 2]], [got, [2, 1]])
    assert got.tolist() == [100 * before + 1, 100 * before + 2, 100 * after, -1, -1, -1]
    for sides, wrong in (
        (([six, ([1, 2], [0, 5])], [got, [2, 1]]), ValueError),
        (([six, ([1, 2], [-1, 0])], [got, [2, 1]]), ValueError),
        (([six, [1, 2]], [got, ([1, 1 << 62], [1 << 62, 1 << 62])]), ValueError),
        (([six, [1, 2, 3]], [got, [2, 1]]), ValueError),
        (([six, [1, 2]], [got, [2, 1 << 70]]), OverflowError),
        (([six, [1, 2]], [bytes(48), [2, 1]]), BufferError),
    ):
        with pytest.raises(wrong):
            grid.Neighbor_alltoallv(*sides)
    with fails(MPI.ERR_COUNT):
        grid.Neighbor_alltoallv([six, [1, -2]], [got, [2, 1]])


def neighbors_of_any_length():
    """Parts of any length, that follow each other or not, of types with gaps or not, by every blocking call, arrive where they are to."""
    rng = np.random.default_rng(size)  # the same at all ranks
    for _ in range(12):
        graph = rng.integers(size, size=(rng.integers(1, 4 * size), 2)).tolist()
        into = [k for k, (_, to) in enumerate(graph) if to == rank]
        out = [k for k, (origin, _) in enumerate(graph) if origin == rank]
        comm = world.Create_dist_graph_adjacent([graph[k][0] for k in into], [graph[k][1] for k in out])
        for n in 0, 1, 7, 600, 30_000:
            expected = [1000.0 * k + n for k in into]
            sent = np.repeat([1000.0 * k + n for k in out], n)
            got = np.full(n * len(into), -1.0)
            comm.Neighbor_alltoall(sent, got)
            assert got.tolist() == np.repeat(expected, n).tolist(), n
            got[:] = -1
            comm.Neighbor_allgather(np.full(n, rank + 0.5), got)
            assert got.tolist() == np.repeat([graph[k][0] + 0.5 for k in into], n).tolist()
            # an edge has a length of its own, and some ranks send items with gaps
            lengths = [(3 * k) % 5 * n for k in range(len(graph))]
            sent = np.repeat([1000.0 * k + n for k in out], [lengths[k] for k in out])
            got = np.full(sum(lengths[k] for k in into), -1.0)
            counts, room = [lengths[k] for k in out], [lengths[k] for k in into]
            if rank % 2:
                spaced = np.zeros(2 * len(sent))
                spaced[::2] = sent
                item = MPI.DOUBLE.Create_resized(0, 16).Commit()
                comm.Neighbor_alltoallv([spaced, counts, item], [got, room])
                item.Free()
            else:
                comm.Neighbor_alltoallv([sent, counts], [got, room])
            assert got.tolist() == np.repeat(expected, room).tolist(), (n, graph)
        comm.Free()


def a_part_that_is_too_long_is_the_error_of_its_receiver():
    ring = world.Create_cart([size], [True])
    for n in 1, 1000, 30_000:
        for name in "Neighbor_allgather", "Neighbor_alltoall":
            call = getattr(ring, name)
            sent = np.ones(n if name == "Neighbor_allgather" else 2 * n)
            got = np.zeros(2 * (n - 1) if rank == 0 else 2 * n)
            if rank == 0:
                with fails(MPI.ERR_TRUNCATE):
                    call(sent, got)
            else:
                call(sent, got)
            assert got.all()
            got = np.zeros(2 * n)
            call(sent, got)
            assert got.all()
    ring.Free()


def another_call_is_told():
    """Ranks that make different calls among neighbors, or one of them another collective, hear of it."""
    for other in "Neighbor_allgather", "Allgather":
        ring = world.Create_cart([size], [True])
        try:
            if rank == 1:
                getattr(ring, other)(np.ones(1), np.zeros(2 if other[0] == "N" else size))
            else:
                ring.Neighbor_alltoall(np.ones(2), np.zeros(2))
        except MPI.Exception as error:
            said = str(error)
        else:
            said = ""
        heard = world.allgather(said)
        assert "Neighbor_alltoall" in heard[1] and other in heard[0] + heard[size - 1], heard


def edges_are_told_once():
    """The core is told the edges of a communicator at its first call, also by calls that Python parses."""
    told = []

    def tell(comm, *edges, tell=fast.set_neighbors):
        told.append(comm)
        tell(comm, *edges)

    four, got = np.arange(4.0), np.zeros(4)
    sides = [four, [1, 1], [0, 8], [MPI.DOUBLE] * 2], [got, [1, 1], [0, 8], [MPI.DOUBLE] * 2]
    with mock.patch.object(fast, "set_neighbors", tell):
        grid = world.Create_cart([size], [True])
        for _ in range(3):
            grid.Neighbor_alltoallw(*sides)
            grid.Neighbor_allgather([four, 2, MPI.DOUBLE], [got, 2, MPI.DOUBLE])
            grid.Neighbor_alltoall(four, got)
        assert told == [grid]
        twin = grid.Dup()
        twin.Neighbor_alltoallw(*sides)
        assert told == [grid, twin]


def graphs():
    index, edges = [], []
    for r in range(size):  # a ring, and everybody with rank 0
        edges += [(r - 1) % size, (r + 1) % size, 0] if r else [size - 1, 1 % size, *range(1, size)]
        index.append(len(edges))
    graph = world.Create_graph(index, edges)
    assert type(graph) is MPI.Graphcomm and graph.topology == MPI.GRAPH
    assert graph.topo == (index, edges) and graph.dims == (size, len(edges))
    near = edges[index[rank - 1] if rank else 0 : index[rank]]
    assert graph.neighbors == graph.Get_neighbors(rank) == near and graph.nneighbors == len(near)
    assert graph.neighbor_allgather(rank) == near
    into = np.full(len(near), -1)
    graph.Neighbor_allgather(np.array([rank]), into)
    assert into.tolist() == near
    again = graph.Dup()
    assert type(again) is MPI.Graphcomm and again.neighbors == near
    again.Free()
    if size > 1:
        part = world.Create_graph([1] * (size - 1), [0])
        assert (part == MPI.COMM_NULL) == (rank == size - 1)
    for wrong in (([2, 1], [0, 0]), ([1], [5]), ([1] * (size + 1), [0])):
        with fails(MPI.ERR_ARG):
            world.Create_graph(*wrong)


def distributed_graphs():
    # an edge to every higher rank, two to oneself
    destinations = [rank, *range(rank + 1, size), rank]
    sources = [rank, rank, *range(rank)]
    adjacent = world.Create_dist_graph_adjacent(sources, destinations)
    assert type(adjacent) is MPI.Distgraphcomm and adjacent.topology == MPI.DIST_GRAPH
    assert adjacent.Get_dist_neighbors() == (sources, destinations, None)
    assert adjacent.Get_dist_neighbors_count() == (rank + 2, size - rank + 1, False)
    got = adjacent.neighbor_alltoall([(rank, k) for k in range(len(destinations))])
    assert got[:2] == [(rank, 0), (rank, len(destinations) - 1)]  # in the order of the edges
    assert got[2:] == [(r, rank - r) for r in range(rank)]
    sent = np.arange(len(destinations)) + 10 * rank
    into = np.full(rank + 2, -1)
    adjacent.Neighbor_alltoallv([sent, [1] * len(destinations)], [into, [1] * (rank + 2)])
    assert into.tolist() == [10 * r + k for r, k in got]
    # the same graph, with all edges from rank 0
    if rank == 0:
        ends = [[*list(range(r, size)), r] for r in range(size)]
        arguments = (range(size), [len(e) for e in ends], list(chain.from_iterable(ends)), [9] * sum(map(len, ends)))
    else:
        arguments = ([], [], [], [])
    graph = world.Create_dist_graph(*arguments)
    found, to, weights = graph.Get_dist_neighbors()
    assert sorted(found) == sorted(sources) and to == [*range(rank, size), rank]
    assert weights == ([9] * len(found), [9] * len(to))
    assert sorted(graph.neighbor_allgather(rank)) == sorted(sources)
    with fails(MPI.ERR_RANK):
        world.Create_dist_graph_adjacent([size], [])


def twins_of_a_plain_object():
    """A duplicate has the class of the object that was asked for it, and the communicator's topology."""
    cart = world.Create_cart([world.size])
    for comm in (cart, MPI.Comm(cart), MPI.Comm(world)):
        dup = comm.Dup()
        idup, request = comm.Idup()
        request.Wait()
        for twin in (dup, idup):
            assert type(twin) is type(comm) and twin.topology == comm.topology
            assert twin.allgather(world.rank) == list(range(world.size))
            twin.Free()
    cart.Free()


def ring_of_many_edges(edges):
    """Return a graph in which a rank has so many edges to the next one."""
    return world.Create_dist_graph_adjacent([(rank - 1) % size] * edges, [(rank + 1) % size] * edges)


def many_edges_take_little_memory():
    """A table that has no room in a slot is read once, and memory that is staged is used again."""
    before = (rank - 1) % size
    edges = 3000
    graph = ring_of_many_edges(edges)
    mine, into = np.arange(edges) + rank, np.zeros(edges, int)
    graph.Neighbor_alltoall(mine, into)
    assert (into == np.arange(edges) + before).all()
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert first < 250 << 10, first
    graph.Free()

    edges, length = 40, 200_000  # each of the edges is short enough for stages
    graph = ring_of_many_edges(edges)
    mine, into = np.full(edges * length, rank, "u1"), np.zeros(edges * length, "u1")
    for _ in range(2):
        graph.Neighbor_alltoall(mine, into)
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        graph.Neighbor_alltoall(mine, into)
    assert (into == before).all()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
    assert grown < 64 << 10, grown
    graph.Free()
