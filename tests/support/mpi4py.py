"""mpi4py's source distribution, fetched when a test runs: nothing of it is in this repository."""

import hashlib
import tarfile
from pathlib import Path

import pytest

from . import index

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "conformance"
VERSION = "4.1.2"
ARCHIVE = f"mpi4py-{VERSION}.tar.gz"
SHA256 = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02"


def download():
    """Put the source distribution into the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    index.fetch("mpi4py", ARCHIVE, SHA256, CACHE / ARCHIVE)


def unpacked(folder):
    """Return the folder of the source distribution, unpacked into another; skip the test if it can't be fetched."""
    archive = CACHE / ARCHIVE
    if not archive.exists():
        try:
            download()
        except index.Unreachable as error:
            pytest.skip(f"mpi4py's sources are needed, and the package index can't be reached: {error}")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found == SHA256, f"{archive} is not the file that is meant: delete it, and it is fetched again"
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)
    return folder / f"mpi4py-{VERSION}"
