"""Run the programs of one-sided communication."""

import pytest
from support.windows import PROGRAMS, WAYS

# The number of ranks makes no difference to which code the second way takes.
SIZES_AND_WAYS = [(1, "kernel"), (2, "kernel"), (4, "kernel"), (7, "kernel"), (3, "messages")]


def marks(n):
    """Return the marks of a case; seven ranks at work take long on two cores."""
    return [pytest.mark.on_ranks(n)] + [pytest.mark.exhaustive] * (n > 4)


@pytest.fixture(
    params=[pytest.param(case, marks=marks(case[0])) for case in SIZES_AND_WAYS],
    ids=lambda case: f"{case[0]}-{case[1]}",
)
def onesided(request, ranks):
    """Run a program of this folder at several sizes and in both ways."""
    n, way = request.param

    def run(name, *args, **options):
        options.setdefault("timeout", 60)
        return ranks(n, PROGRAMS / f"{name}.py", *args, env=WAYS[way] | options.pop("env", {}), **options)

    return run
