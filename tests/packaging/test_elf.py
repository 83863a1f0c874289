"""The check that a wheel may call itself manylinux_2_17."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from gormapy import _ext
from gormapy_build import elf


def shared_objects():
    folder = Path(sysconfig.get_path("stdlib")) / "lib-dynload"
    return [*sorted(folder.glob("*.so"))[:10], Path(sys.executable).resolve()]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf to compare with")
@pytest.mark.parametrize("path", shared_objects(), ids=lambda path: path.name.split(".")[0])
def test_agrees_with_readelf(path):
    dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    versions = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True, check=True).stdout
    found = elf.needs(path)
    assert found.libraries == re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert sorted(found.versions) == sorted(
        re.findall(r"Name: (\S+)\s+Flags: ", versions.split("version needs", 1)[-1])
    )
    assert found.run_paths == re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic)


def test_newer_glibc_foreign_library_and_run_path_are_objections(monkeypatch):
    what = elf.Needs(
        libraries=["libc.so.6", "libpython3.11.so.1.0"],
        versions=["GLIBC_2.17", "GLIBC_2.3.4", "GLIBC_2.34", "GLIBC_PRIVATE", "GLIBCXX_3.4"],
        run_paths=["/opt/lib"],
    )
    monkeypatch.setattr(elf, "needs", lambda path: what)
    assert elf.objections(Path("x.so")) == [
        "needs libpython3.11.so.1.0",
        "has the run path /opt/lib",
        "needs GLIBC_2.34",
        "needs GLIBC_PRIVATE",
        "needs GLIBCXX_3.4",
    ]
    assert elf.platform_tag("x86_64", Path("x.so")).startswith("linux_")


def test_not_an_elf_file(tmp_path):
    path = tmp_path / "x.so"
    path.write_bytes(b"#!/bin/sh\n")
    with pytest.raises(SystemExit, match="not a 64-bit little-endian ELF file"):
        elf.needs(path)


def test_the_extension_is_hardened():
    path = Path(_ext.fast.__file__)
    assert elf.needs(path).at_once
    assert b"\0__stack_chk_fail\0" in path.read_bytes()
