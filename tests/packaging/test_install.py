"""The way to a user's machine: source distribution, wheel, installed program.

Go and every C compiler are hidden, and so is the Go module proxy: what the
build needs beyond pip's index has to be in the source distribution.
"""

import base64
import csv
import email
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

import gormapy_build
from gormapy_build import elf, extension, project, wheel

TIMEOUT = 420


# One worker of pytest-xdist makes the wheel for all of them.
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="session")
def installed(built, bare, tmp_path_factory):
    """A new environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder, with_pip=True)
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", built]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def test_source_distribution_carries_modules_and_sources(source_distribution):
    with tarfile.open(source_distribution) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"PKG-INFO", "pyproject.toml", "go.mod", "go.sum", "LICENSE", "README.md"} <= names
    assert "vendor/modules.txt" in names
    assert "pybind/build/gormapy_build/__init__.py" in names
    assert any(name.startswith("vendor/github.com/go-python/gopy/gopyh/") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or name.startswith((".git/", ".cache/"))]


@pytest.mark.timeout(TIMEOUT)
def test_wheel_is_tagged_for_manylinux_and_qualifies(built, tmp_path):
    tag = {10: "cp310-cp310", 11: "cp311-cp311"}.get(sys.version_info[1], "cp312-abi3")
    assert re.fullmatch(
        rf"gormapy-{re.escape(project.version())}-{tag}-manylinux_2_17_(\w+)\.manylinux2014_\1\.whl",
        built.name,
    )
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path)
    extension_file = tmp_path / "gormapy" / extension.FILE_NAME
    assert elf.objections(extension_file) == []
    assert elf.needs(tmp_path / "gormapy/_bin/mpiexec").libraries == []


@pytest.mark.timeout(TIMEOUT)
def test_wheel_has_each_binary_once_and_says_what_is_in_them(built):
    with zipfile.ZipFile(built) as archive:
        binaries = [name for name in archive.namelist() if archive.read(name)[:4] == b"\x7fELF"]
        (bom,) = [name for name in archive.namelist() if name.endswith(".dist-info/sboms/gormapy.cdx.json")]
        parts = {part["name"]: part for part in json.loads(archive.read(bom))["components"]}
        digest = hashlib.sha256(archive.read("gormapy/_bin/mpiexec")).hexdigest()
    assert sorted(binaries) == ["gormapy/_bin/mpiexec", f"gormapy/{extension.FILE_NAME}"]
    assert parts["golang.org/x/sys"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert parts["gormapy/_bin/mpiexec"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


@pytest.mark.timeout(TIMEOUT)
def test_wheel_records_every_file(built):
    with zipfile.ZipFile(built) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert set(rows) == set(archive.namelist())
        for name, (digest, size) in rows.items():
            content = archive.read(name)
            if name != record:
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={expected}", len(content))
        metadata = email.message_from_bytes(archive.read(record.replace("RECORD", "METADATA")))
        points = archive.read(record.replace("RECORD", "entry_points.txt")).decode()
    assert points == "[pytest11]\ngormapy = gormapy.testing.plugin\n"
    assert metadata["Name"] == "gormapy"
    assert metadata.get_all("Requires-Dist") == [
        "numpy",
        'matplotlib; extra == "plot"',
        'ipython>=7.34; extra == "notebook"',
        'numba; extra == "numba"',
        'pytest>=8; extra == "testing"',
    ]
    assert metadata.get_all("Provides-Extra") == ["plot", "notebook", "numba", "testing"]
    assert metadata["Requires-Python"] == ">=3.10"


@pytest.mark.timeout(2 * TIMEOUT)
@pytest.mark.parametrize("name", wheel.SCRIPTS)
@pytest.mark.parametrize("how", ["here", "by a link", "elsewhere"])
def test_installed_launcher_becomes_the_go_program(installed, bare, tmp_path, name, how):
    script = installed / name
    if how == "by a link":
        script = tmp_path / name
        script.symlink_to(installed / name)
    elif how == "elsewhere":  # then Python finds the package
        script = tmp_path / name
        script.write_bytes((installed / name).read_bytes())
        script.chmod(0o755)
        (tmp_path / "python3").symlink_to(installed / "python")
        assert (tmp_path / "python3").exists()
        bare = {**bare, "PYTHONPATH": str(next(installed.parent.glob("lib/python3*/site-packages")))}
    done = subprocess.run([script, "--version"], env=bare, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert project.version() in done.stdout
    program = "import os; print(os.readlink(f'/proc/{os.getppid()}/exe'))"
    command = [script, "-n", "1", installed / "python", "-c", program]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=30)
    assert done.stdout.endswith("gormapy/_bin/mpiexec\n"), done.stdout + done.stderr


@pytest.mark.timeout(2 * TIMEOUT)
def test_installed_package_runs_a_job(installed, bare, tmp_path):
    program = "from gormapy import MPI; print('rank', MPI.COMM_WORLD.Get_rank(), 'of', MPI.COMM_WORLD.Get_size())"
    command = [installed / "mpiexec", "-n", "2", installed / "python", "-c", program]
    done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]


def test_licenses_name_every_linked_module():
    go = [sys.executable, "-m", "gormapy_build", "go", "list", "-deps", "-f"]
    template = "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"
    done = subprocess.run(
        [*go, template, "./gocore/cmd/mpiexec", "./pybind/core", "./pybind/build"],
        cwd=project.ROOT,
        env={**os.environ, "PYTHONPATH": "pybind/build"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    text = (project.ROOT / "pybind/build/THIRD-PARTY-LICENSES").read_text()
    assert [module for module in set(done.stdout.split()) if f"- {module}\n" not in text] == []


def test_read_only_tree_gives_metadata(tmp_path):
    """pip asks for metadata first; it must come without writing to the tree."""
    name = gormapy_build.prepare_metadata_for_build_wheel(str(tmp_path))
    assert (tmp_path / name / "METADATA").read_text().startswith("Metadata-Version: 2.4\n")
    assert (tmp_path / name / "licenses" / "LICENSE").stat().st_size > 10_000
