"""What a library on top has: optional communicators, protocols, its own buffers, types of arguments, options."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

import gormapy
from gormapy import MPI
from gormapy.typing import Bottom, Buffer, BufSpec, BufSpecB, BufSpecV, InPlace, SupportsBuffer

gormapy.rc.threads = True
gormapy.rc(recv_mprobe=True, errors="exception")

E = TypeVar("E")
Reduction = Callable[[Any, Any], Any]
OPERATIONS: dict[str, MPI.Op] = {"sum": MPI.SUM, "max": MPI.MAX}


class Communicates(Protocol):
    """Part of a communicator, which a test may stand in for."""

    def Get_rank(self) -> int: ...
    def Get_size(self) -> int: ...
    def allgather(self, sendobj: Any) -> list[Any]: ...
    def Bcast(self, buf: BufSpec, root: int = 0) -> None: ...


class Memory:
    """Object with the buffer protocol of Python 3.12."""

    def __init__(self, size: int) -> None:
        self._data = bytearray(size)

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(self._data)


class Distributed(Generic[E]):
    """Elements of which each rank has some."""

    def __init__(self, mine: list[E], comm: MPI.Intracomm | None = None) -> None:
        self.comm = MPI.COMM_WORLD if comm is None else comm
        self.mine = mine

    def all(self) -> list[E]:
        parts: list[list[E]] = self.comm.allgather(self.mine)
        return [element for part in parts for element in part]

    def total(self, op: MPI.Op | Reduction = MPI.SUM) -> Any:
        found = None
        for element in self.mine:
            found = element if found is None else op(found, element)
        return self.comm.allreduce(found, op)


def same_everywhere(comm: Communicates, value: object) -> bool:
    return comm.allgather(value) == [value] * comm.Get_size() and comm.Get_rank() < comm.Get_size()


def gathered(comm: MPI.Comm, sent: BufSpec | InPlace, found: BufSpecB | None = None) -> None:
    comm.Gather(sent, found, root=0)


def spread(comm: MPI.Comm, spec: BufSpecV, into: npt.NDArray[np.float64]) -> None:
    comm.Scatterv(spec, into)


def address(location: Buffer | Bottom) -> int:
    return MPI.Get_address(location)


def view(obj: SupportsBuffer) -> memoryview:
    return MPI.memory.frombuffer(obj).cast("B")


@contextlib.contextmanager
def duplicate(comm: MPI.Intracomm) -> Generator[MPI.Intracomm, None, None]:
    copy = comm.Dup()
    try:
        yield copy
    finally:
        copy.Free()


def kind_of(comm: MPI.Comm) -> str:
    if comm == MPI.COMM_NULL:
        return "null"
    if isinstance(comm, MPI.Cartcomm):
        return f"{comm.ndim} dimensions"
    if isinstance(comm, MPI.Intercomm):
        return f"{comm.remote_size} others"
    similar = MPI.Comm.Compare(comm, MPI.COMM_WORLD)
    return {MPI.IDENT: "the world", MPI.CONGRUENT: "like the world"}.get(similar, "another")


def source_of(rank: int | None) -> int:
    source = MPI.ANY_SOURCE
    if rank is not None:
        source = rank
    return MPI.PROC_NULL if source == MPI.UNDEFINED else source


def main() -> None:
    comm = MPI.COMM_WORLD
    elements = Distributed([comm.rank, comm.rank])
    assert len(elements.all()) == 2 * comm.size and elements.total() == comm.size * (comm.size - 1)
    assert same_everywhere(comm, 3)
    gathered(comm, np.zeros(1), np.zeros(comm.size))
    spread(comm, (np.zeros(comm.size), [1] * comm.size), np.empty(1))
    assert address(bytearray(8)) != address(None) and len(view(bytearray(4))) == 4
    with duplicate(comm) as copy:
        assert kind_of(copy) == "like the world" and kind_of(comm) == "the world"
    assert source_of(None) == MPI.ANY_SOURCE and OPERATIONS["sum"] is MPI.SUM
    pickled = MPI.Pickle().dumps({"a": 1})
    assert MPI.pickle.loads(pickled) == {"a": 1}


if __name__ == "__main__":
    main()
