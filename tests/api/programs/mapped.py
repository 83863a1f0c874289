"""Messages and collectives of memory that the other ranks map, and of memory that they do not."""

import numpy as np

import gormapy
from gormapy import MPI

world = MPI.COMM_WORLD
# Below, at and above the sizes at which the way changes: the board, stages, pieces.
COUNTS = (1, 1000, 9001, 70_001, 300_000)


def memory(kind, count, dtype=np.int64):
    """Return an array: of the arena ("shared"), ordinary, or one of both by rank ("mixed")."""
    shared = kind == "shared" or (kind == "mixed" and world.rank % 2 == 0)
    return gormapy.shared_empty(count, dtype) if shared else np.empty(count, dtype)


def contents(rank, count):
    """Return what a rank sends."""
    return np.arange(count, dtype=np.int64) * 7 + 1000 * rank


def messages(send, recv):
    """Send long messages around, with memory of these kinds."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for count in COUNTS:
        out, into = memory(send, count), memory(recv, count + 3)
        out[:], into[:] = contents(world.rank, count), -1
        world.Sendrecv(out, right, 5, into, left, 5)
        assert (into[:count] == contents(left, count)).all() and (into[count:] == -1).all(), (count, into)
        # a part of an allocation, and every other element
        strided = MPI.INT64_T.Create_vector(count // 2, 1, 2).Commit()
        into[:] = -1
        request = world.Irecv([into, 1, strided], left, 6)
        world.Send(out[count - count // 2 :], right, 6)
        request.Wait()
        expected = contents(left, count)[count - count // 2 :]
        assert (into[: 2 * (count // 2) : 2] == expected).all() and (into[1 : 2 * (count // 2) : 2] == -1).all()
        strided.Free()
        # the sender's buffer is its own again
        request = world.Isend(out, right, 7)
        world.Recv(into, left, 7)
        request.Wait()
        out[:] = -2
        assert (into[:count] == contents(left, count)).all()


def collectives(send, recv):
    """Call each collective with memory of these kinds."""
    rank, size = world.rank, world.size
    for count in COUNTS:
        whole = count * size
        mine, everyone = memory(send, count), memory(recv, whole)
        parts, into = memory(send, whole), memory(recv, count)
        for root in {0, size - 1}:
            mine[:] = contents(root, count) if rank == root else -1
            world.Bcast(mine, root)
            assert (mine == contents(root, count)).all(), count

            mine[:], everyone[:] = contents(rank, count), -1
            world.Gather(mine, everyone if rank == root else None, root)
            if rank == root:
                assert all((everyone[r * count : (r + 1) * count] == contents(r, count)).all() for r in range(size))

            parts[:], into[:] = contents(root, whole), -1
            world.Scatter(parts if rank == root else None, into, root)
            assert (into == contents(root, whole)[rank * count : (rank + 1) * count]).all(), count

            into[:] = -1
            world.Reduce(mine, into if rank == root else None, MPI.SUM, root)
            assert rank != root or (into == sum(contents(r, count) for r in range(size))).all(), count

        everyone[:] = -1
        world.Allgather(mine, everyone)
        assert all((everyone[r * count : (r + 1) * count] == contents(r, count)).all() for r in range(size)), count

        parts[:], everyone[:] = contents(rank, whole), -1
        world.Alltoall(parts, everyone)
        for r in range(size):
            part = contents(r, whole)[rank * count : (rank + 1) * count]
            assert (everyone[r * count : (r + 1) * count] == part).all(), (count, r)

        total = sum(contents(r, count) for r in range(size))
        into[:] = -1
        world.Allreduce(mine, into)
        assert (into == total).all() and (mine == contents(rank, count)).all(), count
        world.Allreduce(MPI.IN_PLACE, mine, MPI.MAX)
        assert (mine == contents(size - 1, count)).all(), count

        whole_total = sum(contents(r, whole) for r in range(size))
        into[:] = -1
        world.Reduce_scatter_block(parts, into)
        assert (into == whole_total[rank * count : (rank + 1) * count]).all(), count
        world.Reduce_scatter_block(MPI.IN_PLACE, parts)
        assert (parts[:count] == whole_total[rank * count : (rank + 1) * count]).all(), count


def every_type_of_argument():
    """Call the collectives that the extension reads with arguments of every form, and wrong ones."""
    rank, size = world.rank, world.size
    one, each, into = np.full(2, rank), np.arange(2 * size) + 10 * rank, np.zeros(2 * size, int)
    spec, wrong = [each, MPI.INT64_T], np.zeros(2 * size + 1, int)
    world.Allgather([one, 2, MPI.INT64_T], recvbuf=[into, MPI.INT64_T])
    assert (into == np.repeat(np.arange(size), 2)).all()
    world.Allgather(one, [into, 2, MPI.INT64_T])  # the count is that of a part
    world.Alltoall(spec, [into, 2, MPI.INT64_T])
    world.Alltoall(sendbuf=spec, recvbuf=into)
    assert (into == np.concatenate([[2 * rank + 10 * r, 2 * rank + 1 + 10 * r] for r in range(size)])).all()
    world.Gather(one, None if rank else into)
    world.Gather(sendbuf=one, recvbuf=into if rank == size - 1 else None, root=size - 1)
    world.Scatter(each if rank == 0 else None, one, root=0)
    assert (one == np.array([2 * rank, 2 * rank + 1])).all()
    world.Reduce(one, None if rank else into[:2], MPI.SUM)
    world.Reduce(one, recvbuf=into[:2] if rank == 0 else None, root=0, op=MPI.PROD)
    world.Reduce_scatter_block([each, MPI.LONG], one)
    world.Scatter(each if rank == 0 else None, MPI.IN_PLACE if rank == 0 else one)
    world.Gather(MPI.IN_PLACE if rank == 0 else one, into if rank == 0 else None)
    uneven = [(ValueError, lambda: world.Alltoall(wrong, wrong)), (ValueError, lambda: world.Allgather(one, wrong))]
    bad = [
        *(uneven if size > 1 else []),
        (TypeError, lambda: world.Allgather(one)),
        (TypeError, lambda: world.Gather(one, into, root=0, more=1)),
        (TypeError, lambda: world.Reduce(one, one, "sum")),
        (BufferError, lambda: world.Allgather(one, bytes(8 * size))),
        (MPI.Exception, lambda: world.Gather(one, into, root=size)),
        (MPI.Exception, lambda: world.Scatter(each, one, root=-5)),
    ]
    for kind, call in bad:
        try:
            call()
        except kind:
            continue
        raise AssertionError(f"no {kind.__name__}")
    world.Barrier()


def a_late_rank_reads_what_was_sent():
    """Rank 0 broadcasts and rank 2 calls another collective; rank 1 comes when rank 0 has used much other memory."""
    n = 512 << 10
    world.Bcast(np.zeros(4 << 20, "u1"), 0)  # finds out that ranks can read each other's memory
    for _ in range(2):  # the second time the memory of the first is there already
        data = np.full(n, 7 if world.rank == 0 else 1, "u1")
        if world.rank == 1:
            world.recv(source=0)
            try:
                world.Bcast(data, 0)
            except MPI.Exception:
                continue
            assert (data == 7).all(), np.unique(data)
            continue
        try:
            if world.rank == 0:
                world.Bcast(data, 0)
            else:
                world.Reduce(data, None, MPI.SUM, 0)
            raise AssertionError("the calls match")
        except MPI.Exception:
            pass
        if world.rank == 0:
            _use_memory(n)
            world.send(None, 1)
    world.recv(source=0) if world.rank else [world.send(None, rank) for rank in range(1, world.size)]


def _use_memory(n):
    """Have Go collect garbage, and fill memory of the arena."""
    strided = MPI.BYTE.Create_vector(n, 1, 2).Commit()
    sent, received = np.zeros(2 * n, "u1"), np.zeros(2 * n, "u1")
    for _ in range(60):
        request = MPI.COMM_SELF.Isend([sent, 1, strided], 0)
        MPI.COMM_SELF.Recv([received, 1, strided], 0)
        request.Wait()
    strided.Free()
    for _ in range(3):
        gormapy.shared_empty(n, "u1")[:] = 0x55
    kept = [gormapy.shared_empty(n, "u1") for _ in range(4)]
    for array in kept:
        array[:] = 0x55


def stages_are_bounded():
    """Long collectives of strided data, and in place, leave no memory behind in the arena."""
    count = (48 << 20) // world.size
    for _ in range(3):
        world.Alltoall(MPI.IN_PLACE, np.zeros(count * world.size, "u1"))
        world.Allreduce(np.zeros(1 << 17), np.zeros(1 << 17))
    with open("/proc/self/status") as status:
        shared = next(int(line.split()[1]) for line in status if line.startswith("RssShmem"))
    assert shared < 64 << 10, f"{shared} KiB of shared memory"
