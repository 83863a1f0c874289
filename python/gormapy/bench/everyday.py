"""The calls of ordinary programs, each with little data, where what counts is the call itself.

Rows are named as the method. The calls between its name and a `+` belong to it.
"""

import os
import tempfile
from functools import partial
from itertools import cycle

import numpy as np

from .label import label
from .timing import BUDGET, batches, row

OBJECT = {"step": 17, "name": "heat", "values": [1.5, 2.5, 3.5]}


def _timed(comm, budget, calls):
    for name, call in calls.items():
        yield row(name, batches(comm, call, budget, turns=comm.size))


def everyday_messages(MPI, comm, budget=BUDGET):
    """Time messages that each rank sends to the next one: all kinds of calls with 8 bytes, Sendrecv also with more."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    one, got, status = np.ones(1), np.zeros(1), MPI.Status()
    columns, others = np.ones((64, 64)), np.ones((64, 64))
    column = MPI.DOUBLE.Create_vector(64, 1, 64).Commit()
    persistent = [comm.Send_init(one, right, 5), comm.Recv_init(got, left, 5)]

    def posted(send):
        def call():
            request = comm.Irecv(got, left)
            send(one, right)
            request.Wait()

        return call

    def sent(receive):
        def call():
            request = comm.Isend(one, right)
            receive()
            request.Wait()

        return call

    def probe():
        comm.Probe(left, 0, status)
        comm.Recv(got, left)

    def test():
        request = comm.Irecv(got, left)
        comm.Send(one, right)
        while not request.Test():
            pass

    def two():
        return [comm.Irecv(got, left), comm.Isend(one, right)]

    def testall():
        requests = two()
        while not MPI.Request.Testall(requests):
            pass

    def until_none(complete, none):
        def call():
            requests = two()
            while complete(requests) != none:
                pass

        return call

    def irecv():
        request = comm.irecv(source=left)
        comm.send(OBJECT, right)
        request.wait()

    def isend():
        request = comm.isend(OBJECT, right)
        comm.recv(source=left)
        request.wait()

    def start():
        for request in persistent:
            request.Start()
        for request in persistent:
            request.Wait()

    yield from _timed(
        comm,
        budget,
        {
            "Sendrecv 8 B": lambda: comm.Sendrecv(one, right, 0, got, left, 0),
            "Sendrecv_replace 8 B": lambda: comm.Sendrecv_replace(got, right, 0, left, 0),
            "Sendrecv of a column of 64": lambda: comm.Sendrecv(
                [columns, 1, column], right, 0, [others, 1, column], left, 0
            ),
            "Isend + Irecv + Waitall": lambda: MPI.Request.Waitall([comm.Isend(one, right), comm.Irecv(got, left)]),
            "Irecv + Isend + Waitall with statuses": lambda: MPI.Request.Waitall(two(), [MPI.Status(), MPI.Status()]),
            "Irecv + Isend + Testall": testall,
            "Irecv + Isend + Waitany": until_none(MPI.Request.Waitany, MPI.UNDEFINED),
            "Irecv + Isend + Testany": until_none(MPI.Request.Testany, (MPI.UNDEFINED, True)),
            "Irecv + Isend + Waitsome": until_none(MPI.Request.Waitsome, None),
            "Irecv + Isend + Testsome": until_none(MPI.Request.Testsome, None),
            "Irecv + Send + Wait": posted(comm.Send),
            "Irecv + Ssend + Wait": posted(comm.Ssend),
            "Isend + Recv + Wait": sent(lambda: comm.Recv(got, left, status=status)),
            "Isend + Probe + Recv + Wait": sent(probe),
            "Isend + Mprobe + Recv + Wait": sent(lambda: comm.Mprobe(left).Recv(got)),
            "Irecv + Send + Test": test,
            "Start + Wait of two": start,
            "irecv(dict) + send + wait": irecv,
            "isend(dict) + recv + wait": isend,
        },
    )
    for size in (64 << 10, 1 << 20, 4 << 20):
        there, here = np.ones(size // 8), np.ones(size // 8)
        call = partial(comm.Sendrecv, there, right, 0, here, left, 0)
        yield row(f"Sendrecv {label(size)}", batches(comm, call, budget))
    for request in persistent:
        request.Free()
    column.Free()


def everyday_collectives(MPI, comm, budget=BUDGET):
    """Time collectives with counts, nonblocking ones, prefix reductions, and those of neighbours: of 8 bytes a rank."""
    size, rank, roots = comm.size, comm.rank, cycle(range(comm.size))
    one, got, many, all_of_them = np.ones(1), np.zeros(1), np.ones(size), np.zeros(size)
    counts, places = [1] * size, list(range(size))
    pair, least = np.zeros(2), np.zeros(2)
    operation = MPI.Op.Create(lambda a, b, datatype: None, commute=True)
    ring = comm.Create_cart([size], periods=[True])
    two, from_two = np.ones(2), np.zeros(2)

    def gatherv():
        root = next(roots)
        comm.Gatherv(one, [all_of_them, (counts, places)] if rank == root else None, root)

    def scatterv():
        root = next(roots)
        comm.Scatterv([many, (counts, places)] if rank == root else None, got, root)

    yield from _timed(
        comm,
        budget,
        {
            "Gatherv": gatherv,
            "Scatterv": scatterv,
            "Allgatherv": lambda: comm.Allgatherv(one, [all_of_them, (counts, places)]),
            "Alltoallv": lambda: comm.Alltoallv([many, (counts, places)], [all_of_them, (counts, places)]),
            "Reduce_scatter": lambda: comm.Reduce_scatter(many, got, counts),
            "Scan": lambda: comm.Scan(one, got),
            "Exscan": lambda: comm.Exscan(one, got),
            "Allreduce MINLOC": lambda: comm.Allreduce(
                [pair, 1, MPI.DOUBLE_INT], [least, 1, MPI.DOUBLE_INT], MPI.MINLOC
            ),
            "Allreduce with an Op of the program": lambda: comm.Allreduce(one, got, operation),
            "Ibarrier + Wait": lambda: comm.Ibarrier().Wait(),
            "Ibcast + Wait": lambda: comm.Ibcast(one, next(roots)).Wait(),
            "Ireduce + Wait": lambda: comm.Ireduce(one, got, root=next(roots)).Wait(),
            "Iallreduce + Wait": lambda: comm.Iallreduce(one, got).Wait(),
            "Iallgather + Wait": lambda: comm.Iallgather(one, all_of_them).Wait(),
            "Ialltoall + Wait": lambda: comm.Ialltoall(many, all_of_them).Wait(),
            "Neighbor_allgather": lambda: ring.Neighbor_allgather(one, from_two),
            "Neighbor_alltoall": lambda: ring.Neighbor_alltoall(two, from_two),
            "neighbor_allgather(dict)": lambda: ring.neighbor_allgather(OBJECT),
        },
    )
    ring.Free()
    operation.Free()


def everyday_windows(MPI, comm, budget=BUDGET):
    """Time one-sided calls of 8 bytes that have a request, fetch, or synchronise otherwise than by a fence."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    one, got = np.ones(1), np.zeros(1)
    win = MPI.Win.Allocate(4096, 8, comm=comm)
    group = comm.Get_group()
    to, origin = group.Incl([right]), group.Incl([left])

    def post():
        win.Post(origin)
        win.Start(to)
        win.Put(one, right)
        win.Complete()
        win.Wait()

    def all_locked():
        win.Lock_all()
        win.Unlock_all()

    yield from _timed(comm, budget, {"Post + Start + Put + Complete + Wait": post, "Lock_all + Unlock_all": all_locked})

    def get_accumulate():
        win.Get_accumulate(one, got, right)
        win.Flush(right)

    win.Lock_all()
    yield from _timed(
        comm,
        budget,
        {
            "Rput + Wait": lambda: win.Rput(one, right).Wait(),
            "Rget + Wait": lambda: win.Rget(got, right).Wait(),
            "Raccumulate + Wait": lambda: win.Raccumulate(one, right).Wait(),
            "Get_accumulate + Flush": get_accumulate,
        },
    )
    win.Unlock_all()
    win.Free()
    for each in (group, to, origin):
        each.Free()


def everyday_local(MPI, comm, budget=BUDGET):
    """Time calls that ask, make or convert something on this rank."""
    one, got, room = np.ones(1), np.zeros(1), bytearray(64)
    group, ring = comm.Get_group(), comm.Create_cart([comm.size], periods=[True])

    def pack():
        MPI.DOUBLE.Pack(one, room, 0, comm)
        MPI.DOUBLE.Unpack(room, 0, got, comm)

    yield from _timed(
        comm,
        budget,
        {
            "Get_rank": comm.Get_rank,
            "Wtime": MPI.Wtime,
            "Datatype.Get_size": MPI.DOUBLE.Get_size,
            "Cartcomm.Shift": lambda: ring.Shift(0, 1),
            "Cartcomm.Get_coords": lambda: ring.Get_coords(comm.rank),
            "Get_group + Free": lambda: comm.Get_group().Free(),
            "Group.Incl + Free": lambda: group.Incl([0]).Free(),
            "Group.Translate_ranks": lambda: group.Translate_ranks([0], group),
            "Pack + Unpack 8 B": pack,
        },
    )
    ring.Free()
    group.Free()


def everyday_files(MPI, comm, budget=BUDGET):
    """Time accesses to a file of all ranks, by itself and by all together."""
    folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    path = os.path.join(folder, "file")
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    for size in (8, 1 << 20):
        data, at = np.ones(size // 8), comm.rank * size
        for name in ("Write_at", "Read_at", "Write_at_all", "Read_at_all"):
            yield row(f"{name} {label(size)}", batches(comm, partial(getattr(file, name), at, data), budget))
    file.Close()
    if comm.rank == 0:
        os.remove(path)
        os.rmdir(folder)
