"""Fixtures for tests that start jobs."""

import signal
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# support is imported by every test folder, which are no packages.
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from support.mpirun import Runner  # noqa: E402

# A shell starts what it runs in the background with SIGINT ignored, and every process below would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

SIZES = (1, 2, 4, 7)


@pytest.fixture
def mpirun(tmp_path):
    """Run jobs by the project's own mpiexec: see support.mpirun."""
    runner = Runner(tmp_path)
    yield runner
    runner.close()


@pytest.fixture(params=SIZES)
def n(request):
    """Numbers of ranks: one, a pair, a power of two and none."""
    return request.param
