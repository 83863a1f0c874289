"""The programs of test_recorded_calls.py."""

import contextlib
import threading
import time

import numpy as np
from rankside import await_call

from gormapy import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size
a, b = np.zeros(10), np.zeros(10)


def messages_are_joined_with_their_receives():
    for i in range(3):  # eager, to wildcards
        r = comm.Isend(a, right, i)
        comm.Recv(b, MPI.ANY_SOURCE, MPI.ANY_TAG)
        r.Wait()
    p, q = comm.Send_init(a[:5], right, 11), comm.Recv_init(b, left, 11)
    for _ in range(4):
        MPI.Prequest.Startall([p, q])
        MPI.Request.Waitall([p, q])
    p.Free()
    q.Free()
    comm.Sendrecv(a[:1], right, 20, b, left, 20)
    long = np.zeros(100_000)  # rendezvous
    r = comm.Irecv(long.copy(), left, 30)
    comm.Send(long, right, 30)
    while not r.Test():
        pass
    if rank == 0:  # tags out of order, waited for out of order
        s = [comm.Isend(a[:k], 0, 40) for k in (1, 2, 3)]
        r = [comm.Irecv(b[k:], 0, 40) for k in (1, 4, 7)]
        for k in (2, 0, 1):
            r[k].Wait()
        MPI.Request.Waitall(s)
    comm.send({"a": 1}, right, 50)
    comm.recv(source=left, tag=50)
    s = comm.Isend(a, right, 60)
    m = comm.Mprobe(left, 60)
    m.Recv(b)
    s.Wait()
    comm.Isend(a, MPI.PROC_NULL).Wait()
    comm.Recv(b, MPI.PROC_NULL)


def messages_of_one_pair_and_tag_are_joined_in_order():
    if rank == 0:
        for k in range(1, 6):
            comm.Send(a[:k], 1, 5)
        comm.Send(a, 1, 4)
    else:
        comm.Recv(b, 0, 4)
        into = [np.zeros(10) for k in range(5)]
        r = [comm.Irecv(into[k], MPI.ANY_SOURCE if k % 2 else 0, 5) for k in range(5)]
        for k in (4, 2, 0, 1, 3):
            r[k].Wait()
            time.sleep(0.002)


def every_call_is_recorded_once():
    comm.Barrier()
    comm.Bcast(a, root=size - 1)
    comm.Allreduce(a, b)
    comm.Gather(a, np.zeros(10 * size) if rank == 0 else None)
    comm.Allgatherv(a[:2], [np.zeros(2 * size), [2] * size])
    comm.Ibarrier().Wait()
    comm.bcast([1, 2])
    comm.barrier()
    dup = comm.Dup()
    dup.Barrier()
    dup.Free()
    vector = MPI.DOUBLE.Create_vector(2, 1, 3).Commit()
    r = comm.Irecv([b, 1, vector], rank, 2)  # which the hot method leaves to Python
    comm.Send([a, 1, vector], rank, 2)
    r.Wait()
    with contextlib.suppress(MPI.Exception):
        comm.Send(a, size + 3)


def operations_and_epochs(make):
    memory = 800 if make == "Allocate" else np.zeros(100)
    win = getattr(MPI.Win, make)(memory, disp_unit=8, comm=comm)
    win.Fence(MPI.MODE_NOPRECEDE)
    win.Put(a, right, 5)
    win.Get(b[:2], left, 1)
    win.Fence()
    win.Fence(MPI.MODE_NOSUCCEED)
    comm.Barrier()
    win.Lock(right, MPI.LOCK_SHARED)
    win.Accumulate(a[:3], right, 20)
    win.Fetch_and_op(a[:1], b[:1], right, 30, MPI.SUM)
    win.Unlock(right)
    win.Lock_all()
    win.Rput(a[:4], right, 40).Wait()
    vector = MPI.DOUBLE.Create_vector(2, 1, 3).Commit()
    win.Get([b[:2], 2, MPI.DOUBLE], right, [50, 1, vector])
    win.Flush(right)
    win.Unlock_all()
    comm.Barrier()
    group = comm.group
    win.Post(group.Incl([left]))
    win.Start(group.Incl([right]))
    one, two, three = np.zeros(1, "l"), np.zeros(1, "l"), np.zeros(1, "l")
    win.Compare_and_swap(one, two, three, right, 60)
    win.Complete()
    win.Wait()
    comm.Barrier()
    win.Free()


def waiting_is_told_from_working():
    comm.Barrier()
    if rank == 0:
        await_call(1, "Recv")
        time.sleep(0.3)
        comm.Send(a, 1)
    else:
        comm.Recv(b, 0)
    comm.Barrier()


def threads_have_lanes_of_their_own():
    def talk(tag):
        for _ in range(20):
            comm.Sendrecv(a, 1 - rank, tag, np.zeros(10), 1 - rank, tag)

    threads = [threading.Thread(target=talk, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def error_handlers_hold_while_a_program_is_recorded():
    calls = []
    handler = MPI.Comm.Create_errhandler(lambda comm, code: calls.append(code))
    comm.Set_errhandler(handler)
    try:
        comm.Bcast(a, root=5)
        comm.Gather(a, b, root=5)
    except MPI.Exception:
        pass
    assert calls, "the program's error handler was not called"
