"""Graphs of ranks, and collective operations among neighbors."""

import pytest
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


def test_neighbors_of_any_length(ranks, n):
    ranks(n, program.neighbors_of_any_length)


def test_neighbors_of_any_length_without_copies_by_the_kernel(ranks):
    ranks(3, program.neighbors_of_any_length, env={"GORMAPY_ONE_COPY": "0"})


@pytest.mark.parametrize("n", [2, 3])
def test_many_edges_take_little_memory(mpirun, n):
    mpirun(n, program.many_edges_take_little_memory)


def test_a_part_that_is_too_long_is_the_error_of_its_receiver(ranks):
    ranks(4, program.a_part_that_is_too_long_is_the_error_of_its_receiver)


@pytest.mark.parametrize("n", [2, 3])
def test_another_call_is_told(mpirun, n):
    mpirun(n, program.another_call_is_told)
