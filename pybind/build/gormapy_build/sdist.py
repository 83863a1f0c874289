"""The source distribution: what git tracks, and the Go modules in vendor/."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import project, toolchain

_PRODUCTS = {".git", ".cache", "__pycache__", "build", "dist", "_bin"}


def build(directory: str, default_toolchain: str = "wheels") -> str:
    """Writes NAME-VERSION.tar.gz into directory and returns its file name."""
    name = f"gormapy-{project.version()}"
    path = Path(directory) / f"{name}.tar.gz"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    raw = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="gormapy-sdist-") as folder, tarfile.open(fileobj=raw, mode="w") as archive:

        def add(inside: str, content: bytes, mode: int = 0o644) -> None:
            info = tarfile.TarInfo(f"{name}/{inside}")
            info.size, info.mode, info.mtime = len(content), mode, epoch
            archive.addfile(info, io.BytesIO(content))

        for file in _tracked():
            mode = 0o755 if os.access(project.ROOT / file, os.X_OK) else 0o644
            add(file.as_posix(), (project.ROOT / file).read_bytes(), mode)
        vendor = _vendored(Path(folder), default_toolchain)
        for file in sorted(path for path in vendor.rglob("*") if path.is_file()):
            add(f"vendor/{file.relative_to(vendor).as_posix()}", file.read_bytes())
        add("PKG-INFO", project.metadata().encode())
    path.write_bytes(gzip.compress(raw.getvalue(), mtime=epoch))
    return path.name


def _tracked() -> list[Path]:
    """The project's files: what git tracks, or everything in an unpacked source distribution."""
    root = project.ROOT
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
        files = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
        return sorted(file for file in files if (root / file).is_file() and file.parts[0] != "vendor")
    return sorted(_walked(root))


def _walked(root: Path) -> Iterator[Path]:
    for path in root.rglob("*"):
        inside = path.relative_to(root)
        made = _PRODUCTS & set(inside.parts) and inside.parts[:2] != ("pybind", "build")
        added = inside.parts[0] == "vendor" or inside.as_posix() == "PKG-INFO"
        if path.is_file() and not made and not added and path.suffix not in (".so", ".pyc"):
            yield inside


def _vendored(folder: Path, default_toolchain: str) -> Path:
    """The modules of go.sum as a vendor folder."""
    ready = project.ROOT / "vendor"
    if ready.is_dir():
        return ready
    tools = toolchain.find(folder / "work", project.ROOT, default_toolchain, need_cc=False)
    made = folder / "vendor"
    tools.run([tools.go, "mod", "vendor", "-o", made], project.ROOT)
    return made
