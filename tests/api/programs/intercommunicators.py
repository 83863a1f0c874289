"""The programs of test_intercommunicators.py."""

import numpy as np
from rankside import nodes, rank, refused, size, world
from two_groups import LAYOUTS, pair, root_argument

from gormapy import MPI


def groups_and_messages():
    for layout in LAYOUTS:
        with pair(layout) as (comm, far):
            assert type(comm) is MPI.Intercomm and comm.is_inter and not comm.is_intra
            assert comm.Get_remote_size() == comm.remote_size == len(far) and comm.size == size - len(far)
            assert comm.remote_group.Translate_ranks(None, world.group) == far
            assert comm.group.size == comm.size and comm.group.rank == comm.rank
            requests = [comm.Isend(np.full(k + 1, rank, "i"), k, 3) for k in range(comm.remote_size)]
            for k, peer in enumerate(far):
                status, got = MPI.Status(), np.zeros(comm.rank + 1, "i")
                comm.Recv(got, k, 3, status)
                assert status.source == k and (got == peer).all()
            MPI.Request.Waitall(requests)
            sent = comm.isend(rank, 0, 4) if comm.rank == 0 else None
            if comm.rank == 0:
                status = MPI.Status()
                comm.probe(MPI.ANY_SOURCE, 4, status)
                assert status.source == 0 and comm.recv(source=MPI.ANY_SOURCE, tag=4) == far[0]
                sent.wait()
            world.Barrier()


def both_ways(comm):
    """Yield for each side as the root's: whether it is this one, the root argument, whether this rank is the root."""
    first = min(world.group.Translate_ranks([rank], world.group))
    low = min(MPI.Group.Translate_ranks(comm.group, None, world.group)) < min(
        comm.remote_group.Translate_ranks(None, world.group)
    )
    assert first == rank
    for from_low in (True, False):
        rooted = low == from_low
        last = (comm.size if rooted else comm.remote_size) - 1
        for root in {0, last}:
            argument = root_argument(comm, rooted, root)
            yield rooted, argument, argument == MPI.ROOT


def collectives_of_arrays():
    for layout in LAYOUTS:
        with pair(layout) as (comm, far):
            comm.Barrier()
            comm.Ibarrier().Wait()
            for count in (0, 1, 100, 70_000):
                for rooted, root, is_root in both_ways(comm):
                    data = np.arange(count) + 5.0 if is_root else np.zeros(count)
                    comm.Bcast(data, root)
                    assert is_root or rooted or (data == np.arange(count) + 5).all()
                    own = np.full(count, rank, "i")
                    all_of_them = np.zeros((comm.remote_size, count), "i")
                    comm.Gather(None if rooted else own, all_of_them if is_root else None, root)
                    assert not is_root or (all_of_them == np.array(far)[:, None]).all()
                    parts = np.repeat(np.arange(comm.remote_size, dtype="i"), count) if is_root else None
                    comm.Scatter(parts, None if rooted else own, root)
                    assert rooted or (own == comm.rank).all()
                own = np.full(count, rank, "i")
                comm.Allgather(own, all_of_them)
                assert (all_of_them == np.array(far)[:, None]).all()
                out = np.repeat(100 * rank + np.arange(comm.remote_size, dtype="i"), count)
                comm.Alltoall(out, all_of_them)
                assert (all_of_them == 100 * np.array(far)[:, None] + comm.rank).all()


def collectives_of_different_amounts():
    for layout in LAYOUTS:
        with pair(layout) as (comm, far):
            counts = [r + 1 for r in far]
            displs = np.cumsum([0, *counts[:-1]])
            everything = np.zeros(sum(counts), "d")
            want = np.concatenate([np.full(r + 1, r, "d") for r in far])
            own = np.full(rank + 1, rank, "d")
            comm.Allgatherv(own, [everything, counts, displs, MPI.DOUBLE])
            assert (everything == want).all()
            for rooted, root, is_root in both_ways(comm):
                everything[:] = 0
                comm.Gatherv(
                    None if rooted else own, [everything, counts, displs, MPI.DOUBLE] if is_root else None, root
                )
                assert not is_root or (everything == want).all()
                received = np.zeros(rank + 1)
                comm.Scatterv(
                    [want, counts, displs, MPI.DOUBLE] if is_root else None, None if rooted else received, root
                )
                assert rooted or (received == rank).all()
            # rank r sends r + p + 1 items to rank p
            amounts = [rank + r + 1 for r in far]
            out, into = np.full(sum(amounts), rank, "i"), np.zeros(sum(amounts), "i")
            comm.Alltoallv([out, amounts], [into, amounts])
            assert (into == np.repeat(far, amounts)).all()
            places = (np.cumsum([0, *amounts[:-1]]) * 4).tolist()
            into[:] = 0
            comm.Alltoallw([out, amounts, places, [MPI.INT] * len(far)], [into, amounts, places, [MPI.INT] * len(far)])
            assert (into == np.repeat(far, amounts)).all()


def reductions():
    first_of_all = MPI.Op.Create(lambda a, b, t: None, commute=False)  # leaves the second: the last in order
    for layout in LAYOUTS:
        with pair(layout) as (comm, far):
            for count in (1, 17, 40_000):
                own, got = np.arange(count) + float(rank), np.zeros(count)
                want = len(far) * np.arange(count) + float(sum(far))
                comm.Allreduce(own, got)
                assert np.allclose(got, want)
                comm.Iallreduce(own, got, MPI.MAX).Wait()
                assert np.allclose(got, np.arange(count) + max(far))
                comm.Allreduce(own, got, first_of_all)
                assert np.allclose(got, np.arange(count) + far[-1])
                for rooted, root, is_root in both_ways(comm):
                    got[:] = 0
                    for op, result in ((MPI.SUM, want), (first_of_all, np.arange(count) + far[-1])):
                        comm.Reduce(None if rooted else own, got if is_root else None, op, root)
                        assert not is_root or np.allclose(got, result)
            # the same amount in all from each group, however many ranks it has
            block = comm.remote_size
            total = block * comm.size
            own, got = np.arange(total) + float(rank), np.zeros(block)
            want = len(far) * np.arange(total) + float(sum(far))
            mine = want[comm.rank * block : (comm.rank + 1) * block]
            comm.Reduce_scatter_block(own, got)
            assert np.allclose(got, mine)
            counts = [total - comm.size + 1] + [1] * (comm.size - 1)
            begin = sum(counts[: comm.rank])
            got = np.zeros(counts[comm.rank])
            comm.Reduce_scatter(own, got, counts)
            assert np.allclose(got, want[begin : begin + counts[comm.rank]])
            request = comm.Allreduce_init(own, want)
            for _ in range(3):
                request.Start()
                request.Wait()
            request.Free()
            assert np.allclose(want, len(far) * np.arange(total) + float(sum(far)))
    first_of_all.Free()


def collectives_of_objects():
    for layout in LAYOUTS:
        with pair(layout) as (comm, far):
            comm.barrier()
            for length in (1, 5_000):

                def made(r, length=length):
                    return {"from": r, "text": "x" * length * (r + 1)}

                assert comm.allgather(made(rank)) == [made(r) for r in far]
                assert comm.alltoall([(rank, k, "y" * length) for k in range(len(far))]) == [
                    (r, comm.rank, "y" * length) for r in far
                ]
                assert comm.allreduce([rank]) == far
                for rooted, root, is_root in both_ways(comm):
                    got = comm.bcast(made(rank) if is_root else None, root)
                    assert (rooted and got is None) or got["text"][:length] == "x" * length
                    got = comm.gather(made(rank), root)
                    assert got == ([made(r) for r in far] if is_root else None)
                    got = comm.scatter([made(k) for k in range(len(far))] if is_root else None, root)
                    assert got == (None if rooted else made(comm.rank))
                    assert comm.reduce([rank], root=root) == (far if is_root else None)


def many_at_once():
    with pair() as (comm, far), pair(lambda r: r < 1) as (other, _):
        a = [np.full(3, rank + k, "d") for k in range(20)]
        b = [np.zeros(3) for _ in range(20)]
        requests = [comm.Iallreduce(x, y) for x, y in zip(a, b)]
        requests.append(other.Ibarrier())
        data = np.full(4, 7.0) if rank == 0 else np.zeros(4)
        rooted = rank % 2 == 0
        requests.append(comm.Ibcast(data, root_argument(comm, rooted)))
        MPI.Request.Waitall(requests)
        for k, got in enumerate(b):
            assert (got == sum(far) + k * len(far)).all()
        assert rooted or (data == 7).all()


def made_of_others():
    for layout in LAYOUTS:
        with pair(layout) as (comm, far):
            low = min(far) > min(r for r in range(size) if r not in far)
            for high in (False, True):
                merged = comm.Merge(high if low else not high)
                order = [r for r in range(size) if r not in far], far
                first = low != high
                assert merged.allgather(rank) == (order[0] + order[1] if first else order[1] + order[0])
                assert type(merged) is MPI.Intracomm
                merged.Free()
            merged = comm.Merge()
            assert merged.size == size
            merged.Free()
            dup = comm.Dup()
            assert dup.Compare(comm) == MPI.CONGRUENT and comm.Compare(comm) == MPI.IDENT
            assert comm.Compare(world) == MPI.UNEQUAL
            made, request = comm.Idup()
            request.Wait()
            assert type(made) is MPI.Intercomm and made.allgather(rank) == far == dup.allgather(rank)
            made.Free()
            dup.Free()
            same = comm.Split(0, -comm.rank)
            assert same.allgather(rank) == far[::-1] and same.rank == comm.size - 1 - comm.rank
            assert same.Compare(comm) == (MPI.CONGRUENT if size == 2 else MPI.SIMILAR)
            same.Free()
            beside = [r for r in far if nodes[r] == nodes[rank]]
            shared = comm.Split_type(MPI.COMM_TYPE_SHARED)
            assert bool(shared) == bool(beside)
            if shared:
                assert type(shared) is MPI.Intercomm and shared.allgather(rank) == beside
                shared.Free()
            assert comm.Split_type(MPI.UNDEFINED) == MPI.COMM_NULL
            own = comm.Split(int(low))  # no color is on both sides
            assert own == MPI.COMM_NULL
            firsts = comm.Split(0 if comm.rank == 0 else MPI.UNDEFINED)
            assert (firsts == MPI.COMM_NULL) == (comm.rank > 0)
            if firsts:
                assert firsts.size == firsts.remote_size == 1 and firsts.allgather(rank) == far[:1]
                firsts.Free()
            some = comm.Create(comm.group.Incl([comm.size - 1]))
            assert (some == MPI.COMM_NULL) == (comm.rank < comm.size - 1)
            if some:
                assert some.allgather(rank) == far[-1:]
                some.Free()
            assert comm.Create(MPI.GROUP_EMPTY if low else comm.group) == MPI.COMM_NULL


def made_of_groups():
    left, right = world.group.Incl([1, 3]), world.group.Incl([4, 0])
    if rank in (1, 3):
        comm = MPI.Intercomm.Create_from_groups(left, 0, right, 1)
    elif rank in (4, 0):
        comm = MPI.Intercomm.Create_from_groups(right, 1, left, 0)
    else:
        comm = MPI.COMM_NULL
    if comm:
        assert comm.allgather(rank) == ([4, 0] if rank in (1, 3) else [1, 3])
        comm.Free()


def bytes_and_bytearrays():
    with pair() as (comm, far):
        for rooted, root, is_root in both_ways(comm):
            data = b"twelve bytes" if is_root else bytearray(12)
            comm.Bcast(
                b"what others of the root's group pass does not matter" if rooted and not is_root else data, root
            )
            assert rooted or data == b"twelve bytes"
            for sent in (b"", b"bytes", bytearray(b"many" * 5000)):
                got = comm.bcast(sent if is_root else None, root)
                assert got is None if rooted else got == sent and type(got) is type(sent)
            parts = bytearray(b"?" * comm.remote_size)
            comm.Gather(bytes([65 + comm.rank]), parts if is_root else None, root)
            assert not is_root or parts == bytes(65 + k for k in range(comm.remote_size))
        into = bytearray(comm.remote_size)
        comm.Allgather(bytes([rank]), into)
        assert into == bytes(far)


def conversions():
    with pair() as (comm, far):
        plain = MPI.Comm(comm)
        assert type(plain) is MPI.Comm and plain == comm and plain is not comm
        assert plain.is_inter and plain.rank == comm.rank and plain.size == comm.size
        assert plain.allgather(rank) == far
        later, request = plain.Idup()
        assert type(later) is MPI.Comm and later.is_inter  # before it is made, too
        request.Wait()
        for twin in (plain.Dup(), plain.Clone(), later):
            assert type(twin) is MPI.Comm and twin.is_inter and twin.size == comm.size
            assert twin.allgather(rank) == far
            twin.Free()
        again = MPI.Intercomm(plain)
        assert type(again) is MPI.Intercomm and again.remote_size == len(far) and again.allgather(rank) == far
        for made in (MPI.Comm.fromhandle(comm.handle), MPI.Intracomm.fromint(comm.toint()), MPI.Comm.f2py(comm.py2f())):
            assert type(made) is MPI.Intercomm and made == comm
        for kind, wrong, said in (
            (MPI.Intracomm, comm, "expecting an intracommunicator"),
            (MPI.Intracomm, plain, "expecting an intracommunicator"),
            (MPI.Cartcomm, comm, "expecting Cartcomm, got Intercomm"),
            (MPI.Intercomm, world, "expecting an intercommunicator"),
            (MPI.Intercomm, MPI.Comm(world), "expecting an intercommunicator"),
        ):
            refused(TypeError, lambda: kind(wrong), said)  # noqa: B023
        assert type(MPI.Intracomm(MPI.Comm(world))) is MPI.Intracomm

        class Own(MPI.Intercomm):
            """A class of the program."""

        own = Own(comm)
        assert own.allgather(rank) == far
        dup = own.Dup()
        assert type(dup) is Own and dup.allgather(rank) == far
        dup.Free()
    assert MPI.Intercomm() == MPI.COMM_NULL == MPI.Intercomm(MPI.COMM_NULL)
    assert comm == MPI.COMM_NULL


def made_and_freed_again():
    for _ in range(200):
        with pair() as (comm, far):
            merged = comm.Merge()
            assert merged.allreduce(1) == size and comm.allreduce(1) == len(far)
            merged.Free()
