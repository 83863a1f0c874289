"""On how many ranks a test runs: ``@pytest.mark.mpi``, and mpi-pytest's ``@pytest.mark.parallel``."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import pytest

FIXTURE = "mpi_ranks"  # the parameter of a test that runs on several numbers of ranks
NAMES = ("mpi", "parallel")
_KEYWORDS = ("ranks", "nprocs")
_PARALLEL_DEFAULT = 3  # mpi-pytest's


def mark_of(node, names=NAMES):
    """Return the mark of a test that asks for ranks, or None."""
    return next((mark for mark in node.iter_markers() if mark.name in names), None)  # the closest one


def asked(mark):
    """Return the numbers of ranks that a mark asks for, () if it leaves the number to the command line."""
    keywords = {name: value for name, value in mark.kwargs.items() if name != "min_size"}
    values = [*mark.args, *keywords.values()]
    if len(values) > 1 or set(keywords) - set(_KEYWORDS):
        raise pytest.UsageError(f"@pytest.mark.{mark.name} takes one number of ranks, or a list: {_shown(mark)}")
    if not values:
        return () if mark.name == "mpi" else (_PARALLEL_DEFAULT,)
    numbers = values[0] if isinstance(values[0], Iterable) and not isinstance(values[0], str) else (values[0],)
    try:
        numbers = tuple(operator.index(number) for number in numbers)
    except TypeError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise pytest.UsageError(f"numbers of ranks are whole, and 1 or more: {_shown(mark)}")
    return numbers


def _shown(mark):
    texts = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
    return f"@pytest.mark.{mark.name}({', '.join(texts)})"


def parametrize(metafunc, names):
    """Make a test for each number of ranks, if a mark has several."""
    mark = mark_of(metafunc.definition, names)
    numbers = asked(mark) if mark is not None else ()
    if len(numbers) > 1 and FIXTURE not in _parametrized(metafunc):
        if FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(FIXTURE)
        metafunc.parametrize(FIXTURE, numbers, ids=[f"nprocs={n}" for n in numbers], indirect=True)


def _parametrized(metafunc):
    return {name for mark in metafunc.definition.iter_markers("parametrize") for name in str(mark.args[0]).split(",")}


def size_of(item, default):
    """Return the number of ranks of a test, None if it runs in the process of pytest."""
    mark = mark_of(item)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if mark is None:
        return default if uses_comm(item) else None
    if FIXTURE in parameters:
        return parameters[FIXTURE]
    numbers = asked(mark)
    return numbers[0] if numbers else default


def uses_comm(item):
    """Report whether a test uses the fixture ``comm`` of the plugin, and not another one of that name."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.get("comm", ()) if info is not None else ()
    return bool(definitions) and definitions[-1].func.__module__ == "gormapy.testing.plugin"


def too_small(item, default):
    """Return the number of ranks that pytest-mpi's ``min_size`` asks for if there are fewer, else None."""
    mark = item.get_closest_marker("mpi")
    least = mark.kwargs.get("min_size") if mark is not None else None
    return least if least is not None and (size_of(item, default) or 0) < least else None
