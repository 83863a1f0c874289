"""Datatypes: derived ones, their contents, packing, those of NumPy."""

from __future__ import annotations

import numpy as np

from gormapy import MPI
from gormapy.typing import TypeSpec
from gormapy.util import dtlib

CODES: dict[str, MPI.Datatype] = {"d": MPI.DOUBLE, "i": MPI.INT, "b": MPI.SIGNED_CHAR}


def resolved(spec: TypeSpec) -> MPI.Datatype:
    return CODES[spec] if isinstance(spec, str) else spec


def derived() -> list[int]:
    made = [
        MPI.INT.Create_contiguous(3),
        MPI.INT.Create_vector(2, 1, 3),
        MPI.INT.Create_hvector(2, 1, 12),
        MPI.INT.Create_indexed([1, 2], (0, 3)),
        MPI.INT.Create_hindexed((1, 2), [0, 12]),
        MPI.INT.Create_indexed_block(2, [0, 4]),
        MPI.INT.Create_subarray([4, 4], [2, 2], [1, 1], MPI.ORDER_C),
        MPI.INT.Create_resized(0, 16),
        MPI.DOUBLE.Dup(),
        MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]),
    ]
    sizes = [one.Commit().Get_size() for one in made]
    lb, extent = made[-1].Get_extent()
    assert (lb, extent) == (made[-1].lb, made[-1].extent) and made[0].combiner == MPI.COMBINER_CONTIGUOUS
    base, combiner, params = made[0].decode()
    assert base == MPI.INT and combiner == "CONTIGUOUS" and params["count"] == 3
    integers, addresses, counts, types = made[1].Get_contents()
    assert integers == [2, 1, 3] and not addresses and isinstance(counts, list) and types == [MPI.INT]
    for one in made:
        one.Free()
    return sizes


def packed(comm: MPI.Comm) -> int:
    space = bytearray(MPI.INT.Pack_size(4, comm))
    position = MPI.INT.Pack(np.arange(4, dtype="i"), space, 0, comm)
    found = np.empty(4, "i")
    MPI.INT.Unpack(space, 0, found, comm)
    assert found.tolist() == [0, 1, 2, 3]
    return position


def records() -> str:
    kind = np.dtype([("n", "i4"), ("x", "f8")], align=True)
    datatype = dtlib.from_numpy_dtype(kind)
    assert dtlib.to_numpy_dtype(datatype).itemsize == kind.itemsize and dtlib.from_numpy_dtype("d").Get_size() == 8
    datatype.name = "record"
    name = datatype.Get_name()
    datatype.Free()
    assert MPI.Datatype.fromcode("d").tocode() == "d" and MPI.DOUBLE.typestr == MPI.Datatype.fromcode("d").typestr
    return name


def main() -> None:
    assert derived()[0] == 12
    assert packed(MPI.COMM_SELF) == 16
    assert records() == "record"
    assert resolved("i") == resolved(MPI.INT)


if __name__ == "__main__":
    main()
