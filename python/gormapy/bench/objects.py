"""Calls that pass Python objects, and calls that make communicators, windows and datatypes."""

from itertools import cycle

from .timing import BUDGET, absent, batches, row

OBJECT = {"step": 17, "name": "heat", "values": [1.5, 2.5, 3.5]}


def objects(MPI, comm, budget=BUDGET):
    """Time messages and collectives of a small dictionary, and allreduce of a number."""
    roots, right, left = cycle(range(comm.size)), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    calls = {
        "allreduce(1)": lambda: comm.allreduce(1),
        "bcast(dict)": lambda: comm.bcast(OBJECT, next(roots)),
        "gather(dict)": lambda: comm.gather(OBJECT, next(roots)),
        "allgather(dict)": lambda: comm.allgather(OBJECT),
        "alltoall(dicts)": lambda objects=[OBJECT] * comm.size: comm.alltoall(objects),
        "sendrecv(dict)": lambda: comm.sendrecv(OBJECT, right, source=left),
    }
    for name, call in calls.items():
        yield row(name, batches(comm, call, budget))


def creation(MPI, comm, budget=BUDGET):
    """Time the making and freeing of communicators, windows and datatypes."""
    calls = {
        "Dup + Free": lambda: comm.Dup().Free(),
        "Split + Free": lambda: comm.Split(0, comm.rank).Free(),
        "Win.Allocate 4 KiB + Free": lambda: MPI.Win.Allocate(4096, comm=comm).Free(),
        "Win.Create(None) + Free": lambda: MPI.Win.Create(None, comm=comm).Free(),
        "Create_vector + Commit + Free": lambda: MPI.DOUBLE.Create_vector(3, 1, 2).Commit().Free(),
    }
    for name, call in calls.items():
        yield row(name, batches(comm, call, budget))


def alive(MPI, comm, budget=BUDGET):
    """Time Dup and Free, and allreduce on the newest communicator, while many are alive."""
    kept = []
    try:
        for count in (1, 100, 1000, 10_000):
            what = f"with {count} communicators alive"
            try:
                while len(kept) < count:
                    kept.append(comm.Dup())
            except MPI.Exception as error:
                yield absent(f"Dup + Free {what}", error)
                return
            yield row(f"Dup + Free {what}", batches(comm, lambda: comm.Dup().Free(), budget))
            yield row(f"allreduce(1) {what}", batches(comm, lambda newest=kept[-1]: newest.allreduce(1), budget))
    finally:
        for each in kept:
            each.Free()
