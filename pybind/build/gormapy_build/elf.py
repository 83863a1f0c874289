"""What a 64-bit little-endian ELF file asks of the system it is loaded on."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

from .toolchain import GLIBC

# The libraries of PEP 600's manylinux_2_17 policy that this project could come to need.
ALLOWED = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libresolv.so.2",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_DT_FLAGS, _DF_BIND_NOW, _PT_GNU_RELRO = 30, 8, 0x6474E552
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF


@dataclass
class Needs:
    """Libraries, and per library the symbol versions, that the loader must find."""

    libraries: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    run_paths: list[str] = field(default_factory=list)
    at_once: bool = False  # functions are looked up when it is loaded, and their table is read-only then


def needs(path: Path) -> Needs:
    """Reads the dynamic section through the program headers, as the loader does."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise SystemExit(f"{path} is not a 64-bit little-endian ELF file.")
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]

    def place(address: int) -> int:
        for kind, _, start, virtual, _, length in segments:
            if kind == _PT_LOAD and virtual <= address < virtual + length:
                return int(start) + address - int(virtual)
        raise SystemExit(f"{path} has a dynamic entry outside its segments.")

    entries: list[tuple[int, int]] = []
    for kind, _, start, _, _, length in segments:
        if kind == _PT_DYNAMIC:
            entries = [struct.unpack_from("<qQ", data, at) for at in range(start, start + length, 16)]
    values = dict(entries)
    relro = any(kind == _PT_GNU_RELRO for kind, *_ in segments)
    found = Needs(at_once=relro and bool(values.get(_DT_FLAGS, 0) & _DF_BIND_NOW))
    if _DT_STRTAB not in values:
        return found  # a static program
    strings = place(values[_DT_STRTAB])

    def text(at: int) -> str:
        return data[strings + at : data.index(b"\0", strings + at)].decode()

    found.libraries = [text(value) for tag, value in entries if tag == _DT_NEEDED]
    found.run_paths = [text(value) for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH)]
    at = place(values[_DT_VERNEED]) if _DT_VERNEED in values else 0
    for _ in range(values.get(_DT_VERNEEDNUM, 0)):
        _, entries_here, _, first, following = struct.unpack_from("<HHIII", data, at)
        version_at = at + first
        for _ in range(entries_here):
            _, _, _, name, after = struct.unpack_from("<IHHII", data, version_at)
            found.versions.append(text(name))
            version_at += after
        at += following
    return found


def objections(path: Path) -> list[str]:
    """Why a file does not qualify for manylinux_2_17; empty if it does."""
    what = needs(path)
    found = [f"needs {name}" for name in what.libraries if name not in ALLOWED]
    found += [f"has the run path {name}" for name in what.run_paths]
    return found + [f"needs {name}" for name in what.versions if not _is_old(name)]


def _is_old(name: str) -> bool:
    """Whether a symbol version is one that every glibc of the policy's age has."""
    family, _, version = name.partition("_")
    if family != "GLIBC":
        return family == "GCC"
    return re.fullmatch(r"[\d.]+", version) is not None and _number(version) <= _number(GLIBC)


def platform_tag(machine: str, *paths: Path) -> str:
    """The wheel's platform: manylinux only if every file qualifies."""
    reasons = [f"{path.name} {why}" for path in paths for why in objections(path)]
    if reasons:
        print(f"gormapy: not a manylinux wheel: {'; '.join(reasons)}", flush=True)
        return f"linux_{machine}"
    return f"manylinux_{GLIBC.replace('.', '_')}_{machine}.manylinux2014_{machine}"


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
