"""The wheel: the package, the two binaries, and mpiexec as an installed program."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import elf, extension, project, toolchain

PACKAGE = project.ROOT / "python" / "gormapy"

# The Go program is itself the installed script: starting a job runs no Python.
# The second name is there because other MPI packages install an mpiexec too.
SCRIPTS = ("mpiexec", "gormapy-mpiexec")


def build(directory: str) -> str:
    """Builds a wheel into directory and returns its file name."""
    with _staged() as (root, work):
        made = extension.Build(root, work, toolchain.find(work, root))
        shared, launcher = work / extension.FILE_NAME, work / "mpiexec"
        made.extension(shared)
        made.launcher(launcher)
        with _Wheel(Path(directory), elf.platform_tag(shared, launcher)) as wheel:
            for path in package_files():
                wheel.add(path.relative_to(PACKAGE.parent).as_posix(), path.read_bytes())
            wheel.add(f"gormapy/{extension.FILE_NAME}", shared.read_bytes(), executable=True)
            wheel.add("gormapy/_bin/mpiexec", launcher.read_bytes(), executable=True)
            wheel.add_scripts(launcher)
    return wheel.path.name


def build_editable(directory: str) -> str:
    """Builds the binaries in the tree, and a wheel that points to it."""
    launcher = build_in_place("wheels")
    with _Wheel(Path(directory), f"linux_{os.uname().machine}") as wheel:
        wheel.add("__editable__.gormapy.pth", f"{PACKAGE.parent}\n".encode())
        wheel.add_scripts(launcher)
    return wheel.path.name


def in_place_work() -> Path:
    return project.ROOT / "build" / f"work-{sys.implementation.cache_tag}"


def build_in_place(default_toolchain: str) -> Path:
    """Brings the tree's own binaries up to date and returns the launcher's path."""
    root = project.ROOT
    work = in_place_work()
    made = extension.Build(root, work, toolchain.find(work, root, default_toolchain))
    made.extension(PACKAGE / extension.FILE_NAME)
    launcher = PACKAGE / "_bin" / "mpiexec"
    made.launcher(launcher)
    return launcher


def write_metadata(directory: str) -> str:
    folder = Path(directory) / _dist_info()
    folder.mkdir(parents=True)
    for name, content in _metadata_files("linux_any").items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder.name


def package_files() -> list[Path]:
    """What of python/gormapy is source, not a product of a build in the tree."""

    def product(path: Path) -> bool:
        return path.suffix in (".so", ".pyc") or bool({"__pycache__", "_bin"} & set(path.relative_to(PACKAGE).parts))

    return sorted(path for path in PACKAGE.rglob("*") if path.is_file() and not product(path))


@contextmanager
def _staged() -> Iterator[tuple[Path, Path]]:
    """A copy of the Go sources: the tree may be read-only, or in use by others."""
    with tempfile.TemporaryDirectory(prefix="gormapy-build-") as folder:
        root = Path(folder) / "module"
        for name in ("gocore", "pybind", "vendor"):
            if (project.ROOT / name).is_dir():
                shutil.copytree(project.ROOT / name, root / name, copy_function=shutil.copyfile)
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(project.ROOT / name, root / name)
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        yield root, Path(folder) / "work"


def _dist_info() -> str:
    return f"gormapy-{project.version()}.dist-info"


def _python_tag() -> str:
    return f"cp{sys.version_info[0]}{sys.version_info[1]}"


def _metadata_files(platform_tag: str) -> dict[str, bytes]:
    python = _python_tag()
    tags = [f"Tag: {python}-{python}-{one}" for one in platform_tag.split(".")]
    wheel = ["Wheel-Version: 1.0", "Generator: gormapy_build", "Root-Is-Purelib: false", *tags]
    files = {"METADATA": project.metadata().encode(), "WHEEL": ("\n".join(wheel) + "\n").encode()}
    files["entry_points.txt"] = project.entry_points().encode()
    for name in project.pyproject()["project"]["license-files"]:
        files[f"licenses/{name}"] = (project.ROOT / name).read_bytes()
    return files


class _Wheel:
    """A wheel that is being written; it gets its name when it is complete."""

    def __init__(self, directory: Path, platform_tag: str) -> None:
        python = _python_tag()
        self.path = directory / f"gormapy-{project.version()}-{python}-{python}-{platform_tag}.whl"
        self._tag = platform_tag
        self._record: list[str] = []
        epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # zip knows no time before 1980
        self._time = time.gmtime(epoch)[:6]

    def __enter__(self) -> _Wheel:
        self._partial = self.path.with_suffix(".part")
        self._zip = zipfile.ZipFile(self._partial, "w", zipfile.ZIP_DEFLATED)
        return self

    def add(self, name: str, content: bytes, executable: bool = False) -> None:
        info = zipfile.ZipInfo(name, self._time)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self._zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(content)}")

    def add_scripts(self, launcher: Path) -> None:
        for name in SCRIPTS:
            self.add(f"gormapy-{project.version()}.data/scripts/{name}", launcher.read_bytes(), executable=True)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            for name, content in _metadata_files(self._tag).items():
                self.add(f"{_dist_info()}/{name}", content)
            record = f"{_dist_info()}/RECORD"
            self.add(record, "".join(f"{line}\n" for line in [*self._record, f"{record},,"]).encode())
        self._zip.close()
        if kind is None:
            os.replace(self._partial, self.path)
        else:
            self._partial.unlink()
