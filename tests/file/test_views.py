"""Views of all kinds, and what ranks write by them, against a model."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("datarep", ("native", "external32"))
@pytest.mark.parametrize("n", (1, 2, 4, 7))
def test_random_views(ranks, n, datarep):
    ranks(n, PROGRAMS / "model.py", n, datarep, timeout=60)
