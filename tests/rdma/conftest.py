"""Tests of Python programs over RDMA devices: skipped where there is none."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    """Skip without a device. The guest of rxe-guest says so by RXE_GUEST."""
    folder = Path("/sys/class/infiniband")
    if "RXE_GUEST" in os.environ or (folder.is_dir() and any(folder.iterdir())):
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="there is no RDMA device: run 'make test-rdma'"))
