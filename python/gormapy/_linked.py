"""Libraries that call the C library of an MPI, and so can't use gormapy: their import says so under gormapy.run.

The objects of gormapy.MPI have no handle of a C library in them. A library that takes one for it would read arbitrary
memory, since Cython compares only the sizes of the classes.
"""

import os
import struct
import sys

# Packages that take the handles of mpi4py's objects, or the address of its library; those that do it by ctypes have
# no extension module that `watch` could see.
PACKAGES = ("dolfinx", "mpi4jax", "mpi4torch", "numba_mpi", "petsc4py", "slepc4py")
_ALTERNATIVES = {
    "h5py": ("", "install the h5py of the package index, which is built without MPI"),
    "numba_mpi": ("gormapy.numba", "gormapy.numba has calls for functions that Numba compiles"),
}
_LIBRARIES = (b"libmpi", b"libpmpi")  # how the names begin of what an MPI consists of


def reason(name):
    """Return why a library can't be imported."""
    text = (
        f"{name} calls the C library of an MPI, and gormapy is none: run this program with mpi4py "
        f"and the MPI that {name} is built with, without gormapy.run"
    )
    module, alternative = _ALTERNATIVES.get(name, ("", ""))
    return f"{text}; or {alternative}" if alternative and (not module or _is_there(module)) else text


def _is_there(module):
    from importlib.util import find_spec

    return find_spec(module) is not None


def find(name, path, finder):
    """Return a spec whose import fails for a package that can't use gormapy, or None; ask all finders but this one."""
    for other in sys.meta_path:
        spec = None if other is finder else getattr(other, "find_spec", lambda *_: None)(name, path, None)
        if spec is not None:
            break
    else:
        return None
    if name == "h5py" and not _is_parallel_h5py(spec):
        return None
    spec.loader = _Refusal
    return spec


class _Refusal:
    """Loader of a package that can't use gormapy."""

    @staticmethod
    def create_module(spec):
        raise ImportError(reason(spec.name), name=spec.name, path=spec.origin)

    @staticmethod
    def exec_module(module):
        pass


def _is_parallel_h5py(spec):
    """Return whether h5py is built with MPI: its module of properties takes communicators of mpi4py."""
    for folder in spec.submodule_search_locations or ():
        for entry in os.scandir(folder):
            if entry.name.startswith("h5p.") and entry.name.endswith(".so"):
                return _mentions_mpi4py(entry.path)
    return False


# Extension modules
# -----------------


def watch():
    """Let the import of an extension module fail that is compiled with mpi4py and linked with an MPI."""
    from importlib.machinery import ExtensionFileLoader

    create = ExtensionFileLoader.create_module
    if getattr(create, "watches", False):
        return

    def create_module(self, spec):
        if spec.origin and any(n.startswith(_LIBRARIES) for n in needed(spec.origin)) and _mentions_mpi4py(spec.origin):
            raise ImportError(reason(spec.name), name=spec.name, path=spec.origin)
        return create(self, spec)

    create_module.watches = True
    ExtensionFileLoader.create_module = create_module


def _mentions_mpi4py(path):
    with open(path, "rb") as file:
        return b"mpi4py" in file.read()


def needed(path):
    """Return the names of the shared libraries that an ELF file names, none for another file."""
    try:
        with open(path, "rb") as file:
            return _needed(file)
    except (OSError, struct.error):
        return []


def _needed(file):
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":  # little-endian, 64 bits, as gormapy's platforms are
        return []
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    if size != 56:
        return []
    file.seek(offset)
    table = file.read(size * count)
    loaded, entries = [], []
    for at in range(0, len(table), size):
        kind, _, start, address, _, length = struct.unpack_from("<IIQQQQ", table, at)
        if kind == 1:  # PT_LOAD
            loaded.append((address, start, length))
        elif kind == 2:  # PT_DYNAMIC
            file.seek(start)
            dynamic = file.read(length)
            entries = list(struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]))
    strings = dict(entries).get(5, 0)  # DT_STRTAB
    names = []
    for address, start, length in loaded:
        if address <= strings < address + length:
            for tag, value in entries:
                if tag == 1:  # DT_NEEDED
                    file.seek(start + strings - address + value)
                    names.append(file.read(256).partition(b"\0")[0])
    return names
