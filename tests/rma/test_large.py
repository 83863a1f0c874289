"""Windows and counts beyond 2^31."""

import pytest
from support.windows import PROGRAMS, WAYS

SAMPLE = 50_000_001
BEYOND = (1 << 31) + 1001  # twice that much memory is touched


@pytest.mark.parametrize("way", WAYS)
def test_far_displacements(mpirun, way):
    mpirun(3, PROGRAMS / "large.py", SAMPLE, env=WAYS[way])


@pytest.mark.large
@pytest.mark.parametrize("way", WAYS)
def test_long_counts(mpirun, way):
    mpirun(2, PROGRAMS / "large.py", BEYOND, env=WAYS[way], timeout=300)
