"""The calls that the extension answers, and the methods that are marked as their fallbacks."""

import inspect

import pytest


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
