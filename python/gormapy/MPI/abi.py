"""What MPI 5 tells of its binary interface. gormapy has none: these are the sizes of its datatypes."""

from __future__ import annotations

from .info import Info

_FORTRAN = ("logical", "integer", "real", "double_precision")
# classes of optional types of Fortran, and their sizes in bytes
_OPTIONAL = {
    "logical": (1, 2, 4, 8, 16),
    "integer": (1, 2, 4, 8, 16),
    "real": (2, 4, 8, 16),
    "complex": (4, 8, 16, 32),
    "double_complex": ("",),
}


def _datatype(name):
    from gormapy import MPI  # at call time: the module is being made of this one

    return getattr(MPI, name.upper())


def Get_abi_version() -> tuple[int, int]:
    """Return the version of the binary interface of the MPI standard."""
    return (-1, -1)


def Get_abi_info() -> Info:
    """Return the sizes of types in the binary interface."""
    return Info.Create([(f"mpi_{name}_size", str(_datatype(name).size)) for name in ("aint", "count", "offset")])


def Get_abi_fortran_info() -> Info:
    """Return the sizes of types of Fortran."""
    info = Info.Create([(f"mpi_{name}_size", str(_datatype(name).size)) for name in _FORTRAN])
    for kind, sizes in _OPTIONAL.items():
        for size in sizes:
            there = bool(_datatype(f"{kind}{size}"))
            info.Set(f"mpi_{kind}{size}_supported", "true" if there else "false")
    return info
