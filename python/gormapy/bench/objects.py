"""Calls that pass Python objects, and calls that make communicators, windows and datatypes."""

from itertools import cycle

import numpy as np

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
        yield row(name, batches(comm, call, budget, turns=comm.size))


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


_ALIVE = (1, 100, 1000, 10_000)


def alive(MPI, comm, budget=BUDGET):
    """Time calls while many communicators, windows, receives, datatypes or groups are alive."""
    for kind in (_communicators, _windows, _receives, _datatypes, _groups):
        yield from _while_alive(MPI, comm, budget, *kind(MPI, comm))


def _while_alive(MPI, comm, budget, name, make, end, calls):
    """Time calls with more and more objects alive; `calls` returns them by name for the newest object."""
    kept = []
    try:
        for count in _ALIVE:
            what = f"with {count} {name} alive"
            try:
                while len(kept) < count:
                    kept.append(make(len(kept)))
            except MPI.Exception as error:
                yield absent(f"{next(iter(calls(kept[-1])))} {what}", error)
                return
            for call, function in calls(kept[-1]).items():
                yield row(f"{call} {what}", batches(comm, function, budget))
    finally:
        for each in kept:
            end(each)


def _communicators(MPI, comm):
    def calls(newest):
        return {"Dup + Free": lambda: comm.Dup().Free(), "allreduce(1)": lambda: newest.allreduce(1)}

    return "communicators", lambda number: comm.Dup(), MPI.Comm.Free, calls


def _windows(MPI, comm):
    mine, target = np.zeros(1), (comm.rank + 1) % comm.size

    def make(number):
        win = MPI.Win.Allocate(64, 8, comm=comm)
        win.Lock_all()
        return win

    def end(win):
        win.Unlock_all()
        win.Free()

    def put(win):
        win.Put(mine, target)
        win.Flush(target)

    def calls(newest):
        return {
            "Win.Allocate + Free": lambda: MPI.Win.Allocate(64, 8, comm=comm).Free(),
            "Put + Flush": lambda: put(newest),
        }

    return "windows", make, end, calls


def _receives(MPI, comm):
    own = comm.Dup()  # no message of another row is for these
    right, left, waiting = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size, np.zeros(1)
    there, back = np.zeros(1), np.zeros(1)

    def end(request):
        request.Cancel()
        request.Wait()

    def calls(newest):
        return {"Sendrecv": lambda: own.Sendrecv(there, right, 0, back, left, 0)}

    return "receives", lambda number: own.Irecv(waiting, left, 1 + number), end, calls


def _datatypes(MPI, comm):
    def calls(newest):
        return {"Create_vector + Commit + Free": lambda: MPI.DOUBLE.Create_vector(3, 1, 2).Commit().Free()}

    # each is another type: equal ones are one in the core
    return "datatypes", lambda number: MPI.DOUBLE.Create_vector(2, 1, 2 + number).Commit(), MPI.Datatype.Free, calls


def _groups(MPI, comm):
    everyone = comm.Get_group()

    def calls(newest):
        return {"Incl + Free": lambda: everyone.Incl([0]).Free()}

    return "groups", lambda number: everyone.Incl([number % comm.size]), MPI.Group.Free, calls
