"""Notebooks for tests: real kernels, each with the magics loaded."""

import pytest
from kernels import Kernel


@pytest.fixture
def kernel(tmp_path):
    """A kernel of its own for one test."""
    with Kernel(tmp_path) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A kernel for all tests of a module, which leave its ranks usable."""
    with Kernel(tmp_path_factory.mktemp("shared")) as kernel:
        yield kernel
