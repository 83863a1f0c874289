"""The programs of test_freed_communicators.py."""

import os
import resource
import threading
import time

import numpy as np
from rankside import MPI, fails, interrupted, rank, size, world

LONG = 1 << 20


def receive(comm, mine, into):
    return [comm.Irecv(into, comm.rank ^ 1, 3), comm.Isend(mine, comm.rank ^ 1, 3)]


def partitions(comm, mine, into):
    requests = [comm.Precv_init(into, 4, comm.rank ^ 1, 3), comm.Psend_init(mine, 4, comm.rank ^ 1, 3)]
    MPI.Prequest.Startall(requests)
    requests[1].Pready_range(0, 3)
    return requests


def alltoall(comm, mine, into):
    n = comm.remote_size if comm.Is_inter() else comm.size
    return [comm.Ialltoall([mine, LONG // n, MPI.DOUBLE], [into, LONG // n, MPI.DOUBLE])]


UNDER_WAY = {
    "messages": receive,
    "Iallreduce": lambda comm, mine, into: [comm.Iallreduce(mine, into)],
    "Ialltoall": alltoall,
    "Ibarrier": lambda comm, mine, into: [comm.Ibarrier()],
    "several": lambda comm, mine, into: [*receive(comm, mine, into), comm.Ibarrier(), comm.Iallreduce(mine, mine * 0)],
    "partitions": partitions,
}


def two_groups():
    """Return an intercommunicator whose ranks 0 and 1 of both sides are world ranks 0 and 2, and 1 and 3."""
    half = world.Split(rank % 2)
    both = half.Create_intercomm(0, world, 1 - rank % 2)
    half.Free()
    return both


def operations_under_way_complete(what, kind, end):
    for _ in range(3):
        comm = world.Dup() if kind == "intra" else two_groups()
        mine, into = np.full(LONG, float(rank)), np.zeros(LONG)
        requests = UNDER_WAY[what](comm, mine, into)
        getattr(comm, end)()
        assert comm == MPI.COMM_NULL
        if end == "Disconnect":
            assert all(request.Get_status() for request in requests)
        MPI.Request.Waitall(requests)
        if what in ("messages", "several", "partitions"):
            sender = rank ^ 1 if kind == "intra" else 2 * (rank // 2 ^ 1) + 1 - rank % 2
            assert (into == sender).all()
        if what == "Iallreduce":
            assert (into == (6 if kind == "intra" else 4 if rank % 2 == 0 else 2)).all()
        for request in requests:
            if request:
                request.Free()


def messages_to_oneself(end):
    for n in (1, 1_000_000):
        for comm in (MPI.COMM_SELF.Dup(), world.Dup()):
            into = np.zeros(n)
            requests = [comm.Irecv(into, 0, 0), comm.Isend(np.ones(n), 0, 0)]
            getattr(comm, end)()
            MPI.Request.Waitall(requests)
            assert into.all()


def disconnect_does_not_wait_for_the_dead():
    comm = world.Dup()
    if rank == 1:
        time.sleep(0.3)
        os._exit(0)
    request = comm.Irecv(np.zeros(1), 1)
    begun = time.monotonic()
    try:
        comm.Disconnect()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    else:
        raise AssertionError("rank 1 has not disconnected")
    assert time.monotonic() - begun < 20
    try:
        request.Wait()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error


def disconnect_that_is_interrupted():
    comm = world.Create_cart([size])
    key = MPI.Comm.Create_keyval(None, lambda comm, keyval, value: deleted.append(value))
    deleted = []
    comm.Set_attr(key, "kept")
    comm.name = "mine"
    if rank == 0:
        request = comm.Irecv(np.zeros(1), 1)
        for _ in range(2):
            with interrupted():
                comm.Disconnect()
            assert comm.dims == [size] and comm.name == "mine" and comm.Get_attr(key) == "kept" and not deleted
        into = np.zeros(1)
        comm.Sendrecv(np.ones(1), 0, 3, into, 0, 3)  # to itself
        assert into[0] == 1
        request.Cancel()
        request.Wait()
    comm.Disconnect()
    assert comm == MPI.COMM_NULL and deleted == ["kept"]
    for predefined in (MPI.COMM_WORLD, MPI.COMM_SELF):
        with fails(MPI.ERR_COMM, "can't be freed"):
            predefined.Disconnect()
        assert predefined
    world.Barrier()


def nothing_is_left():
    """More communicators than a rank has shared blocks for; the blocks are given back when the operations are over."""
    for _ in range(700):
        comm = world.Dup()
        request = comm.Ibarrier()
        comm.Free()
        request.Wait()
    last = world.Dup()
    last.Barrier()
    last.Free()


def persistent_messages(kind):
    """Those that were made before can be started still, until they are freed."""
    comm = world.Dup()
    mine, into = np.full(4, rank), np.zeros(4, int)
    if kind == "messages":
        requests = [comm.Recv_init(into, rank ^ 1), comm.Send_init(mine, rank ^ 1)]
    else:
        requests = [comm.Precv_init(into, 2, rank ^ 1, 0), comm.Psend_init(mine, 2, rank ^ 1)]
    comm.Free()
    others = [world.Dup() for _ in range(3)]
    for k in range(3):
        mine[:] = 10 * rank + k
        into[:] = -1
        MPI.Prequest.Startall(requests)
        if kind == "partitions":
            requests[1].Pready_range(0, 1)
        MPI.Request.Waitall(requests)
        assert (into == 10 * (rank ^ 1) + k).all(), into
    for made in (*requests, *others):
        made.Free()


def freed_by_two_threads():
    comm = world.Dup()
    again, outcomes = MPI.Comm(comm), []

    def free(which):
        try:
            which.Free()
        except MPI.Exception as error:
            outcomes.append(error.Get_error_class())
        else:
            outcomes.append(None)

    if rank == 0:
        threads = [threading.Thread(target=free, args=(which,)) for which in (comm, again)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        world.Barrier()
        for thread in threads:
            thread.join()
        assert sorted(outcomes, key=str) == [MPI.ERR_COMM, None], outcomes
    else:
        world.Barrier()
        comm.Free()
    assert world.allreduce(1) == 2


def many_with_receives():
    """Freed communicators whose receives are under way cost little."""
    into, requests = np.zeros(1), []
    for _ in range(300):
        comm = world.Dup()
        requests.append(comm.Irecv(into, rank ^ 1, 3))
        comm.Free()
    world.Barrier()
    begun = time.monotonic()
    for _ in range(300):
        world.sendrecv(None, rank ^ 1, source=rank ^ 1)
    assert time.monotonic() - begun < 20
    for request in requests:
        request.Cancel()
        request.Wait()


def offers_that_nobody_receives():
    """What a rank has sent in a channel that another one has never opened goes with the communicator."""

    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

    def round(times):
        for _ in range(times):
            comm = world.Dup()
            if rank == 0:
                request = comm.Psend_init(np.zeros(1), 1, 1)
                request.Start()
                request.Pready(0)
                request.Wait()
                request.Free()
            comm.Free()

    round(2000)
    before = resident()
    round(8000)
    assert resident() - before < 5 << 20, resident() - before
