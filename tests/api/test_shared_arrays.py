"""NumPy's own arrays in memory that other ranks can map: gormapy.shared_arrays, mpiexec --shared-arrays."""

import os
import re
import signal

import pytest
from support.programs import beside

program = beside(__file__)

EVERYWHERE = {"GORMAPY_SHARED_ARRAYS": "1"}
OPTION = ["--shared-arrays"]


def test_block_has_its_larger_arrays_in_the_arena(mpirun):
    mpirun.alone(program.block_has_its_larger_arrays_in_the_arena)


def test_zeros_are_zero_and_lazy(mpirun):
    mpirun.alone(program.zeros_are_zero_and_lazy)


def test_resized_arrays_keep_their_elements(mpirun):
    mpirun.alone(program.resized_arrays_keep_their_elements)


def test_threads_and_tasks_of_a_block(mpirun):
    mpirun.alone(program.threads_and_tasks_of_a_block)


@pytest.mark.parametrize("how", ["option", "variable"])
def test_everywhere(mpirun, how):
    if how == "option":
        mpirun(2, program.everywhere, launcher=OPTION)
    else:
        mpirun(2, program.everywhere, env=EVERYWHERE)


@pytest.mark.parametrize("env", [{}, {"GORMAPY_SHARED_ARRAYS": "0"}], ids=["unset", "0"])
def test_nothing_changes_without_the_option(mpirun, env):
    mpirun(2, program.nothing_changes_without_the_option, env=env)


def test_numpy_is_imported_only_with_the_option(mpirun):
    source = "import sys\nfrom gormapy import MPI\nprint('numpy' in sys.modules)"
    assert mpirun.alone(source).stdout == "False\n"
    assert mpirun.alone(source, env=EVERYWHERE).stdout == "True\n"


@pytest.mark.parametrize("least", [4096, 1 << 20])
def test_another_size(mpirun, least):
    mpirun.alone(program.another_size, least, env={"GORMAPY_SHARED_ARRAYS_FROM": least})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("GORMAPY_SHARED_ARRAYS", "maybe", "choose from 1, 0"),
        ("GORMAPY_SHARED_ARRAYS_FROM", "64K", "it is a number of bytes (32768 is taken)"),
        ("GORMAPY_SHARED_ARRAYS_KEPT", "-1", "it is a number of bytes (134217728 is taken)"),
    ],
)
def test_wrong_settings_are_named(mpirun, name, value, says):
    result = mpirun(1, program.nothing_changes_without_the_option, env={name: value})
    assert f'{name} is "{value}"' in result.stderr and says in result.stderr


def test_other_handlers_keep_theirs(mpirun):
    mpirun.alone(program.other_handlers_keep_theirs)


def test_forked_children_have_copies(mpirun):
    mpirun.alone(program.forked_children_have_copies)


def test_forked_children_end_as_any_program(mpirun):
    mpirun(2, program.forked_children_end_as_any_program, launcher=OPTION)


def test_multiprocessing_by_fork(mpirun):
    mpirun.alone(program.multiprocessing_by_fork)


def test_subprocesses_copy_nothing(mpirun):
    mpirun.alone(program.subprocesses_copy_nothing)


@pytest.mark.slow
def test_forks_while_threads_make_arrays(mpirun):
    mpirun.alone(program.forks_while_threads_make_arrays, 3.0, timeout=60)


def test_forks_without_addresses(mpirun):
    mpirun.alone(program.forks_without_addresses, True)


def test_forks_without_addresses_and_files(mpirun):
    result = mpirun.alone(program.forks_without_addresses, False)
    assert "ended" in result.stdout and "a forked child ends" in result.stderr, str(result)


def test_many_arrays_do_not_delay_a_fork(mpirun):
    mpirun.alone(program.many_arrays_do_not_delay_a_fork)


def test_blocks_that_interleave(mpirun):
    mpirun.alone(program.blocks_that_interleave)


def test_arrays_that_grow(mpirun):
    mpirun.alone(program.arrays_that_grow)


@pytest.mark.parametrize("kept", [16, 128])
def test_memory_goes_back(mpirun, kept):
    mpirun.alone(program.memory_goes_back, kept << 20, env={"GORMAPY_SHARED_ARRAYS_KEPT": kept << 20})


def test_many_arrays_have_few_mappings(mpirun):
    mpirun.alone(program.many_arrays_have_few_mappings)


def test_files_that_may_not_grow(mpirun):
    mpirun.alone(program.files_that_may_not_grow)


def test_no_descriptor_for_an_arena(mpirun):
    mpirun.alone(program.no_descriptor_for_an_arena)


def test_more_than_there_is(mpirun):
    with open("/proc/sys/vm/overcommit_memory") as mode:
        if mode.read().strip() == "1":
            pytest.skip("the system promises any amount of memory (vm.overcommit_memory is 1)")
    mpirun.alone(program.more_than_there_is)


def test_address_space_is_limited(mpirun):
    mpirun.alone(program.address_space_is_limited)


@pytest.mark.parametrize("clean", [True, False], ids=["Finalize", "exit"])
def test_arrays_outlive_mpi(mpirun, clean):
    result = mpirun(2, program.arrays_outlive_mpi, clean, launcher=OPTION)
    assert result.stderr == ""


@pytest.mark.shm("windows over shared memory are direct")
@pytest.mark.one_node("windows over shared memory are direct")
@pytest.mark.parametrize("n", [2, 4])
def test_calls_between_ranks(mpirun, n):
    mpirun(n, program.calls_between_ranks, launcher=OPTION)


@pytest.mark.parametrize("n", [2, 4])
def test_random_arrays_and_messages(mpirun, n):
    mpirun(n, program.random_arrays_and_messages, n, env=EVERYWHERE)


@pytest.mark.parametrize("n", [2, 4])
def test_rank_forks_while_others_communicate(mpirun, n):
    mpirun(n, program.rank_forks_while_others_communicate, launcher=OPTION)


def test_rank_is_killed(mpirun):
    job = mpirun.start(2, program.rank_is_killed, launcher=OPTION)
    os.kill(job.pids(2)[1], signal.SIGKILL)
    assert re.search("rank 1", job.finish(expect=128 + signal.SIGKILL).stderr)
