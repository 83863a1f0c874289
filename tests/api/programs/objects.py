"""The programs of test_objects.py."""

import contextlib
import gc
import mmap
import os
import pathlib
import pickle
import random
import resource
import signal
import threading

import numpy as np
import rankside
from rankside import rank, size, world

from gormapy import MPI


def fails(kinds, naming, call):
    """Expect that a call raises an exception of a class, or an MPI.Exception of an error class, whose text has naming."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    try:
        call()
    except Exception as error:
        classes = tuple(kind for kind in kinds if isinstance(kind, type))
        assert isinstance(error, classes) or error.Get_error_class() in kinds, repr(error)
        assert naming in str(error), repr(error)
    else:
        raise AssertionError("no error")


# Of bytes whose pickles are a little shorter and longer: heads are of 4096 bytes, 512, or 128 and what there is between.
SIZES = [
    0,
    1,
    10,
    60,
    105,
    110,
    115,
    128,
    235,
    240,
    245,
    490,
    495,
    500,
    505,
    4060,
    4070,
    4075,
    4080,
    4090,
    5000,
    200000,
]


def thing(k, of):
    """Return an object of rank `of` in round k, the same wherever it is made."""
    return of, bytes(random.Random(1000 * k + of).choice(SIZES))


def collectives_of_each_size():
    everyone = range(size)
    for k in range(120):
        root = k % size
        mine, all_of_them = thing(k, rank), [thing(k, r) for r in everyone]
        assert world.bcast(mine if rank == root else None, root) == thing(k, root)
        assert world.gather(mine, root) == (all_of_them if rank == root else None)
        assert world.allgather(mine) == all_of_them
        assert world.scatter(all_of_them if rank == root else None, root) == mine
        assert world.alltoall([thing(k + r, rank) for r in everyone]) == [thing(k + rank, r) for r in everyone]
        together = sum(all_of_them, ())
        assert world.allreduce(mine) == together
        assert world.allreduce(mine, lambda a, b: a + b) == together
        assert world.reduce(mine, root=root) == (together if rank == root else None)
        assert world.scan(mine) == sum(all_of_them[: rank + 1], ())
        assert world.exscan(mine) == (sum(all_of_them[:rank], ()) if rank else None)
        assert world.allreduce(rank + k) == sum(r + k for r in everyone)
        assert world.allreduce(bytes([rank]), MPI.MAX) == bytes([size - 1])
        assert world.allreduce(0.5 * rank, None) == sum(0.5 * r for r in everyone)


def messages_of_each_size():
    right, left = (rank + 1) % size, (rank - 1) % size
    for k, nbytes in enumerate(SIZES):
        status = MPI.Status()
        assert world.sendrecv((rank, bytes(nbytes)), right, k, None, left, k, status) == (left, bytes(nbytes))
        assert (status.source, status.tag) == (left, k)
        request = world.isend((rank, bytes(nbytes)), right, k)
        assert world.recv(tag=k, status=status) == (left, bytes(nbytes))
        assert (status.source, status.tag) == (left, k)
        request.wait()
    assert world.recv(source=MPI.PROC_NULL) is None
    world.send(lambda: None, MPI.PROC_NULL)  # can't be pickled, and need not be
    fails(TypeError, "tag", lambda: world.send(1, 0, "x"))
    if rank == 0:
        for send in (world.bsend, world.ssend):
            receive = world.irecv(source=0)
            if send == world.bsend:
                MPI.Attach_buffer(bytearray(4096))
            send([1], 0)
            assert receive.wait() == [1]
        MPI.Detach_buffer()


def nonblocking_messages_of_each_size():
    right, left = (rank + 1) % size, (rank - 1) % size
    for nbytes in SIZES:
        requests = [world.irecv(source=left, tag=tag) for tag in range(3)]
        requests += [world.isend((rank, tag, bytes(nbytes)), right, tag) for tag in range(3)]
        requests += [MPI.REQUEST_NULL]
        expected = [(left, tag, bytes(nbytes)) for tag in range(3)] + [None] * 4
        assert MPI.Request.waitall(requests) == expected
        assert not any(requests) and MPI.Request.waitall(requests) == [None] * 7  # once
        for tag in range(3):
            status = MPI.Status()
            receive, send = world.irecv(source=left), world.isend((rank, tag, bytes(nbytes)), right, tag)
            assert receive.wait(status) == expected[tag] and send.wait() is None
            assert (status.source, status.tag) == (left, tag)
            send = world.isend((rank, tag, bytes(nbytes)), right, tag)
            matched = world.mprobe(left, tag, status)
            assert (status.source, status.tag) == (left, tag)
            assert matched.recv() == expected[tag] and not matched
            fails(MPI.ERR_REQUEST, "", matched.recv)
            send.wait()
        statuses = []
        requests = [world.irecv(source=left, tag=4), world.isend(nbytes, right, 4)]
        assert MPI.Request.waitall(requests, statuses) == [nbytes, None] and statuses[0].tag == 4
    assert world.irecv(source=MPI.PROC_NULL).wait() is None and world.mprobe(MPI.PROC_NULL).recv() is None
    fails(TypeError, "requests", lambda: MPI.Request.waitall([1]))


def what_has_arrived_stays_as_long_as_somebody_has_it():
    """The memory of objects that have arrived is used again, but not while the program's loads has kept it."""
    MPI.pickle.__init__(lambda obj: obj, lambda data: data)
    try:
        kept = []
        for k in range(5):
            receive, send = world.irecv(source=rank), world.isend(bytes([k]) * 100, rank)
            kept.append(receive.wait())
            send.wait()
        assert [bytes(view) for view in kept] == [bytes([k]) * 100 for k in range(5)]
    finally:
        MPI.pickle.__init__()


def all_ranks_get_the_object_that_one_has_folded():
    def fold(a, b):  # another result at each rank, and at each call
        return [a, b, rank, random.random()]

    user = MPI.Op.Create(lambda a, b, _: fold(a, b))
    for op in (fold, user, MPI.SUM, MPI.MAX):
        for make in (lambda: rank, lambda: np.float64(rank), lambda: [rank], lambda: [rank, bytes(6000)]):
            results = world.allgather(world.allreduce(make(), op))
            assert results == [results[0]] * size, results
    user.Free()


def a_wrong_root_is_an_error_and_no_more():
    for root in (size, -1, 10**9):
        for call in (world.bcast, world.gather, lambda obj, root: world.scatter([obj] * size, root)):
            fails(MPI.ERR_ROOT, "root", lambda call=call, root=root: call(bytes(9000), root))
        fails(TypeError, "root", lambda: world.gather(1, "0"))
    assert world.allgather(rank) == list(range(size))
    fails(ValueError, "items", lambda: world.alltoall([0] * (size + 1)))
    fails(TypeError, "sequence", lambda: world.alltoall(7))
    assert world.alltoall([rank] * size) == list(range(size))


def pickles_of_any_kind_of_buffer():
    for kind in (bytearray, memoryview, lambda data: np.frombuffer(data, "u1")):
        MPI.pickle.__init__(lambda obj, kind=kind: kind(pickle.dumps(obj)))
        try:
            for nbytes in (10, 9000):
                obj = (rank, bytes(nbytes))
                assert world.sendrecv(obj, 1 - rank) == (1 - rank, bytes(nbytes))
                assert world.allgather(obj) == [(r, bytes(nbytes)) for r in range(size)]
                assert world.alltoall([obj] * size) == [(r, bytes(nbytes)) for r in range(size)]
                assert world.bcast(obj) == (0, bytes(nbytes))
                assert world.allreduce(obj) == tuple(x for r in range(size) for x in (r, bytes(nbytes)))
        finally:
            MPI.pickle.__init__()


class Sum(MPI.Op):
    """An operation of the program's own making."""

    def __call__(self, x, y):
        return ("own", x, y)


def operations_that_are_no_predefined_ones():
    own = Sum(MPI.SUM)
    expected = 0
    for r in range(1, size):
        expected = ("own", expected, r)
    assert world.allreduce(rank, own) == expected
    assert world.reduce(rank, own, root=0) == (expected if rank == 0 else None)
    assert world.allreduce(rank, max) == size - 1
    assert world.allreduce(rank, MPI.Op(MPI.MAX)) == size - 1


class Refuses:
    """An object that can be sent, and not be made of what arrives."""

    def __reduce__(self):
        return fail, ("arrives",)


def fail(why):
    raise ArithmeticError(why)


def exceptions_of_the_program():
    """What raises at one rank is an error at all that depend on it, and the next calls work."""
    if size > 1:
        for make in (lambda: rank, lambda: [rank, bytes(6000)], lambda: [rank, bytes(6000 * (rank == size - 1))]):
            if rank == 0:
                fails(ZeroDivisionError, "division", lambda make=make: world.allreduce(make(), lambda a, b: 1 / 0))
            else:
                fails(MPI.ERR_OTHER, "rank 0", lambda make=make: world.allreduce(make(), lambda a, b: 1 / 0))
            assert world.allgather(rank) == list(range(size))
        if rank == 0:
            fails(TypeError, "", lambda: world.allreduce({}))
        else:
            fails(MPI.ERR_OTHER, "rank 0", lambda: world.allreduce({}))
        fails(TypeError, "", lambda: world.allreduce(None))  # each rank finds this itself
        fails(ArithmeticError, "arrives", lambda: world.allgather(Refuses() if rank == 0 else 1))
    fails(ArithmeticError, "arrives", lambda: world.bcast(Refuses()))
    fails((TypeError, AttributeError, pickle.PicklingError), "", lambda: world.allgather(lambda: None))
    assert world.allgather(rank) == list(range(size))


def calls_that_differ():
    pairs = [
        (lambda: world.allgather(rank), lambda: world.allreduce(rank)),
        (lambda: world.allreduce(rank, MPI.MAX), lambda: world.allreduce(rank, MPI.MIN)),
        (lambda: world.allreduce(rank, max), lambda: world.allreduce(rank, MPI.MAX)),
        (lambda: world.allgather(bytes(9000)), lambda: world.allreduce(b"")),
    ]
    for mine, theirs in pairs:
        for odd in range(size):
            if size > 1:
                fails((MPI.ERR_OTHER, MPI.ERR_OP), "do not call the same", mine if rank == odd else theirs)
            assert world.allgather(rank) == list(range(size))


CALLS = ("bcast", "gather", "scatter", "allgather", "alltoall", "allreduce", "reduce", "Bcast", "Gather", "Alltoall")


def call_of(name, root, nbytes):
    data = bytes(nbytes)
    one, more = np.ones(nbytes // 8 + 1), np.ones((nbytes // 8 + 1) * size)
    arguments = {
        "bcast": (data, root),
        "gather": (data, root),
        "reduce": (data, MPI.SUM, root),
        "scatter": ([data] * size, root),
        "alltoall": ([data if r == root else b"" for r in range(size)],),
        "Bcast": (one, root),
        "Gather": (one, more, root),
        "Alltoall": (more, np.ones_like(more)),
    }
    return getattr(world, name)(*arguments.get(name, (data,)))


def anything(seed, rounds):
    """Have each rank call what it likes: every call ends, and the next one works."""
    for i in range(rounds):
        plan, own = random.Random(f"{seed} {i}"), random.Random(f"{seed} {i} {rank}")
        odd, everybody = plan.randrange(size), plan.random() < 0.3
        choose = own if everybody or rank == odd else plan
        call = choose.choice(CALLS), choose.randrange(size), choose.choice((0, 100, 600, 5000, 40_000))
        with contextlib.suppress(MPI.Exception):
            call_of(*call)
        world.Barrier()
        assert world.allgather(i) == [i] * size, (seed, i)


FAILURES = (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)


def a_rank_is_killed(name, nbytes):
    """Rank 1 dies in the first of some calls; those of the others end, and so do the next ones in a new communicator."""
    comm = world.Dup()
    for k in range(30):
        root = k % size
        if rank == 1 and k == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            data = bytes(nbytes if (rank + k) % 2 else 0)
            if name == "alltoall":
                assert len(comm.alltoall([data] * size)) == size
            elif name == "scatter":
                comm.scatter([data] * size, root)
            elif name == "allreduce":
                comm.allreduce(data)
            elif name == "allgather":
                comm.allgather(data)
            else:
                getattr(comm, name)(data, root)
        except MPI.Exception as error:
            assert error.Get_error_class() in FAILURES or "has given it up" in str(error), error
            comm.Revoke()
            break
    else:
        raise AssertionError("no call has failed")
    shrunk = comm.Shrink()
    assert shrunk.size == size - 1
    assert shrunk.alltoall([bytes(nbytes)] * shrunk.size) == [bytes(nbytes)] * shrunk.size
    print("went on", flush=True)
    os._exit(0)


def a_rank_comes_after_another_one_has_died(call, nbytes):
    """The root's call has failed, and the memory of its pickle is used again, when rank 2 comes to it."""

    def go(value):
        what = bytes([value]) * nbytes
        return world.bcast(what) if call == "bcast" else world.scatter([what] * size)

    world.allgather(rank)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        with rankside.fails(MPI.ERR_PROC_FAILED):
            world.recv(source=1)
        with rankside.fails(MPI.ERR_PROC_FAILED):
            go(65)
        kept = [pickle.dumps(bytes([66]) * nbytes) for _ in range(16)]
        rankside.raise_flag("failed")
        rankside.await_flag("received")
        del kept
    else:
        rankside.await_flag("failed")
        with contextlib.suppress(MPI.Exception):
            assert set(go(67)) == {65}
        rankside.raise_flag("received")
    print("went on", flush=True)
    os._exit(0)


class Looks:
    """An object whose pickling and loading look at all lists that there are."""

    def __reduce__(self):
        return look_at_lists, (look_at_lists(),)


def look_at_lists(_=None):
    return sum(1 for o in gc.get_objects() if type(o) is list for _ in o) and 7


def lists_that_somebody_looks_at():
    for _ in range(20):
        assert world.allgather(Looks()) == [7] * size
        assert world.alltoall([Looks() for _ in range(size)]) == [7] * size
        assert world.gather(Looks()) == ([7] * size if rank == 0 else None)


class Result(list):
    pass


def a_result_whose_pickle_has_no_buffer():
    def dumps(o, *_):
        view = memoryview(pickle.dumps(o))
        if type(o) is Result:
            view.release()
        return view

    MPI.pickle.__init__(dumps)
    try:
        if rank == 0:
            fails(ValueError, "released", lambda: world.allreduce([0], lambda a, b: Result(a + b)))
        else:
            fails(MPI.ERR_OTHER, "has given it up", lambda: world.allreduce([0], lambda a, b: Result(a + b)))
    finally:
        MPI.pickle.__init__()
    assert world.allgather(rank) == list(range(size))


def pickles_in_memory_that_is_read_only():
    def dumps(o, *_):
        data = pickle.dumps(o)
        fd = os.memfd_create("pickle")
        os.write(fd, data)
        memory = mmap.mmap(fd, len(data), prot=mmap.PROT_READ)
        os.close(fd)
        return memoryview(memory)

    MPI.pickle.__init__(dumps)
    try:
        for nbytes in (10, 1000, 100_000):
            everyone = [(r, bytes(nbytes)) for r in range(size)]
            assert world.allgather(everyone[rank]) == everyone
            assert world.alltoall([everyone[rank]] * size) == everyone
            assert world.bcast(everyone[0]) == everyone[0]
            assert world.gather(everyone[rank]) == (everyone if rank == 0 else None)
            assert world.scatter(everyone) == everyone[rank]
            assert world.allreduce(everyone[rank]) == sum(everyone, ())
    finally:
        MPI.pickle.__init__()


def threads_on_a_communicator_of_one_rank():
    bad, comm = [], MPI.COMM_SELF

    calls = (
        lambda mine: comm.bcast(mine) == mine,
        lambda mine: comm.allgather(mine) == [mine],
        lambda mine: comm.allreduce([mine], lambda a, b: a + b) == [mine],
        lambda mine: comm.gather(mine) == [mine],
        lambda mine: comm.alltoall([mine]) == [mine],
        lambda mine: comm.scatter([mine]) == mine,
    )

    def work(call):
        try:
            for k in range(300):
                assert call((k, bytes(random.Random(k).choice(SIZES))))
        except BaseException as error:
            bad.append(error)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad, bad


def no_memory_for_what_is_received():
    """The sender's wait ends all the same."""
    nbytes = 400 << 20
    what = bytes(nbytes) if rank == 0 else None
    world.Barrier()
    if rank == 0:
        world.send(what, 1)
    else:
        used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + nbytes // 2, limits[1]))
        try:
            fails(MemoryError, "", lambda: world.recv(source=0))
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
    assert world.allgather(rank) == [0, 1]


def an_array_and_an_object():
    """A call with as many bytes of an array as a head has."""
    for nbytes in (512, 504, 4088, 4096):
        if rank == 0:
            with contextlib.suppress(MPI.Exception):  # the root of a broadcast does not wait for the others
                world.Bcast(bytearray(nbytes))
        else:
            classes = MPI.ERR_OTHER, MPI.ERR_TRUNCATE, MPI.ERR_TYPE
            fails(classes, "do not call the same collective", lambda: world.bcast(None))
        assert world.allgather(rank) == list(range(size))


def an_empty_pickle_is_none():
    MPI.pickle.__init__(lambda o, *_: b"" if o is None else pickle.dumps(o))
    try:
        right = (rank + 1) % size
        assert world.sendrecv(None, right) is None
        assert world.bcast(None) is None
        assert world.allgather(None) == world.alltoall([None] * size) == [None] * size
        assert world.gather(None) == ([None] * size if rank == 0 else None)
        assert world.scatter([None] * size) is None
    finally:
        MPI.pickle.__init__()


class Calls:
    """An object that calls MPI when it is loaded."""

    def __reduce__(self):
        return MPI.COMM_SELF.allreduce, (7,)


def loading_calls_the_same_collective():
    assert MPI.COMM_SELF.allreduce(Calls()) == 7
    assert MPI.COMM_SELF.reduce(Calls()) == 7
