"""Locks and counters of processes, and objects whose buffers are not copied into a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from gormapy import MPI
from gormapy.util import pkl5
from gormapy.util.sync import Condition, Counter, Mutex, Semaphore, Sequential


def numbers(comm: MPI.Intracomm) -> list[int]:
    counter = Counter(start=0, step=2, typecode="q", comm=comm, root=0)
    found = [next(counter), counter.next(), counter.next(1)]
    comm.Barrier()
    counter.free()
    return found


def in_turn(comm: MPI.Intracomm) -> None:
    with Sequential(comm, tag=3):
        pass
    mutex = Mutex(recursive=True, comm=comm)
    with mutex as same:
        assert same.acquire(blocking=False) and same.count() == 2 and same.locked()
        same.release()
    mutex.free()
    semaphore = Semaphore(1, bounded=True, comm=comm)
    with semaphore:
        pass
    acquired: bool = semaphore.acquire()
    assert acquired
    semaphore.release()
    semaphore.free()


def ready() -> str:
    return "ready"


def conditions(comm: MPI.Intracomm) -> str:
    condition = Condition(comm=comm)
    with condition:
        found: str = condition.wait_for(ready)
        assert condition.notify() == 0 and condition.notify_all() == 0
    condition.free()
    return found


def objects(world: MPI.Intracomm) -> float:
    comm = pkl5.Intracomm(world)
    rank, size = comm.Get_rank(), comm.Get_size()
    values = np.full(1000, float(rank))
    request: pkl5.Request = comm.isend(values, (rank + 1) % size, tag=1)
    status = MPI.Status()
    message: pkl5.Message = comm.mprobe((rank - 1) % size, 1, status)
    found: Any = message.recv(status)
    request.wait()
    several = [comm.isend(k, rank, 2) for k in range(2)]
    received: list[Any] = [comm.recv(source=rank, tag=2) for _ in several]
    pkl5.Request.waitall(several)
    assert received == [0, 1] and comm.allgather(rank) == list(range(size))
    shared: dict[str, float] = comm.bcast({"x": 1.5} if rank == 0 else None)
    return float(found.sum()) + shared["x"]


def main() -> None:
    comm = MPI.COMM_WORLD
    assert len(set(numbers(comm))) == 3
    in_turn(comm)
    assert conditions(comm) == "ready"
    assert objects(comm) == 1000.0 * ((comm.rank - 1) % comm.size) + 1.5


if __name__ == "__main__":
    main()
