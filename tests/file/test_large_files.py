"""Files and accesses beyond 2^31."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_far_offsets(ranks):
    """A file of 12 GiB of which some KiB are written."""
    ranks(
        3,
        program.far_offsets,
    )


@pytest.mark.large
def test_long_counts(ranks):
    """More than 2^31 bytes in one call, alone and together."""
    ranks(
        2,
        program.long_counts,
        timeout=300,
    )
