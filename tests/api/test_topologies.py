"""Graphs of ranks, and collective operations among neighbors."""

from support.programs import beside

program = beside(__file__)


def test_neighbors_on_a_grid(ranks, n):
    ranks(
        n,
        program.neighbors_on_a_grid,
        timeout=60,
    )


def test_neighbors_by_unusual_buffers(ranks, n):
    ranks(n, program.neighbors_by_unusual_buffers)


def test_neighbors_by_different_counts(ranks, n):
    ranks(n, program.neighbors_by_different_counts)


def test_edges_are_told_once(ranks, n):
    ranks(n, program.edges_are_told_once)


def test_graphs(ranks, n):
    ranks(
        n,
        program.graphs,
    )


def test_distributed_graphs(ranks, n):
    ranks(
        n,
        program.distributed_graphs,
    )


def test_twins_of_a_plain_object(ranks, n):
    ranks(n, program.twins_of_a_plain_object)
