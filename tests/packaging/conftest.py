"""What the tests of packaging share: an environment without compilers, the source distribution, the wheel."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
def source_distribution(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    return folder / sdist.build(str(folder), "auto")


@pytest.fixture(scope="session")
def built(source_distribution, bare, tmp_path_factory):
    """The wheel that pip makes of the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source_distribution]
    # An empty module cache: a module that vendor/ lacks must not be found there.
    env = {**bare, "GOMODCACHE": str(folder / "modules")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path
