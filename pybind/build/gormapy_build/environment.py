"""A developer's virtual environment: made for the Makefile, linked to the tree."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

# This module imports nothing of the backend: on Python 3.10 the rest needs
# tomli, which only the environment made here will have.


def create(folder: Path) -> None:
    """Makes a virtual environment that pip can install into.

    Debian leaves ensurepip out of python3; a pip outside the environment
    serves as well.
    """
    made = _quiet([sys.executable, "-m", "venv", folder])
    if made.returncode == 0:
        return
    made = _quiet([sys.executable, "-m", "venv", "--without-pip", "--clear", folder])
    outer = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "pip"]
    if made.returncode == 0 and _quiet(outer).returncode == 0:
        return
    raise SystemExit(
        f"{sys.executable} can make no virtual environment: install python3-venv (Debian, Ubuntu) or python3-pip."
    )


def install(requirements: Iterable[str]) -> None:
    """Installs what is missing of pinned requirements beside this Python."""
    missing = [requirement for requirement in requirements if not _is_installed(requirement)]
    if missing:
        print("gormapy: installing", *missing, file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            hashed = [requirement for requirement in missing if requirement in _hashed()]
            file.writelines(_hashed()[requirement] for requirement in hashed)
            file.flush()
            if hashed:
                subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", file.name], check=True)
        if others := [requirement for requirement in missing if requirement not in hashed]:
            subprocess.run([*pip, *others], check=True)


def link(packages: Path, launcher: Path, scripts: Iterable[str], entry_points: str) -> None:
    """Makes the tree's packages and launcher those of this environment."""
    library = Path(sysconfig.get_path("purelib"))
    (library / "gormapy-tree.pth").write_text(f"{packages}\n")
    info = library / "gormapy_tree-0.dist-info"  # for entry points: pytest's plugin
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gormapy-tree\nVersion: 0\n")
    (info / "entry_points.txt").write_text(entry_points)
    for name in scripts:
        path = Path(sysconfig.get_path("scripts")) / name
        if not (path.is_symlink() and os.readlink(path) == os.fspath(launcher)):
            path.unlink(missing_ok=True)
            path.symlink_to(launcher)


def _hashed() -> dict[str, str]:
    """The lines of build.txt by requirement: of each release that a build needs, the digests of all its files."""
    text = Path(__file__).parents[1].joinpath("requirements", "build.txt").read_text()
    return {entry.split()[0]: entry for entry in re.findall(r"^\S.*(?:\n .*)*\n", text, flags=re.M)}


def _is_installed(requirement: str) -> bool:
    name, _, version = requirement.partition("==")
    try:
        installed = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return version in ("", installed)


def _quiet(command: Sequence[str | Path]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
