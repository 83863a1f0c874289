"""The wheel: the package, the two binaries, and mpiexec as an installed program."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shlex
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import elf, extension, project, sbom, toolchain

PACKAGE = project.ROOT / "python" / "gormapy"

# The second name is there because other MPI packages install an mpiexec too.
SCRIPTS = ("mpiexec", "gormapy-mpiexec")

# What is installed under these names: it becomes the Go program, which is in the package, once. Starting a job
# runs no Python, and no other program either. Installers put scripts and packages into folders of one prefix, or,
# with --target, of one folder; where neither is so, Python finds the package.
_SCRIPT = """\
#!/bin/sh
# NAME of gormapy VERSION.
self=$0
[ -L "$self" ] && self=$(readlink -f -- "$self")
bin=${self%/*}
for place in "$bin"/../lib*/python3*/*-packages "$bin"/../local/lib*/python3*/*-packages "$bin"/..; do
	if [ -d "$place/gormapy-VERSION.dist-info" ] && [ -x "$place/gormapy/_bin/mpiexec" ]; then
		exec "$place/gormapy/_bin/mpiexec" "$@"
	fi
done
[ -x "$bin/python3" ] && exec "$bin/python3" -m gormapy.launch "$@"
exec python3 -m gormapy.launch "$@"
"""

# Of the wheels of a release. CPython 3.12 and all later ones take the last one.
TAGS = ("cp310-cp310", "cp311-cp311", "cp312-abi3")


@dataclass(frozen=True)
class _Product:
    """The binaries for a machine, and what is in them."""

    machine: str
    extension: Path
    launcher: Path
    sbom: bytes


def build(directory: str) -> str:
    """Builds a wheel for this interpreter's tag into directory and returns its file name."""
    with _staged() as (root, work):
        return _write(Path(directory), _tag_of(sys.version_info[1]), _made(root, work, platform.machine())).name


def build_all(directory: Path, machines: Iterable[str]) -> list[Path]:
    """Builds the wheels for all Pythons and some machines into directory.

    One extension serves every Python (pybind/shim/limited.h). Only from 3.12 on it is in the
    stable ABI by the letter, so that the older ones have wheels with tags of their own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    wheels = []
    with _staged() as (root, work):
        extension.Build(root, work, toolchain.find(work, root)).binding()
        for machine in machines:
            if machine not in toolchain.GOARCH:
                raise SystemExit(f"gormapy is built for {' and '.join(toolchain.GOARCH)}, not for {machine}.")
            product = _made(root, work, machine)
            wheels += [_write(directory, tag, product) for tag in TAGS]
    return wheels


def _made(root: Path, work: Path, machine: str) -> _Product:
    tools = toolchain.find(work, root, machine=machine)
    made = extension.Build(root, work, tools)
    shared, launcher = work / machine / extension.FILE_NAME, work / machine / "mpiexec"
    made.extension(shared)
    made.launcher(launcher)
    return _Product(machine, shared, launcher, sbom.document(tools, machine, shared, launcher))


def _write(directory: Path, tag: str, product: _Product) -> Path:
    platform_tag = elf.platform_tag(product.machine, product.extension, product.launcher)
    with _Wheel(directory, tag, platform_tag) as wheel:
        for path in package_files():
            wheel.add(path.relative_to(PACKAGE.parent).as_posix(), path.read_bytes())
        wheel.add(f"gormapy/{extension.FILE_NAME}", product.extension.read_bytes(), executable=True)
        wheel.add("gormapy/_bin/mpiexec", product.launcher.read_bytes(), executable=True)
        wheel.add_scripts(_SCRIPT.replace("VERSION", project.version()))
        wheel.add(f"{_dist_info()}/sboms/gormapy.cdx.json", product.sbom)
    return wheel.path


def build_editable(directory: str) -> str:
    """Builds the binaries in the tree, and a wheel that points to it."""
    launcher = build_in_place("wheels")
    with _Wheel(Path(directory), _tag_of(sys.version_info[1]), f"linux_{platform.machine()}") as wheel:
        wheel.add("__editable__.gormapy.pth", f"{PACKAGE.parent}\n".encode())
        wheel.add_scripts(f'#!/bin/sh\nexec {shlex.quote(str(launcher))} "$@"\n')
    return wheel.path.name


def in_place_work() -> Path:
    return project.ROOT / "build" / f"work-{sys.implementation.cache_tag}"


def build_in_place(default_toolchain: str) -> Path:
    """Brings the tree's own binaries up to date and returns the launcher's path."""
    root = project.ROOT
    work = in_place_work()
    made = extension.Build(root, work, toolchain.find(work, root, default_toolchain))
    made.extension(PACKAGE / extension.FILE_NAME)
    for other in PACKAGE.glob("_gormapy.*.so"):  # of a build before there was one for all Pythons
        if other.name != extension.FILE_NAME:
            other.unlink()
    launcher = PACKAGE / "_bin" / "mpiexec"
    made.launcher(launcher)
    return launcher


def write_metadata(directory: str) -> str:
    folder = Path(directory) / _dist_info()
    folder.mkdir(parents=True)
    for name, content in _metadata_files(_tag_of(sys.version_info[1]), "linux_any").items():
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


def _tag_of(minor: int) -> str:
    """The tag of the wheel that a CPython of this version takes."""
    tag = f"cp3{minor}-cp3{minor}"
    return tag if tag in TAGS else TAGS[-1]


def _metadata_files(tag: str, platform_tag: str) -> dict[str, bytes]:
    tags = [f"Tag: {tag}-{one}" for one in platform_tag.split(".")]
    wheel = ["Wheel-Version: 1.0", "Generator: gormapy_build", "Root-Is-Purelib: false", *tags]
    files = {"METADATA": project.metadata().encode(), "WHEEL": ("\n".join(wheel) + "\n").encode()}
    files["entry_points.txt"] = project.entry_points().encode()
    for name in project.pyproject()["project"]["license-files"]:
        files[f"licenses/{name}"] = (project.ROOT / name).read_bytes()
    return files


class _Wheel:
    """A wheel that is being written; it gets its name when it is complete."""

    def __init__(self, directory: Path, tag: str, platform_tag: str) -> None:
        self.path = directory / f"gormapy-{project.version()}-{tag}-{platform_tag}.whl"
        self._tags = tag, platform_tag
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

    def add_scripts(self, script: str) -> None:
        for name in SCRIPTS:
            content = script.replace("NAME", name).encode()
            self.add(f"gormapy-{project.version()}.data/scripts/{name}", content, executable=True)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            for name, content in _metadata_files(*self._tags).items():
                self.add(f"{_dist_info()}/{name}", content)
            record = f"{_dist_info()}/RECORD"
            self.add(record, "".join(f"{line}\n" for line in [*self._record, f"{record},,"]).encode())
        self._zip.close()
        if kind is None:
            os.replace(self._partial, self.path)
        else:
            self._partial.unlink()
