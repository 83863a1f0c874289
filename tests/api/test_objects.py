"""Messages and collective operations on objects, of sizes around those that one step has room for."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_collectives_of_each_size(ranks, n):
    ranks(n, program.collectives_of_each_size)


def test_messages_of_each_size(ranks, n):
    ranks(n, program.messages_of_each_size)


def test_nonblocking_messages_of_each_size(ranks, n):
    ranks(n, program.nonblocking_messages_of_each_size, timeout=60)


def test_what_has_arrived_stays_as_long_as_somebody_has_it(ranks):
    ranks(1, program.what_has_arrived_stays_as_long_as_somebody_has_it)


@pytest.mark.on_ranks(9)
def test_more_ranks_than_a_slot_has_heads_for(ranks):
    ranks(9, program.collectives_of_each_size, timeout=120)


def test_all_ranks_get_the_object_that_one_has_folded(ranks, n):
    ranks(n, program.all_ranks_get_the_object_that_one_has_folded)


def test_a_wrong_root_is_an_error_and_no_more(ranks, n):
    ranks(n, program.a_wrong_root_is_an_error_and_no_more)


@pytest.mark.on_ranks(2)
def test_pickles_of_any_kind_of_buffer(ranks):
    ranks(2, program.pickles_of_any_kind_of_buffer)


def test_operations_that_are_no_predefined_ones(ranks, n):
    ranks(n, program.operations_that_are_no_predefined_ones)


def test_exceptions_of_the_program(ranks, n):
    ranks(n, program.exceptions_of_the_program)


def test_calls_that_differ(ranks, n):
    ranks(n, program.calls_that_differ)


# Ranks that share memory may have to reset communication after such an error.
@pytest.mark.parametrize("env", [{"GORMAPY_JOB_NODES": "2"}, {"GORMAPY_FABRIC": "tcp"}])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_anything(mpirun, n, env):
    mpirun(n, program.anything, n, 40, env=env, timeout=90)


@pytest.mark.parametrize("env", [{}, {"GORMAPY_JOB_NODES": "2"}])
@pytest.mark.parametrize("nbytes", [10, 300_000])
@pytest.mark.parametrize("call", ["bcast", "gather", "scatter", "allgather", "alltoall", "allreduce"])
def test_a_rank_is_killed(mpirun, call, nbytes, env):
    result = mpirun(4, program.a_rank_is_killed, call, nbytes, launcher=["--enable-recovery"], env=env)
    assert result.stdout.splitlines() == ["went on"] * 3, result


@pytest.mark.parametrize("nbytes", [30_000, 100_000, 1_000_000])
@pytest.mark.parametrize("call", ["bcast", "scatter"])
def test_a_rank_comes_after_another_one_has_died(mpirun, call, nbytes):
    where = program.a_rank_comes_after_another_one_has_died
    result = mpirun(3, where, call, nbytes, launcher=["--enable-recovery"])
    assert result.stdout.splitlines() == ["went on"] * 2, result


def test_lists_that_somebody_looks_at(ranks, n):
    ranks(n, program.lists_that_somebody_looks_at)


@pytest.mark.parametrize("env", [{}, {"GORMAPY_JOB_NODES": "2"}])
def test_a_result_whose_pickle_has_no_buffer(mpirun, env):
    mpirun(3, program.a_result_whose_pickle_has_no_buffer, env=env)


@pytest.mark.parametrize("env", [{}, {"GORMAPY_JOB_NODES": "2"}, {"GORMAPY_FABRIC": "tcp"}])
def test_pickles_in_memory_that_is_read_only(mpirun, env):
    mpirun(4, program.pickles_in_memory_that_is_read_only, env=env)


@pytest.mark.on_ranks(1)
def test_threads_on_a_communicator_of_one_rank(ranks):
    ranks(1, program.threads_on_a_communicator_of_one_rank)


@pytest.mark.on_ranks(2)
def test_no_memory_for_what_is_received(mpirun):
    mpirun(2, program.no_memory_for_what_is_received)


@pytest.mark.parametrize("env", [{}, {"GORMAPY_FABRIC": "tcp"}])
def test_an_array_and_an_object(mpirun, env):
    mpirun(2, program.an_array_and_an_object, env=env)


def test_an_empty_pickle_is_none(ranks, n):
    ranks(n, program.an_empty_pickle_is_none)


@pytest.mark.on_ranks(1)
def test_loading_calls_the_same_collective(ranks):
    ranks(1, program.loading_calls_the_same_collective)
