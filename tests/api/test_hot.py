"""The calls that the extension answers, and the methods that are marked as their fallbacks."""

import inspect

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.fixture(scope="module")
def mpi():
    from gormapy import MPI

    return MPI


def test_the_extension_answers_hot_calls(mpi):
    """A method that lost its mark would stay in its class, and run in place of the extension's."""
    from gormapy._ext import fast

    for call in fast.HOT:
        owner, name = call.split(".")
        method = getattr(getattr(mpi, owner), name)
        assert inspect.ismethoddescriptor(method) or inspect.isbuiltin(method), call


def test_nothing_else_is_marked(mpi):
    """A mark on a method that the extension does not have says what is not so."""
    classes = {base for cls in vars(mpi).values() if inspect.isclass(cls) for base in cls.__mro__}
    for cls in classes:
        for name, member in vars(cls).items():
            assert not hasattr(getattr(member, "__func__", member), "is_hot"), f"{cls.__name__}.{name}"


def test_groups_of_any_sequence(ranks):
    ranks(1, program.groups_of_any_sequence)


def test_counts_of_a_status(ranks):
    ranks(1, program.counts_of_a_status)


def test_packing_of_items_without_gaps(ranks):
    ranks(1, program.packing_of_items_without_gaps)


def test_a_call_that_is_refused_leaves_the_status_as_it_is(ranks):
    ranks(1, program.a_call_that_is_refused_leaves_the_status_as_it_is)


def test_the_memory_of_an_object_is_used_again_only_if_little_of_it_has_been_touched(ranks):
    ranks(1, program.the_memory_of_an_object_is_used_again_only_if_little_of_it_has_been_touched)


def test_an_object_is_for_the_thread_that_completes_its_request(ranks):
    ranks(1, program.an_object_is_for_the_thread_that_completes_its_request)


def test_a_file_is_left_alone_if_there_is_no_status(ranks, tmp_path):
    ranks(1, program.a_file_is_left_alone_if_there_is_no_status, str(tmp_path))


def test_a_refused_access_to_a_file_leaves_the_status_as_it_is(ranks, tmp_path):
    ranks(1, program.a_refused_access_to_a_file_leaves_the_status_as_it_is, str(tmp_path))


def test_a_message_is_still_there_if_there_is_no_status(ranks):
    ranks(1, program.a_message_is_still_there_if_there_is_no_status)


@pytest.mark.parametrize("call", ["recv", "irecv", "send", "allgather"])
def test_first_calls_that_find_no_memory(mpirun, call):
    pytest.importorskip("_testcapi")
    mpirun(1, program.first_calls_that_find_no_memory, call)
