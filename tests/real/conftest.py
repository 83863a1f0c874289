"""Programs of others, fetched when the test runs: none of them is in this repository."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "real"
VERSION = "4.1.2"
ARCHIVE = f"mpi4py-{VERSION}.tar.gz"
SHA256 = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02"

# What pip says when it can't reach the index, as opposed to what it says about a package.
UNREACHABLE = ("connection", "Failed to establish", "Name or service not known", "timed out", "ProxyError", "SSLError")


def download():
    """Put the source distribution into the cache; skip the test if the package index can't be reached."""
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--retries", "1", "--no-binary", ":all:", "--dest", str(CACHE), f"mpi4py=={VERSION}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode:
        if any(words in done.stdout for words in UNREACHABLE):
            pytest.skip(f"mpi4py's programs are needed, and the package index can't be reached:\n{done.stdout[-500:]}")
        pytest.fail(f"{' '.join(command)}\n{done.stdout}")


@pytest.fixture(scope="session")
def mpi4py_source(tmp_path_factory):
    """Return the folder of mpi4py's source distribution."""
    archive = CACHE / ARCHIVE
    if not archive.exists():
        download()
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found == SHA256, f"{archive} is not the file that is meant: delete it, and it is fetched again"
    folder = tmp_path_factory.mktemp("real")
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)
    return folder / f"mpi4py-{VERSION}"
