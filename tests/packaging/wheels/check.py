"""Checks the files of a folder that are to be published: python check.py FOLDER, with pybind/build/requirements/release.txt.

twine, check-wheel-contents and auditwheel look at them; then what no tool of others knows: the extension uses nothing of
Python but its stable ABI and what EXCEPTIONS has, each wheel has the launcher once, and those of a machine are the same
but for their tags.
"""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

from abi3info import DATAS, FUNCTIONS
from elftools.elf.elffile import ELFFile

STABLE_SINCE = (3, 11)
# What is used beyond it: pybind/shim/limited.h and compiled.c say how that stays safe in older and newer Pythons.
EXCEPTIONS = {
    "PyObject_Vectorcall",
    "PyObject_VectorcallMethod",
    "PyVectorcall_Call",
    "PyThreadState_GetUnchecked",
    "_PyThreadState_UncheckedGet",
}
EXTENSION, LAUNCHER = "gormapy/_gormapy.abi3.so", "gormapy/_bin/mpiexec"


def tool(*command):
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def undefined(content):
    """Python's symbols that a shared object takes from the interpreter."""
    table = ELFFile(io.BytesIO(content)).get_section_by_name(".dynsym")
    names = {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
    return {name for name in names if name.lstrip("_").startswith("Py")}


def stable():
    """The symbols of the stable ABI that Python had in STABLE_SINCE."""
    known = {**FUNCTIONS, **DATAS}
    return {symbol.name for symbol, about in known.items() if (about.added.major, about.added.minor) <= STABLE_SINCE}


def check_wheel(path):
    machine = "aarch64" if "aarch64" in path.name else "x86_64"
    shown = " ".join(tool("auditwheel", "show", path).split())
    assert f'consistent with the following platform tag: "manylinux_2_17_{machine}"' in shown, shown
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    beyond = undefined(content[EXTENSION]) - stable() - EXCEPTIONS
    assert not beyond, f"{path.name} uses what is not in the stable ABI of Python {STABLE_SINCE}: {sorted(beyond)}"
    programs = [name for name, data in content.items() if data[:4] == b"\x7fELF"]
    assert sorted(programs) == [LAUNCHER, EXTENSION], programs
    for needed in ".dist-info/sboms/gormapy.cdx.json", ".dist-info/entry_points.txt":
        assert any(name.endswith(needed) for name in content), f"{path.name} has no {needed}"
    return machine, {name: data for name, data in content.items() if not name.endswith(("/WHEEL", "/RECORD"))}


def main(folder):
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    wheels = [path for path in files if path.suffix == ".whl"]
    if not wheels:
        raise SystemExit(f"{folder} has no wheels: make wheels")
    tool("twine", "check", "--strict", *files)
    tool("check_wheel_contents", *wheels)
    first = {}
    for path in wheels:
        machine, content = check_wheel(path)
        assert first.setdefault(machine, content) == content, f"{path.name} differs from the others for {machine}"
    for path in files:
        print(f"{path.stat().st_size / 2**20:5.1f} MiB  {path.name}")


main(Path(sys.argv[1]))
