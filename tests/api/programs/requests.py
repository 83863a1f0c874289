"""The programs of test_requests.py."""

import threading
import time

import numpy as np
import pytest
from rankside import fails, interrupted, rank, refused, size, world

from gormapy import MPI


def buffered_sends_need_no_receiver():
    room = bytearray(MPI.BSEND_OVERHEAD + 100)
    MPI.Attach_buffer(room)
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (0, 1, 1000, 300_000):
        world.Bsend(np.full(count, rank, "i4"), right, 5)  # all ranks send first
        request = world.Ibsend(np.full(count, rank, "i4"), right, 6)
        request.Wait()
        world.bsend([rank] * 10, right, 7)
        into = np.full(count, -1, "i4")
        for tag in (5, 6):
            world.Recv(into, left, tag)
            assert (into == left).all()
        assert world.recv(source=left, tag=7) == [left] * 10
    MPI.Flush_buffer()
    MPI.Iflush_buffer().Wait()
    assert MPI.Detach_buffer().nbytes == len(room)
    assert MPI.Detach_buffer() is None


def exchanges_without_blocking():
    right, left = (rank + 1) % size, (rank - 1) % size
    status = MPI.Status()
    for count in (1, 1000, 300_000):
        into = np.full(count, -1)
        request = world.Isendrecv(np.full(count, rank), right, 3, into, left, 3)
        request.Wait(status)
        assert request == MPI.REQUEST_NULL
        assert (into == left).all()
        assert (status.source, status.tag, status.Get_count(MPI.LONG)) == (left, 3, count)
        both = np.full(count, rank)
        request = world.Isendrecv_replace(both, right, source=left)
        while not request.Test(status):
            pass
        assert (both == left).all() and status.source == left
        both = np.full(count, rank)
        world.Sendrecv_replace(both, left, 1, right, 1, status)
        assert (both == right).all() and status.tag == 1
    request = world.Isendrecv(None, MPI.PROC_NULL, 0, None, MPI.PROC_NULL)
    request.Wait(status)
    assert status.source == MPI.PROC_NULL
    with fails(MPI.ERR_RANK):
        world.Isendrecv(np.zeros(1), size, 0, np.zeros(1), 0)
    short = np.zeros(1)
    request = world.Isendrecv(np.zeros(3), rank, 0, short, rank)
    with fails(MPI.ERR_TRUNCATE):
        request.Wait()


def some_of_several():
    Request = MPI.Request
    if rank == 0:
        into = np.full((4, 10), -1)
        requests = [world.Irecv(into[tag], 1, tag) for tag in range(4)]
        statuses = [MPI.Status() for _ in requests]
        assert Request.Testany(requests) == (MPI.UNDEFINED, False)
        assert Request.Testsome(requests) == []
        assert not requests[2].Get_status()
        world.send("go", 1)
        done = []
        while len(done) < 2:
            done += Request.Waitsome(requests, statuses)
        assert sorted(done) == [0, 2]
        assert (into[0] == 0).all() and (into[2] == 2).all() and (into[1] == -1).all()
        assert requests[0] == MPI.REQUEST_NULL and requests[1] != MPI.REQUEST_NULL
        world.send("go", 1)
        while not requests[3].Get_status(statuses[0]):
            pass
        assert statuses[0].tag == 3 and (into[3] == 3).all()
        assert requests[3] != MPI.REQUEST_NULL  # which Get_status leaves
        index, flag = Request.Testany(requests, statuses[1])
        assert (index, flag, statuses[1].Get_count(MPI.LONG)) == (3, True, 10)
        requests[1].Cancel()
        requests[1].Wait(statuses[0])
        assert statuses[0].Is_cancelled() and (into[1] == -1).all()
        assert Request.Testsome(requests) is None and Request.Waitsome(requests) is None
        assert Request.Testany(requests) == (MPI.UNDEFINED, True)
    else:
        world.recv(source=0)
        for tag in (2, 0):
            world.Send(np.full(10, tag), 0, tag)
        world.recv(source=0)
        world.Send(np.full(10, 3), 0, 3)


def requests_of_the_program():
    said = []

    def query(status, *args, **kwargs):
        said.append(("query", args, kwargs))
        status.Set_source(7)
        status.Set_elements(MPI.INT, 3)

    def start():
        def free(*args, **kwargs):
            said.append(("free", args, kwargs))

        def cancel(completed, *args, **kwargs):
            said.append(("cancel", completed))

        return MPI.Grequest.Start(query, free, cancel, (1,), {"two": 2})

    both = ((1,), {"two": 2})
    status = MPI.Status()
    request = start()
    assert not request.Test() and not request.Get_status()
    request.Cancel()
    assert said == [("cancel", False)]
    # completed by a thread, while this one waits with a receive
    into = np.zeros(1)
    receive = world.Irecv(into, 1 - rank)

    def finish():
        time.sleep(0.1)
        request.Complete()

    thread = threading.Thread(target=finish)
    thread.start()
    world.Send(np.ones(1), 1 - rank)
    statuses = [MPI.Status(), MPI.Status()]
    MPI.Request.Waitall([receive, request], statuses)
    thread.join()
    assert into[0] == 1 and statuses[1].source == 7 and statuses[1].Get_count(MPI.INT) == 3
    assert said[1:] == [("query", *both), ("free", *both)]
    assert request == MPI.REQUEST_NULL
    request = start()
    request.complete({"an": "object"})
    said.clear()
    assert request.Get_status(status) and status.source == 7
    assert said == [("query", *both)]
    assert request.wait() == {"an": "object"}
    assert said[1:] == [("query", *both), ("free", *both)]
    with fails(MPI.ERR_REQUEST):
        request.Complete()

    def wrong(status):
        raise ValueError("of the program")

    request = MPI.Grequest.Start(wrong)
    request.Complete()
    with fails(MPI.ERR_OTHER):
        request.Wait()


def failures_while_waiting_for_all():
    if rank == 0:
        calls = []
        op = MPI.Op.Create(lambda a, b, t: calls.append(1), True)
        array, folded, gone = np.ones(4, "i8"), np.full(4, -5, "i8"), np.zeros(4)
        statuses = []
        mine = np.zeros(4)
        requests = [world.Irecv(gone, 1, 1), world.Iallreduce(array, folded, op), world.Irecv(mine, 0, 2)]
        world.Send(np.ones(4), 0, 2)
        with fails(MPI.ERR_PROC_FAILED):
            MPI.Request.Waitall(requests, statuses)
        assert [s.Get_error() for s in statuses] == [MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED, MPI.SUCCESS]
        assert not calls and (folded == -5).all() and (mine == 1).all()
        assert not any(requests)
        import os

        os._exit(0)


WAITS = {
    "Waitall": lambda requests, statuses: MPI.Request.Waitall(requests),
    "Waitall, statuses": MPI.Request.Waitall,
    "waitall": lambda requests, statuses: MPI.Request.waitall(requests),
}

# Calls with what each needs of an array, one to write into, a datatype and an operation.
INITS = {
    "Bcast_init": lambda call, a, b, t, op: call([a, 1, t]),
    "Allreduce_init": lambda call, a, b, t, op: call([a, 1, t], [b, 1, t], op),
    "Allgather_init": lambda call, a, b, t, op: call([a, 1, t], [b, 1, t]),
    "Alltoallv_init": lambda call, a, b, t, op: call([a, [1], [0], t], [b, [1], [0], t]),
    "Alltoallw_init": lambda call, a, b, t, op: call([a, [1], [0], [t]], [b, [1], [0], [t]]),
    "Send_init": lambda call, a, b, t, op: call([a, 1, t], MPI.PROC_NULL),
    "Send": lambda call, a, b, t, op: call([a, 1, t], MPI.PROC_NULL),
    "Isend": lambda call, a, b, t, op: call([a, 1, t], MPI.PROC_NULL),
    "Recv": lambda call, a, b, t, op: call([a, 1, t], MPI.PROC_NULL),
}


def interrupted_wait_for_all_is_repeated(call):
    if rank == 0:
        arrays = np.zeros((2, 4))
        objects = call == "waitall"
        requests = [world.irecv(source=1, tag=k) if objects else world.Irecv(arrays[k], 1, k) for k in range(2)]
        statuses = []
        with interrupted():
            WAITS[call](requests, statuses)
        world.Barrier()
        result = WAITS[call](requests, statuses)
        if objects:
            assert result == [[1], [2]], result
        else:
            assert arrays.tolist() == [[1] * 4, [2] * 4], arrays
        if statuses:
            assert [s.tag for s in statuses] == [0, 1], statuses
    else:
        objects = call == "waitall"
        for k in range(2):
            world.send([k + 1], 0, k) if objects else world.Send(np.full(4, k + 1.0), 0, k)
            if k == 0:
                world.Barrier()


def datatypes_that_are_not_committed(call):
    array, into = np.zeros(2), np.zeros(2)
    add = MPI.Op.Create(lambda a, b, datatype: None, True)
    vector = MPI.DOUBLE.Create_contiguous(2)
    with fails(MPI.ERR_TYPE, "commit"):
        INITS[call](getattr(world, call), array, into, vector, add)
    vector.Commit()
    request = INITS[call](getattr(world, call), array, into, vector, add)
    if call.endswith("_init"):
        request.Start()
    if isinstance(request, MPI.Request):
        request.Wait()


def all_of(call):
    def complete(requests, statuses):
        while not getattr(MPI.Request, call)(requests, statuses):
            pass

    return complete


def one_by_one(call):
    def complete(requests, statuses):
        for _ in range(len(requests)):
            status = MPI.Status()
            made = MPI.UNDEFINED
            while made == MPI.UNDEFINED:
                made = getattr(MPI.Request, call)(requests, status)
                made = made[0] if call == "Testany" else made
            statuses[made] = status

    return complete


def some_at_a_time(call):
    def complete(requests, statuses):
        left = len(requests)
        while left:
            filled = [MPI.Status() for _ in requests]
            indices = getattr(MPI.Request, call)(requests, filled)
            for i, status in zip(indices, filled):
                statuses[i] = status
            left -= len(indices)

    return complete


# Calls that complete all requests of a list, and set a list of as many statuses.
COMPLETIONS = {
    "Waitall": all_of("Waitall"),
    "Testall": all_of("Testall"),
    "Waitany": one_by_one("Waitany"),
    "Testany": one_by_one("Testany"),
    "Waitsome": some_at_a_time("Waitsome"),
    "Testsome": some_at_a_time("Testsome"),
}


def lists_of_requests(call):
    """Sends that are complete at once and those that are not, receives, persistent requests and null ones."""
    complete = COMPLETIONS[call]
    right, left = (rank + 1) % size, (rank - 1) % size
    long = np.full(300_000, float(rank))
    into = [np.full(2, -1.0), np.full(300_000, -1.0), np.full(1, -1.0), np.full(1, -1.0)]
    prepared = [world.Send_init(np.full(1, float(rank)), right, 3), world.Recv_init(into[3], left, 3)]
    for _ in range(20):
        for array in into:
            array[:] = -1
        for request in prepared:
            request.Start()
        requests = [
            world.Isend(long[:2], right, 0),
            world.Irecv(into[1], left, 1),
            prepared[1],
            world.Irecv(into[0], left, 0),
            world.Isend(long, right, 1),
            prepared[0],
            world.Irecv(into[2][:1], left, 2),
            world.Issend(long[:1], right, 2),
            world.Isend(long[:1], MPI.PROC_NULL),
        ]
        statuses = [MPI.Status() for _ in requests]
        complete(requests, statuses)
        assert all((array == left).all() for array in into), [array[:2] for array in into]
        assert [bool(request) for request in requests] == [request in prepared for request in requests]
        received = {1: 300_000, 2: 1, 3: 2, 6: 1}
        assert [statuses[i].Get_count(MPI.DOUBLE) for i in received] == list(received.values())
        assert [statuses[i].tag for i in received] == [1, 3, 0, 2]
        assert {statuses[i].source for i in received} == {left}
        assert statuses[0].source == MPI.ANY_SOURCE and statuses[8].source in (MPI.PROC_NULL, MPI.ANY_SOURCE)
    for request in prepared:
        request.Free()


def nothing_to_complete():
    Request, undefined = MPI.Request, MPI.UNDEFINED
    inactive = world.Send_init(np.zeros(1), rank)
    for requests in ([], (), [MPI.REQUEST_NULL], [Request(), inactive], [inactive]):
        status, statuses = MPI.Status(), [MPI.Status() for _ in requests]
        for one in (status, *statuses):
            one.Set_source(7), one.Set_tag(7), one.Set_error(7)
        assert Request.Waitall(requests, statuses) and Request.Testall(requests, statuses)
        assert Request.Waitany(requests, status) == undefined
        assert Request.Testany(requests, status) == (undefined, True)
        for one in (status, *statuses):
            assert (one.source, one.tag, one.error) == (MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.SUCCESS)
        assert Request.Waitsome(requests, statuses) is None and Request.Testsome(requests, statuses) is None
    inactive.Free()
    for call in COMPLETIONS:
        for wrong in (None, 3, [None], [inactive, None], [3], MPI.REQUEST_NULL):
            refused(TypeError, lambda: getattr(Request, call)(wrong))  # noqa: B023


def failures_in_lists(call, short):
    """One of two receives is too short for its message. short: the list of statuses is, too."""
    into = np.zeros(3), np.full(2, -5.0)
    requests = [world.Irecv(into[0], rank, 1), world.Irecv(into[1][:1], rank, 2)]
    open_one = world.Irecv(np.zeros(1), rank, 3)
    world.Send(np.ones(2), rank, 1)
    world.Send(np.ones(2), rank, 2)
    statuses = [] if short else [MPI.Status() for _ in range(3)]
    Request = MPI.Request
    if call in ("Waitall", "Testall"):
        with fails(MPI.ERR_TRUNCATE):
            getattr(Request, call)(requests, statuses)
        assert [s.error for s in statuses[:2]] == [MPI.SUCCESS, MPI.ERR_TRUNCATE]
        assert [s.Get_count(MPI.DOUBLE) for s in statuses[:1]] == [2] and not any(requests)
    else:
        listed = [open_one, requests[1]] if call in ("Waitany", "Testany") else [open_one, *requests]
        with fails(MPI.ERR_TRUNCATE):
            getattr(Request, call)(listed, statuses if call.endswith("some") else MPI.Status())
        if call.endswith("some"):
            assert statuses[0].error == MPI.ERR_TRUNCATE
        assert open_one and requests[0] and not requests[1]
        requests[0].Wait()
    assert into[0].tolist() == [1, 1, 0] and into[1].tolist()[1] == -5
    assert not Request.Testall([open_one, MPI.REQUEST_NULL])
    open_one.Cancel()
    open_one.Wait()


def requests_twice_in_a_list():
    """Who completes a request in one place of a list has completed it in the other."""
    for call in ("Waitall", "Testall", "Waitsome"):
        into = np.zeros(1)
        request = world.Irecv(into, rank)
        world.Send(np.ones(1), rank)
        getattr(MPI.Request, call)([request, request])
        assert into[0] == 1 and not request


def wrong_statuses_complete_no_request(call):
    """What the program gives for statuses is looked at first: later, nobody would hear what has completed."""
    into = np.zeros(1)
    for statuses in 5, [5], [None], MPI.Status(), (s for s in [MPI.Status()]):
        request = world.Irecv(into, rank)
        world.Send(np.ones(1), rank)
        with pytest.raises(TypeError, match="statuses: expecting a list of Status objects"):
            getattr(MPI.Request, call)([request], statuses)
        assert request
        request.Wait()


def interrupted_wait_for_any_is_repeated(call):
    into = np.zeros(2)
    if rank == 0:
        requests = [world.Irecv(into[k : k + 1], 1, k) for k in range(2)]
        with interrupted():
            getattr(MPI.Request, call)(requests)
        assert all(requests)
        world.Barrier()
        assert getattr(MPI.Request, call)(requests) in (1, [1])
        assert into.tolist() == [0, 5] and requests[0] and not requests[1]
        requests[0].Cancel()
        requests[0].Wait()
    else:
        world.Barrier()
        world.Send(np.full(1, 5.0), 0, 1)


def lists_that_change_meanwhile(call):
    """Another thread empties a list while a call waits for its requests: it waits for those that were in it."""
    for _ in range(20):
        into = np.zeros(2)
        requests = [world.Irecv(into[k : k + 1], rank, k) for k in range(2)]
        before, statuses = list(requests), [MPI.Status(), MPI.Status()]

        def change():
            requests.clear()  # noqa: B023
            statuses.clear()  # noqa: B023
            for k in range(2):
                world.Send(np.ones(1), rank, k)

        thread = threading.Timer(0.005, change)
        thread.start()
        getattr(MPI.Request, call)(requests, MPI.Status() if call == "Waitany" else statuses)
        thread.join()
        MPI.Request.Waitall(before)
        assert into.tolist() == [1, 1]
