"""The programs of test_objects.py."""

import pickle
import random

import numpy as np
from rankside import fails, rank, size, world

from gormapy import MPI

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
