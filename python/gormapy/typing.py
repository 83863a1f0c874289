"""What the arguments of MPI calls may be, by the names of mpi4py.typing."""

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar

from .MPI import BottomType, Datatype, InPlaceType

__all__ = [
    "Aint",
    "Bottom",
    "BufSpec",
    "BufSpecB",
    "BufSpecV",
    "BufSpecW",
    "Buffer",
    "Count",
    "Displ",
    "InPlace",
    "Offset",
    "SupportsBuffer",
    "SupportsCAI",
    "SupportsDLPack",
    "TargetSpec",
    "TypeSpec",
]


class SupportsBuffer(Protocol):
    """Object with the buffer protocol of Python."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """Create a view of the object's memory."""


class SupportsDLPack(Protocol):
    """Object with the DLPack protocol, for memory of the host."""

    def __dlpack__(self, /, *, stream: Any = None) -> object:
        """Export the data as a capsule."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return type and number of the device that has the data."""


class SupportsCAI(Protocol):
    """Object with the CUDA array interface, which gormapy refuses so far."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Describe the data."""


# An object with memory.
Buffer: TypeAlias = SupportsBuffer | SupportsDLPack | SupportsCAI

# Start of the address range.
Bottom: TypeAlias = BottomType | None

# In place of a buffer that is the other one.
InPlace: TypeAlias = InPlaceType | None

# Addresses, counts, displacements in extents, offsets in files.
Aint: TypeAlias = SupportsIndex
Count: TypeAlias = SupportsIndex
Displ: TypeAlias = SupportsIndex
Offset: TypeAlias = SupportsIndex

# A datatype, or a type code of Python or NumPy.
TypeSpec: TypeAlias = Datatype | str

# One message: a buffer alone or with count, datatype or both.
BufSpec: TypeAlias = (
    Buffer
    | tuple[Buffer, Count]
    | tuple[Buffer, TypeSpec]
    | tuple[Buffer, Count, TypeSpec]
    | tuple[Bottom, Count, Datatype]
    | list[Any]
)

# The same, where the count is that of each rank's block.
BufSpecB: TypeAlias = (
    Buffer | tuple[Buffer, Count] | tuple[Buffer, TypeSpec] | tuple[Buffer, Count, TypeSpec] | list[Any]
)

_Counts: TypeAlias = Sequence[Count]
_CountsDispls: TypeAlias = tuple[Sequence[Count], Sequence[Displ]]

# A count and a displacement for each rank.
BufSpecV: TypeAlias = (
    Buffer
    | tuple[Buffer, _Counts]
    | tuple[Buffer, _CountsDispls]
    | tuple[Buffer, TypeSpec]
    | tuple[Buffer, _Counts, TypeSpec]
    | tuple[Buffer, _CountsDispls, TypeSpec]
    | tuple[Buffer, _Counts, Sequence[Displ], TypeSpec]
    | tuple[Bottom, _CountsDispls, Datatype]
    | tuple[Bottom, _Counts, Sequence[Displ], Datatype]
    | list[Any]
)

# A datatype for each rank as well.
BufSpecW: TypeAlias = (
    tuple[Buffer, Sequence[Datatype]]
    | tuple[Buffer, _CountsDispls, Sequence[Datatype]]
    | tuple[Buffer, _Counts, Sequence[Displ], Sequence[Datatype]]
    | tuple[Bottom, _CountsDispls, Sequence[Datatype]]
    | tuple[Bottom, _Counts, Sequence[Displ], Sequence[Datatype]]
    | list[Any]
)

# Where at the target of one-sided communication.
TargetSpec: TypeAlias = (
    Displ | tuple[()] | tuple[Displ] | tuple[Displ, Count] | tuple[Displ, Count, TypeSpec] | list[Any]
)

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
