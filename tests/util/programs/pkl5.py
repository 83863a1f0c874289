"""The programs of test_pkl5.py."""

import numpy as np
from rankside import rank, size, world

from gormapy import MPI
from gormapy.util import pkl5

comm = pkl5.Intracomm(world)
right, left = (rank + 1) % size, (rank - 1) % size


def arrays(k):
    """Return arrays of many lengths, below and above the threshold."""
    return {"rank": k, "short": np.full(10, k), "long": np.full(100_000, k), "longer": [np.full(1 << 18, k)] * 2}


def same(found, k):
    expected = arrays(k)
    for name, value in expected.items():
        assert np.array_equal(found[name], value), (name, found[name], k)
    found["long"][:] = -1  # it is nobody else's memory
    return True


def messages():
    for _ in range(5):
        request = comm.isend(arrays(rank), right, 7)
        status = MPI.Status()
        assert same(comm.recv(source=left, tag=7, status=status), left)
        assert (status.source, status.tag) == (left, 7) and status.count > 1 << 21
        request.wait()
        request = comm.issend(arrays(rank), right, 8)
        message = comm.mprobe()
        assert world.iprobe() is False  # the buffers are matched, too
        world.Barrier()
        receiving = message.irecv()
        assert same(receiving.wait(), left) and request.wait() is None
        assert same(comm.sendrecv(arrays(rank), right, source=left), left)


def messages_from_anyone():
    """Objects of several ranks that arrive at once are not mixed up."""
    requests = [comm.isend(arrays(rank), dest, 3) for dest in range(size) for _ in range(3)]
    found = []
    for _ in range(3 * size):
        got = comm.recv()
        assert same(got, got["rank"])
        found.append(got["rank"])
    assert sorted(found) == sorted([*range(size)] * 3)
    assert pkl5.Request.waitall(requests) == [None] * len(requests)


def collectives():
    for root in range(size):
        assert same(comm.bcast(arrays(root) if rank == root else None, root), root)
        found = comm.gather(arrays(rank), root)
        assert found is None if rank != root else all(same(one, k) for k, one in enumerate(found))
        sent = [arrays(k) for k in range(size)] if rank == root else None
        assert same(comm.scatter(sent, root), rank)
    assert all(same(one, k) for k, one in enumerate(comm.allgather(arrays(rank))))
    assert all(
        same(one, k + size * rank)
        for k, one in enumerate(comm.alltoall([arrays(rank + size * k) for k in range(size)]))
    )
