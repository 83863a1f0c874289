"""Calls of gormapy.numba, in compiled functions and in Python."""

import contextlib
import os
import signal
import threading
import time
import weakref

import numba
import numpy as np

import gormapy.numba as nm
from gormapy import MPI

comm = MPI.COMM_WORLD
DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
WAYS = {"python": lambda f: f, "njit": numba.njit, "nogil": numba.njit(nogil=True)}


def pattern(rank, n, dtype):
    """Return n elements that differ from rank to rank."""
    return ((np.arange(n) + rank) % 2 if dtype == "?" else np.arange(n) % 50 + rank).astype(dtype)


def layouts(dtype):
    """Yield arrays of 6 elements: in one piece, with gaps, and by columns."""
    yield np.zeros(6, dtype)
    yield np.zeros(12, dtype)[::2]
    yield np.zeros((3, 2), dtype).T


def _ring(sent, received, right, left):
    status = nm.sendrecv(sent, right, received, left, 3, 3)
    status += nm.send(sent, right, 4) if right != left else 0
    status += nm.recv(received, left, 4) if right != left else 0
    return status


def _spread(data, everything, root):
    status = nm.bcast(data, root)
    status += nm.allgather(data, everything, data.size)
    status += nm.gather(data, everything, data.size, root)
    return status + nm.scatter(everything, data, data.size, root)


def each_dtype(way, dtype):
    ring, spread = WAYS[way](_ring), WAYS[way](_spread)
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    for sent, received in zip(layouts(dtype), layouts(dtype)):
        sent[...] = pattern(rank, 6, dtype).reshape(sent.shape)
        if size > 2:
            status = nm.sendrecv(sent, right, received, left)
            if rank == 0:
                assert ring(sent, received, right, left) == 0
            else:  # receives first, so that no message waits for another one
                status += nm.sendrecv(sent, right, received, left, 3, 3)
                received[...] = 0
                status += nm.recv(received, left, 4)
                status += nm.send(sent, right, 4)
                assert status == 0, nm.last_error()
        else:
            assert ring(sent, received, right, left) == 0
        assert (received == pattern(left, 6, dtype).reshape(sent.shape)).all(), (dtype, received)
        everything = np.zeros(6 * size, dtype)
        assert spread(received, everything, size - 1) == 0, nm.last_error()
        one = pattern((size - 2) % size, 6, dtype)
        if rank == size - 1:
            assert (everything == np.tile(one, size)).all()
        assert (received.ravel() == one).all()


def _reduced(sendobj, recvobj, root):
    status = nm.allreduce(sendobj, recvobj)
    status += nm.allreduce(sendobj, recvobj, nm.Operator.SUM)
    return status + nm.reduce(sendobj, recvobj, nm.Operator.SUM, root)


def _extremes(sendobj, recvobj):
    status = nm.allreduce(sendobj, recvobj, nm.Operator.MAX)
    return status, nm.allreduce(sendobj, recvobj, nm.Operator.MIN), nm.allreduce(sendobj, recvobj, nm.Operator.PROD)


def reductions(way):
    reduced, extremes = WAYS[way](_reduced), WAYS[way](_extremes)
    rank, size = comm.rank, comm.size
    for dtype in ("i4", "f8", "c16") if way == "python" else ("f8",):  # compiling takes seconds for each layout
        for sent, received in zip(layouts(dtype), layouts(dtype)):
            sent[...] = rank + 1
            assert reduced(sent, received, 0) == 0, nm.last_error()
            assert (received == size * (size + 1) // 2).all()
    received = np.zeros(1)
    assert reduced(rank + 1, received, 0) == 0 and received[0] == size * (size + 1) // 2
    assert reduced(rank + 0.5, received, 0) == 0 and received[0] == size * size / 2
    assert extremes(np.array([rank + 1.0]), received) == (0, 0, 0)
    assert received[0] == np.prod(np.arange(1.0, size + 1))
    wrong = np.zeros(1, "c16")
    assert extremes(wrong, wrong.copy())[0] == MPI.ERR_OP


def _exchange(sent, received, right, left):
    status, out = nm.isend(sent, right, 5)
    got, into = nm.irecv(received, left, 5)
    return status + got + nm.waitall((out, into)), out[0], into[0]


def _one_by_one(sent, received, right, left):
    requests = np.zeros(4, nm.RequestType)
    for k in range(4):
        status, request = nm.irecv(received[k], left, k)
        assert status == 0
        requests[k] = request[0]
    total = 0
    outs = np.zeros(4, nm.RequestType)
    for k in range(4):
        status, request = nm.isend(sent[k], right, k)
        assert status == 0
        outs[k] = request[0]
    for _ in range(2):
        status, index = nm.waitany(requests)
        assert status == 0 and requests[index] == 0
        total += 1 << index
    flag = False
    while not flag:
        status, flag, index = nm.testany(requests)
        assert status == 0
    total += 1 << index
    flag = False
    while not flag:
        status, flag = nm.testall(requests)
        assert status == 0
    status, flag, index = nm.testany(requests)
    assert status == 0 and flag and index == MPI_UNDEFINED
    status, index = nm.waitany(requests)
    assert status == 0 and index == MPI_UNDEFINED
    flag = False
    while not flag:
        status, flag = nm.test(outs[:1])
        assert status == 0
    status = nm.wait(outs[1:2])
    assert status == 0 and outs[1] == 0
    status = nm.wait(outs[1:2])  # complete already
    assert status == 0
    status = nm.waitall(outs)
    assert status == 0
    return total


MPI_UNDEFINED = MPI.UNDEFINED


def _temporaries(right, left, n):
    wrong = 0
    for k in range(20):
        status, out = nm.isend(np.full(n, 1.0 * k), right, 6)
        junk = np.full(n, -1.0)  # takes the memory of an array that was freed
        received = np.zeros(n)
        got, into = nm.irecv(received, left, 6)
        wrong += status + got + nm.wait(into) + nm.wait(out) + (received != 1.0 * k).sum() + (junk[0] > 0)
    return wrong


def temporaries(way):
    """A request keeps the array that is sent."""
    import gc
    import weakref

    call, right, left = WAYS[way](_temporaries), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for n in (1, 1000, 300_000):
        assert call(right, left, n) == 0
    send = WAYS[way](_send_later)
    data = np.ones(4)
    gone = weakref.ref(data)
    status, request = send(data, comm.rank)
    del data
    gc.collect()
    assert status == 0 and gone() is not None
    received = np.zeros(4)
    assert nm.recv(received, comm.rank, 7) == 0 and (received == 1).all()
    assert nm.wait(request) == 0
    del request
    gc.collect()
    assert gone() is None


def _send_later(data, dest):
    return nm.isend(data, dest, 7)


def requests(way):
    exchange, one_by_one = WAYS[way](_exchange), WAYS[way](_one_by_one)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    received = np.zeros(6)
    for sent in layouts("f8"):
        sent[...] = pattern(comm.rank, 6, "f8").reshape(sent.shape)
        assert exchange(sent, received, right, left) == (0, 0, 0)
        assert (received == pattern(left, 6, "f8")).all()
    sent, received = np.arange(8.0).reshape(4, 2) + comm.rank, np.zeros((4, 2))
    assert one_by_one(sent, received, right, left) in (7, 11, 13, 14)
    assert (received == np.arange(8.0).reshape(4, 2) + left).all()
    for sequence in ((), [], np.zeros(0, nm.RequestType)):
        assert nm.waitall(sequence) == 0
        assert nm.testall(sequence) == (0, True)


def _the_process(comm):
    status = nm.barrier(comm)
    return nm.initialized(), nm.rank(comm), nm.size(comm), nm.wtime(), nm.query_thread(), status


def the_process(way):
    part = comm.Split(comm.rank % 2)
    found = WAYS[way](_the_process)(nm.handle(part))
    assert found[:3] == (True, part.rank, part.size) and found[4:] == (MPI.THREAD_MULTIPLE, 0)
    assert abs(found[3] - MPI.Wtime()) < 5
    assert nm.rank() == comm.rank and nm.size() == comm.size
    part.Free()


def _one_sided(win, origin, back, target):
    status = nm.put(win, origin, target, 1) + nm.flush(win, target) + nm.flush_all(win)
    status += nm.get(win, back, target, 1)
    status += nm.accumulate(win, origin, target, 1) + nm.flush(win, target)
    status += nm.put(win, 7.5, target, 0) + nm.flush(win, target)
    return status


def _counted(win, result, target):
    before = nm.fetch_and_op(win, 1.0, result, target, 7)
    return before + nm.fetch_and_op(win, np.ones(1), result, target, 7, nm.Operator.SUM)


def one_sided(way, flavor):
    """A rank that calls nothing gets what others put, in windows that are mapped and in those that are not."""
    access, counted = WAYS[way](_one_sided), WAYS[way](_counted)
    memory = np.zeros(8)
    win = MPI.Win.Create(memory, 8, comm=comm) if flavor == "create" else MPI.Win.Allocate(64, 8, comm=comm)
    memory = np.frombuffer(win, "f8") if flavor == "allocate" else memory
    handle, target = nm.handle(win), (comm.rank + 1) % comm.size
    win.Lock_all()
    comm.Barrier()
    for origin, back in zip(layouts("f8"), layouts("f8")):
        origin[...] = pattern(comm.rank, 6, "f8").reshape(origin.shape)
        assert access(handle, origin, back, target) == 0, nm.last_error()
        assert (back == origin).all()
        comm.Barrier()
        win.Sync()
        assert (memory[1:7] == 2 * pattern((comm.rank - 1) % comm.size, 6, "f8")).all() and memory[0] == 7.5
        comm.Barrier()
    result = np.zeros(1)
    assert counted(handle, result, 0) == 0
    comm.Barrier()
    if comm.rank == 0:
        assert nm.get(handle, result, 0, 7) == 0 and result[0] == 2 * comm.size
    comm.Barrier()
    assert nm.put(handle, result, 99) == MPI.ERR_RANK and "99" in nm.last_error()
    assert nm.put(handle, result, -1) == MPI.ERR_RANK
    assert nm.put(handle, np.zeros(9), target) == MPI.ERR_RMA_RANGE
    assert nm.put(handle, result, target, -1) in (MPI.ERR_RMA_RANGE, MPI.ERR_DISP)
    assert nm.put(handle, result, MPI.PROC_NULL) == 0
    assert nm.put(handle, np.zeros(0), target) == 0
    assert nm.flush(handle, -1) == MPI.ERR_RANK and nm.flush(handle, 99) == MPI.ERR_RANK
    assert nm.fetch_and_op(handle, np.zeros(2), result, target) == MPI.ERR_COUNT
    comm.Barrier()
    win.Unlock_all()
    assert nm.put(handle, result, target) == MPI.ERR_RMA_SYNC
    assert nm.flush(handle, target) == MPI.ERR_RMA_SYNC
    win.Free()
    for wrong in (handle, 0, -1, 1 << 60):
        assert nm.put(wrong, result, target) == MPI.ERR_WIN
        assert nm.get(wrong, result, target) == MPI.ERR_WIN
        assert nm.flush(wrong, target) == MPI.ERR_WIN


def _send_it(data, dest, tag):
    return nm.send(data, dest, tag)


def _receive_it(data, source, tag):
    return nm.recv(data, source, tag)


def _wait_for_it(request):
    return nm.wait(request)


def wrong_arguments():
    one, size = np.zeros(1), comm.size
    send, recv = numba.njit(_send_it), numba.njit(_receive_it)
    for call in (send, nm.send):
        assert call(one, size, 0) == MPI.ERR_RANK and "rank" in nm.last_error()
        assert call(one, -7, 0) == MPI.ERR_RANK
        assert call(one, 0, -3) == MPI.ERR_TAG
        assert call(one, 1 << 40, 0) == MPI.ERR_RANK
        assert call(one, MPI.PROC_NULL, 0) == 0
        assert call(np.zeros(0), MPI.PROC_NULL, 0) == 0
    for call in (recv, nm.recv):
        assert call(one, size, 0) == MPI.ERR_RANK
        assert call(one, 0, -3) == MPI.ERR_TAG
    for wrong in (0, 99, -1, 1 << 60):
        assert nm.send(one, 0, 0, wrong) == MPI.ERR_COMM
        assert nm.size(wrong) == nm.rank(wrong) == 0
        assert nm.barrier(wrong) == MPI.ERR_COMM
    assert nm.bcast(one, size) == MPI.ERR_ROOT
    assert nm.allgather(one, np.zeros(0), 1) == MPI.ERR_COUNT
    assert nm.allgather(one, one, 1 << 62) == MPI.ERR_COUNT
    assert nm.scatter(np.zeros(size - 1), one, 1, comm.rank) == MPI.ERR_COUNT
    assert nm.gather(one, np.zeros(size - 1), 1, comm.rank) == MPI.ERR_COUNT
    assert nm.allreduce(np.zeros(2), one) == MPI.ERR_COUNT
    assert nm.allreduce(one, one.copy(), 99) == MPI.ERR_OP
    for requests in (np.full(2, 12345), np.full(2, -1)):
        assert nm.wait(requests) == MPI.ERR_REQUEST and requests[0] == 0
    assert nm.wait(np.zeros(0, "q")) == MPI.ERR_REQUEST and nm.test(np.zeros(0, "q"))[0] == MPI.ERR_REQUEST
    for call in (nm.testall, nm.testany, nm.waitany):
        assert call(np.full(2, 12345))[0] == MPI.ERR_REQUEST
    assert nm.irecv(np.zeros(4)[::2], 0)[0] == MPI.ERR_BUFFER
    longer, (status, request) = np.zeros(2), nm.isend(np.ones(2), comm.rank, 9)
    assert status == 0 and nm.recv(one, comm.rank, 9) == MPI.ERR_TRUNCATE
    assert nm.wait(request) in (0, MPI.ERR_TRUNCATE)
    constant = np.zeros(1)
    constant.flags.writeable = False
    refused = (
        (lambda a: nm.send(a, 0), np.zeros(1, "f2"), "float16 can't be sent"),
        (lambda a: nm.recv(a, 0), constant, "read-only"),
        (lambda a: nm.recv(a, 0), 5, "expecting an array"),
        (lambda a: nm.send(a, 0.5), one, "expecting an integer"),
        (lambda a: nm.send(a, 0, "tag"), one, "expecting an integer"),
        (lambda a: nm.allreduce(a, a.real), np.zeros(1, "c16"), "different types"),
        (_wait_for_it, one, "array of requests"),
    )
    for function, argument, text in refused:
        for call, kind in ((function, TypeError), (numba.njit(function), numba.core.errors.TypingError)):
            try:
                call(argument)
            except kind as error:
                assert text in str(error), str(error)
            else:
                raise AssertionError(text)
    try:
        nm.send(np.array([object()]), 0)
    except TypeError as error:
        assert "an array of object" in str(error)
    text = np.array(str(comm.rank), "c")
    assert nm.bcast(text, 0) == 0 and text.tobytes() == b"0"
    try:
        nm.send(np.zeros(1, "M8[s]"), 0)
    except TypeError as error:
        assert "datetime64" in str(error)
    try:
        nm.handle(5)
    except TypeError as error:
        assert "expecting a Comm or a Win" in str(error)
    assert longer.size == 2


@numba.njit(parallel=True)
def _in_parallel(sent, received, other):
    bad = np.zeros(4, np.int64)
    for k in numba.prange(4):
        if k % 2 == 0:
            bad[k] = nm.send(sent[k], other, k) + nm.send(sent[k + 1], other, k + 1)
        else:
            bad[k] = nm.recv(received[k - 1], other, k - 1) + nm.recv(received[k], other, k)
    return bad.sum()


def threads_of_numba():
    sent, received = np.arange(8.0).reshape(4, 2) + comm.rank, np.zeros((4, 2))
    other = comm.size - 1 - comm.rank
    assert _in_parallel(sent, received, other) == 0
    assert (received == np.arange(8.0).reshape(4, 2) + other).all()


def _receive(data, source):
    return nm.recv(data, source, 8)


def other_threads_go_on(way):
    """A call that waits leaves the GIL to other threads."""
    receive, data = WAYS[way](_receive), np.zeros(1)
    if comm.rank == 0:
        assert WAYS[way](_receive)(data, MPI.PROC_NULL) == 0
        thread = threading.Thread(target=lambda: (time.sleep(0.3), comm.Send(np.ones(1), 0, 8)))
        thread.start()
        assert receive(data, 0) == 0 and data[0] == 1
        thread.join()


def interrupted(way):
    """Ctrl-C in a wait of compiled code."""
    receive, data = WAYS[way](_receive), np.zeros(1)
    assert receive(data, MPI.PROC_NULL) == 0
    began = time.monotonic()
    try:
        if comm.rank == 0:
            _interrupt_soon()
        receive(data, comm.rank)
    except KeyboardInterrupt:
        assert time.monotonic() - began < 30
        print("interrupted", flush=True)
        raise


@numba.njit
def _twice(data, source):
    return nm.recv(data, source, 8), nm.barrier(), nm.recv(data, source, 8)


def caught():
    """After the exception everything works as before; until it is raised no call waits."""
    data = np.zeros(1)
    assert _twice(data, MPI.PROC_NULL) == (0, 0, 0)
    results = []
    try:
        _interrupt_soon()
        results.append(_twice(data, 0))
        results.append("came back")
    except KeyboardInterrupt:
        results.append("caught")
    assert results[-1] == "caught"
    assert nm.recv(data, MPI.PROC_NULL) == 0 and nm.sendrecv(np.ones(1), 0, data, 0) == 0 and data[0] == 1


def handler_that_returns():
    """A signal whose handler returns does not end the wait."""
    came = []
    signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
    request = comm.Isend(np.ones(1), comm.rank, 8) if comm.rank else None
    receive, data = numba.njit(_receive), np.zeros(1)
    if comm.rank == 0:
        assert receive(data, MPI.PROC_NULL) == 0

        def signal_and_send():
            os.kill(os.getpid(), signal.SIGUSR1)
            while not came:  # the handler runs in the wait, which goes on
                time.sleep(0.01)
            comm.Send(np.ones(1), 0, 8)

        threading.Timer(0.3, signal_and_send).start()
        assert receive(data, 0) == 0 and came == [1]
    else:
        assert receive(data, comm.rank) == 0
        request.Wait()
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def dead_peer():
    receive, data = numba.njit(_receive), np.zeros(1)
    assert receive(data, MPI.PROC_NULL) == 0
    comm.Barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    status = receive(data, 1)
    print("told", status == MPI.ERR_PROC_FAILED, bool(nm.last_error()), flush=True)


def copied_handle_of_a_dead_peer():
    """The request's array is gone, and what becomes of other requests takes nothing from the copied handle."""
    data, requests = np.zeros(1), np.zeros(1, nm.RequestType)
    if comm.rank == 0:
        _, first = nm.irecv(data, 1, 5)
        requests[0] = first[0]
        del first
        assert nm.recv(np.zeros(1), 1, 6) == MPI.ERR_PROC_FAILED
        nm.isend(np.zeros(1), MPI.PROC_NULL)
        assert nm.wait(requests) == MPI.ERR_PROC_FAILED
        print("right", flush=True)
    elif comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def copied_handle_of_a_receive_from_any():
    data, requests = np.zeros(1), np.zeros(1, nm.RequestType)
    if comm.rank == 0:
        _, first = nm.irecv(data, MPI.ANY_SOURCE, 5)
        requests[0] = first[0]
        del first
        assert nm.recv(np.zeros(1), 2, 6) == MPI.ERR_PROC_FAILED
        nm.isend(np.zeros(1), MPI.PROC_NULL)
        comm.Ack_failed()
        nm.send(np.zeros(1), 1, 7)
        assert nm.wait(requests) == 0 and data[0] == 7
        print("right", flush=True)
    elif comm.rank == 1:
        assert nm.recv(data, 0, 7) == 0
        assert nm.send(np.full(1, 7.0), 0, 5) == 0
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def copied_handle_when_revoked():
    mine = comm.Dup()
    data, requests = np.zeros(1), np.zeros(1, nm.RequestType)
    _, first = nm.irecv(data, 0, 5, nm.handle(mine))
    requests[0] = first[0]
    del first
    mine.Revoke()
    nm.isend(np.zeros(1), MPI.PROC_NULL)
    assert nm.wait(requests) == MPI.ERR_REVOKED
    print("right", flush=True)


def intercommunicators_are_refused():
    local = comm.Split(comm.rank > 0)
    inter = local.Create_intercomm(0, comm, 1 if comm.rank == 0 else 0)
    for one in (inter, MPI.Comm(inter)):
        try:
            nm.handle(one)
        except TypeError as error:
            assert "intercommunicator" in str(error), error
        else:
            raise AssertionError("taken")


def forked():
    send, one = numba.njit(lambda a: nm.send(a, MPI.PROC_NULL)), np.zeros(1)
    assert send(one) == 0
    child = os.fork()
    if child == 0:
        os._exit(0 if send(one) == MPI.ERR_OTHER and not nm.initialized() else 1)
    assert os.waitpid(child, 0)[1] == 0


def _receive_into_new(n, source):
    status, request = nm.irecv(np.zeros(n), source, 5)
    return status + nm.wait(request)


def _send_new(n, dest):
    return nm.send(np.full(n, 1.0), dest, 5)


def _interrupt_soon():
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()


def _poll(win, box):
    status = 0
    while box[0] == 0 and status == 0:
        status = nm.get(win, box, 0)
    return status


def interrupted_poll(make):
    """A loop over calls that do not wait looks at signals, and lets other threads run."""
    win = getattr(MPI.Win, make)(np.zeros(1) if make == "Create" else 8, 8, comm=comm)
    win.Lock_all()
    poll, box = numba.njit(_poll), np.ones(1)
    assert poll(nm.handle(win), box) == 0
    box[0] = 0
    try:
        _interrupt_soon()  # by another thread, which has to run for that
        poll(nm.handle(win), box)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no KeyboardInterrupt")
    win.Unlock_all()


def arguments_that_are_refused():
    one = np.zeros(1)
    for call, word in [
        (lambda: nm.send(one, 2**64 - 2), "dest: 18446744073709551614 is larger"),
        (lambda: nm.irecv(one, np.uint64(2**63), 5), "source: 9223372036854775808 is larger"),
        (lambda: nm.barrier(MPI.COMM_WORLD), "handle"),
        (lambda: nm.flush_all(MPI.WIN_NULL), "handle"),
    ]:
        try:
            call()
        except TypeError as error:
            assert word in str(error), error
        else:
            raise AssertionError(f"taken, and {word} was expected")


def interrupted_receive(way):
    """Memory of a receive that nobody waits for any more is not used for anything else."""
    receive, fresh = WAYS[way](_receive_into_new), WAYS[way](lambda n: np.full(n, 7.0))
    assert receive(8, MPI.PROC_NULL) == 0
    fresh(8)
    comm.Barrier()
    if comm.rank == 0:
        try:
            _interrupt_soon()
            receive(8, 1)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("no KeyboardInterrupt")
        others = [fresh(8) for _ in range(50)]
        comm.Barrier()
        comm.Barrier()
        comm.Iprobe()
        assert all((a == 7).all() for a in others)
        isend, room = WAYS[way](lambda a: nm.isend(a, 0)), np.zeros(1)
        for _ in range(20):  # what was kept is let go
            status, request = isend(room)
            assert status == nm.recv(room, 0) == nm.wait(request) == 0
    else:
        comm.Barrier()
        comm.Send(np.full(8, -1.0), 0, 5)
        comm.Barrier()


def interrupted_wait():
    """The array of a request that a program goes on to wait for is let go with the request."""
    data = np.zeros(8)
    gone = weakref.ref(data)
    _, request = nm.irecv(data, 0, 5)
    try:
        _interrupt_soon()
        nm.wait(request)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no KeyboardInterrupt")
    assert nm.send(np.ones(8), 0, 5) == nm.wait(request) == 0 and data[7] == 1
    del data, request
    for _ in range(20):
        nm.isend(np.zeros(1), MPI.PROC_NULL)
    assert gone() is None


def interrupted_send(way):
    """A send that Ctrl-C has ended sends what was there, or fails."""
    n = 20_000
    send, fresh = WAYS[way](_send_new), WAYS[way](lambda n: np.full(n, 7.0))
    assert send(n, MPI.PROC_NULL) == 0
    fresh(n)
    comm.Barrier()
    if comm.rank == 0:
        with contextlib.suppress(KeyboardInterrupt):
            _interrupt_soon()
            send(n, 1)
        others = [fresh(n) for _ in range(8)]
        comm.Barrier()
        comm.Barrier()
        assert all((a == 7).all() for a in others)
    else:
        comm.Barrier()
        room = np.zeros(n)
        assert nm.recv(room, 0, 5) != 0 or (room == 1).all(), room
        comm.Barrier()


def two_signals():
    """The handler of a signal runs even if that of another one has raised."""
    saved = []
    signal.signal(signal.SIGTERM, lambda *_: saved.append(1))
    receive = numba.njit(lambda a: nm.recv(a, 0))
    receive_nothing = numba.njit(lambda a: nm.recv(a, MPI.PROC_NULL))
    receive_nothing(np.zeros(1))

    def both():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    for k in range(3):
        try:
            threading.Timer(0.3, both).start()
            receive(np.zeros(1))
            time.sleep(0.1)  # one of the two may have come alone
        except KeyboardInterrupt:
            pass
        end = time.monotonic() + 20
        while len(saved) <= k and time.monotonic() < end:
            time.sleep(0.01)
        assert len(saved) == k + 1


def a_subinterpreter_was_there():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    interpreters.destroy(interpreters.create())
    one = np.zeros(1)
    assert nm.send(one, MPI.PROC_NULL) == 0
    assert numba.njit(nogil=True)(lambda a: nm.send(a, MPI.PROC_NULL))(one) == 0


def no_sentence_of_another_error():
    one = np.zeros(1)
    for call in (
        lambda: nm.allgather(one, np.zeros(0), 1),
        lambda: nm.irecv(np.zeros(4)[::2], 0)[0],
        lambda: nm.wait(np.zeros(0, nm.RequestType)),
        lambda: nm.allreduce(np.zeros(3), one),
    ):
        assert nm.send(one, 77) == MPI.ERR_RANK and "77" in nm.last_error()
        assert call() in (MPI.ERR_COUNT, MPI.ERR_BUFFER, MPI.ERR_REQUEST) and nm.last_error() == ""
    win = MPI.Win.Allocate(8, 8, comm=comm)
    win.Lock_all()
    assert all(nm.flush(nm.handle(win), rank) == MPI.ERR_RANK for rank in (-1, -3, 99))
    assert nm.accumulate(nm.handle(win), one, 0, 0, (1 << 32) + nm.Operator.SUM) == MPI.ERR_OP
    win.Unlock_all()
    win.Free()
