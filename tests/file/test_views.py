"""Views of all kinds, and what ranks write by them, against a model."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("n", (1, 2, 4, 7))
def test_random_views(ranks, n):
    ranks(n, PROGRAMS / "model.py", n, timeout=60)
