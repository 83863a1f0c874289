"""What the tests of packaging share: an environment without compilers, the source distribution, the wheel."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.alone import shared_folder

from gormapy_build import sdist

TIMEOUT = 420
COMPILER = re.compile(r"go|gofmt|cc|c\+\+|c[89]9.*|.*gcc.*|.*g\+\+.*|.*clang.*|.*\bld\b.*|as|.*-as|cpp.*|zig")


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """An environment whose PATH has everything but Go and compilers."""
    folder = tmp_path_factory.mktemp("bin")
    for source in os.environ["PATH"].split(os.pathsep):
        for path in sorted(Path(source).glob("*")):
            if not COMPILER.fullmatch(path.name) and not (folder / path.name).is_symlink():
                (folder / path.name).symlink_to(path)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GO", "CGO_", "PYTHON"))}
    env.update(PATH=str(folder), GOPROXY="off")
    assert shutil.which("go", path=env["PATH"]) is None and shutil.which("cc", path=env["PATH"]) is None
    return env


@pytest.fixture(scope="session")
def source_distribution(request):
    with made_once(request, "sdist") as folder:
        if not (made := list(folder.glob("*.tar.gz"))):
            made = [folder / sdist.build(str(folder), "auto")]
        return made[0]


@pytest.fixture(scope="session")
def built(source_distribution, bare, request):
    """The wheel that pip makes of the source distribution."""
    with made_once(request, "wheel") as folder:
        if not (made := list(folder.glob("*.whl"))):
            command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source_distribution]
            # An empty module cache: a module that vendor/ lacks must not be found there.
            env = {**bare, "GOMODCACHE": str(folder / "modules")}
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT)
            assert done.returncode == 0, done.stdout + done.stderr
            made = list(folder.glob("*.whl"))
        return made[0]


@contextmanager
def made_once(request, name):
    """A folder that all workers share, for what takes long to make: one makes it, the others wait."""
    folder = (shared_folder(request.config) or request.getfixturevalue("tmp_path_factory").getbasetemp()) / name
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
