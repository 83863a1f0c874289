"""Unsupported platforms are refused by one sentence, before anything is fetched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[2] / "pybind" / "build"

# What to change in a supported interpreter, and what the sentence has to say.
PLATFORMS = {
    "macos": ("platform.system = lambda: 'Darwin'", "macOS"),
    "windows": ("platform.system = lambda: 'Windows'", "WSL"),
    "bsd": ("platform.system = lambda: 'FreeBSD'", "FreeBSD"),
    "pypy": ("platform.python_implementation = lambda: 'PyPy'", "this is PyPy"),
    "old": ("sys.version_info = (3, 9, 18, 'final', 0)", "this is Python 3.9"),
    "free-threaded": ("variables['Py_GIL_DISABLED'] = 1", "free-threaded"),
    "32-bit": ("struct.calcsize = lambda _: 4", "32-bit"),
    "musl": ("os.confstr = lambda name: None", "musl"),
    "machine": ("platform.machine = lambda: 'riscv64'", "riscv64"),
    "headers": ("paths['include'] = '/nonexistent'", "python3-dev"),
}

# sysconfig keeps what it answers in dictionaries of its own: the getters are replaced.
HOOK = """
import os, platform, struct, sys, sysconfig
variables = dict(sysconfig.get_config_vars())
paths = dict(sysconfig.get_paths())
sysconfig.get_config_var = variables.get
sysconfig.get_path = paths.__getitem__
{change}
import gormapy_build
gormapy_build.{hook}()
"""


def run_hook(change, hook="get_requires_for_build_wheel"):
    return subprocess.run(
        [sys.executable, "-c", HOOK.format(change=change, hook=hook)],
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(("change", "word"), PLATFORMS.values(), ids=PLATFORMS)
def test_unsupported_platform_gets_one_sentence(change, word):
    done = run_hook(change)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert word in sentence and sentence.startswith("gormapy ") and sentence.endswith(".")


def test_supported_platform_is_accepted():
    done = run_hook("pass")
    assert done.returncode == 0, done.stderr


def test_source_distribution_needs_no_headers():
    done = run_hook(PLATFORMS["headers"][0], "get_requires_for_build_sdist")
    assert done.returncode == 0, done.stderr


def old_interpreters():
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return sorted(path for path in versions.glob("3.[6-9].*/bin/python") if path.exists())


@pytest.mark.skipif(not old_interpreters(), reason="no Python 3.6-3.9 is installed")
def test_old_interpreters_can_read_the_refusal():
    for python in old_interpreters():
        done = subprocess.run(
            [python, "-c", "import gormapy_build; gormapy_build.get_requires_for_build_wheel()"],
            env={"PYTHONPATH": str(BACKEND), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1
        assert "needs CPython 3.10 or newer" in done.stderr
        assert len(done.stderr.splitlines()) == 1
