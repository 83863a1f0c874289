"""One-sided communication: windows of all kinds, targets in all forms, all ways to synchronize."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from gormapy import MPI
from gormapy.typing import TargetSpec


class Locked:
    """Context manager for an epoch at one target."""

    def __init__(self, win: MPI.Win, rank: int, *, shared: bool = False) -> None:
        self._win, self._rank = win, rank
        self._type = MPI.LOCK_SHARED if shared else MPI.LOCK_EXCLUSIVE

    def __enter__(self) -> MPI.Win:
        self._win.Lock(self._rank, self._type)
        return self._win

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._win.Unlock(self._rank)


def transfers(comm: MPI.Intracomm) -> None:
    rank, size = comm.Get_rank(), comm.Get_size()
    right = (rank + 1) % size
    win = MPI.Win.Allocate(8 * MPI.DOUBLE.Get_size(), MPI.DOUBLE.Get_size(), MPI.INFO_NULL, comm)
    values = np.arange(8.0)
    targets: list[TargetSpec | None] = [None, 0, (), (0,), (0, 8), (0, 8, MPI.DOUBLE), [0, 8, MPI.DOUBLE], (0, 8, "d")]
    for target in targets:
        win.Fence()
        win.Put(values, right, target)
        win.Fence(MPI.MODE_NOPRECEDE)
        win.Get([values, MPI.DOUBLE], right, target)
        win.Accumulate((values, 8, MPI.DOUBLE), right, target, op=MPI.MAX)
        win.Fence(MPI.MODE_NOSUCCEED)
    with Locked(win, right, shared=True):
        requests = [win.Rput(values, right), win.Rget(np.empty(8), right), win.Raccumulate(values, right, op=MPI.SUM)]
        requests.append(win.Rget_accumulate(values, np.empty(8), right))
        MPI.Request.Waitall(requests)
        win.Get_accumulate(values, np.empty(8), right, None, MPI.NO_OP)
        win.Flush(right)
    win.Free()


def atomics(comm: MPI.Intracomm) -> int:
    """Count in the memory of rank 0."""
    win = MPI.Win.Create(np.zeros(2, "q") if comm.rank == 0 else None, disp_unit=8, comm=comm)
    found, one = np.zeros(1, "q"), np.ones(1, "q")
    win.Lock_all(MPI.MODE_NOCHECK)
    win.Fetch_and_op(one, found, 0, 0, MPI.SUM)
    win.Flush_all()
    win.Compare_and_swap([one, MPI.LONG_LONG], found, found, 0, target_disp=1)
    win.Flush_local_all()
    win.Sync()
    win.Unlock_all()
    win.Free()
    return int(found[0])


def groups(comm: MPI.Intracomm) -> None:
    """Synchronize with some ranks."""
    group: MPI.Group = comm.Get_group()
    origins, neighbours = group.Incl([(comm.rank - 1) % comm.size]), group.Incl([(comm.rank + 1) % comm.size])
    win = MPI.Win.Allocate(8, comm=comm, info=MPI.INFO_NULL)
    win.Post(origins)
    win.Start(neighbours)
    win.Put(np.zeros(1), (comm.rank + 1) % comm.size)
    win.Complete()
    assert win.Wait()
    win.Free()
    for one in (origins, neighbours, group):
        one.Free()


def shared(comm: MPI.Intracomm) -> float:
    """Work in memory that the ranks of a node share."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    assert isinstance(node, MPI.Intracomm)
    win = MPI.Win.Allocate_shared(16, 8, comm=node)
    memory, unit = win.Shared_query(0)
    assert unit == 8
    view = np.frombuffer(memory, "d")  # type: ignore[call-overload,unused-ignore]
    win.Fence()
    if node.rank == 0:
        view[:] = 1.5
    win.Fence()
    total = float(view.sum())
    win.Fence()
    win.Free()
    node.Free()
    return total


def dynamic(comm: MPI.Intracomm) -> None:
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = MPI.Alloc_mem(64)
    win.Attach(memory)
    address: int = MPI.Get_address(memory)
    assert MPI.Aint_diff(MPI.Aint_add(address, 8), address) == 8 and memory.address == address and len(memory) == 64
    win.Detach(memory)
    win.Free()
    MPI.Free_mem(memory)


def attributes(comm: MPI.Intracomm) -> tuple[int, int]:
    win = MPI.Win.Allocate(32, 4, comm=comm)
    base, size, unit = win.attrs
    assert win.Get_attr(MPI.WIN_SIZE) == size == 32 and unit == 4 and base
    win.name = "memory"
    win.Set_name("a window")
    assert win.Get_name() == win.name == "a window" and win.flavor == MPI.WIN_FLAVOR_ALLOCATE
    info: MPI.Info = win.Get_info()
    info.Free()
    win.Set_errhandler(MPI.ERRORS_RETURN)
    memory = win.tomemory()
    memory[0:4] = b"abcd"
    first: int = memory[0]
    assert bytes(memory[0:4].tobytes()) == b"abcd" and first == ord("a") and memory.nbytes == 32
    model, group = win.model, win.group
    group.Free()
    win.Free()
    return model, unit


def main() -> None:
    comm = MPI.COMM_WORLD
    transfers(comm)
    assert atomics(comm) in (0, 1)
    groups(comm)
    assert shared(comm) == 3.0
    dynamic(comm)
    attributes(comm)


if __name__ == "__main__":
    main()
