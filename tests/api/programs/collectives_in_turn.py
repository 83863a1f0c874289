"""The programs of test_collectives_in_turn.py."""

import random

import numpy as np
from rankside import rank, size, world

from gormapy import MPI


def mixed():
    # Each call differs from the one before in what an operation that is used again must not keep: the root, the
    # sizes, where the data lies, IN_PLACE, and the types.
    chance = random.Random(size)  # the same on all ranks
    every_second = MPI.INT64_T.Create_vector(1, 1, 2).Create_resized(0, 16).Commit()
    for step in range(150):
        what, root = chance.randrange(8), chance.randrange(size)
        count = chance.choice([1, 700, 3000, 9000, 40_000])
        allocated, in_place, spaced = (chance.random() < 0.3 for _ in range(3))
        where = f"step {step}: {what}, {count} numbers, root {root}, {allocated}, {in_place}, {spaced}"

        def numbers(n, value=0, allocated=allocated):
            array = np.frombuffer(MPI.Alloc_mem(8 * n), "i8") if allocated else np.empty(n, "i8")
            array[:] = value
            return array

        def told(array, part, spaced=spaced):  # a buffer of `part` numbers for each rank or in all
            return [array, part, every_second] if spaced else [array, part, MPI.INT64_T]

        gap = 2 if spaced else 1
        index, all_ranks = np.arange(count), np.arange(size)
        each = 1000 * all_ranks[:, None] + index + step  # what each rank has
        mine, into = numbers(gap * count), numbers(gap * count, -1)
        mine[::gap] = each[rank]
        many, many_into = numbers(gap * count * size), numbers(gap * count * size, -1)
        many[::gap] = (each[rank] + 7 * all_ranks[:, None]).reshape(-1)  # a part for each rank
        parts = each[:, None, :] + 7 * all_ranks[:, None]
        total = each.sum(axis=0)
        if what == 0:
            world.Bcast(told(mine, count), root)
            assert (mine[::gap] == each[root]).all(), where
        elif what == 1:
            world.Gather(told(mine, count), told(many_into, count) if rank == root else None, root)
            assert rank != root or (many_into[::gap] == each.reshape(-1)).all(), where
        elif what == 2:
            world.Scatter(told(many, count) if rank == root else None, told(into, count), root)
            assert (into[::gap] == parts[root, rank]).all(), where
        elif what == 3:
            if in_place:
                many_into[gap * count * rank : gap * count * (rank + 1)] = mine
            world.Allgather(MPI.IN_PLACE if in_place else told(mine, count), told(many_into, count))
            assert (many_into[::gap] == each.reshape(-1)).all(), where
        elif what == 4:
            if in_place:
                world.Alltoall(MPI.IN_PLACE, told(many, count))
                many_into = many
            else:
                world.Alltoall(told(many, count), told(many_into, count))
            assert (many_into[::gap] == parts[:, rank].reshape(-1)).all(), where
        elif what == 5:
            if in_place and rank == root:
                into[:] = mine
            world.Reduce(
                MPI.IN_PLACE if in_place and rank == root else told(mine, count),
                told(into, count) if rank == root else None,
                MPI.SUM,
                root,
            )
            assert rank != root or (into[::gap] == total).all(), where
        elif what == 6:
            if in_place:
                into[:] = mine
            world.Allreduce(MPI.IN_PLACE if in_place else told(mine, count), told(into, count), MPI.SUM)
            assert (into[::gap] == total).all(), where
        else:
            world.Reduce_scatter_block(told(many, count), told(into, count), MPI.SUM)
            assert (into[::gap] == parts[:, rank].sum(axis=0)).all(), where
    every_second.Free()


def parts():
    # Collectives with a count for each rank: some ranks have nothing or little, and go on at once, others wait until
    # theirs is read. Between them are collectives that use the same slots, and ones that are not over yet.
    chance = random.Random(size)  # the same on all ranks
    mine_alone = random.Random(rank)
    every_third = MPI.INT64_T.Create_resized(0, 24).Commit()
    twins = world.Dup(), world.Dup()
    under_way = []

    def data(step, source, target, n):
        return np.arange(n) + 1_000_000 * step + 1000 * source + target

    def place(counts, parts, allocated, gap):
        """Return memory that has parts at places with gaps between them, and their displacements."""
        displs = [3 * i + sum(counts[:i]) for i in range(len(counts))]
        n = gap * (displs[-1] + counts[-1] + 1)
        array = np.frombuffer(MPI.Alloc_mem(8 * n), "i8") if allocated else np.empty(n, "i8")
        array[:] = -1
        for displ, part in zip(displs, parts):
            array[gap * displ : gap * (displ + len(part)) : gap] = part
        return array, displs

    for step in range(400):
        comm, what, root = twins[chance.randrange(2)], chance.randrange(8), chance.randrange(size)
        in_place, starts = chance.random() < 0.2, chance.random() < 0.2
        gaps = [3 if chance.random() < 0.15 else 1 for _ in range(2)]
        lengths = [[chance.choice([0, 0, 1, 2, 3, 60, 500, 700, 9000]) for _ in range(size)] for _ in range(size)]
        if what == 3 and in_place:
            lengths = [[lengths[min(r, q)][max(r, q)] for q in range(size)] for r in range(size)]
        where = f"step {step}: {what}, root {root}, {in_place}, {starts}, {gaps}, {lengths}"
        sender, receiver, each = rank == root or what != 1, rank == root or what != 0, what in (1, 3)
        if what in (0, 2):  # the same for all that get it
            lengths = [[row[0]] * size for row in lengths]
        sent = lengths[rank] if each else lengths[rank][:1]
        sources = [root] if what == 1 else range(size)
        came = [lengths[source][rank] for source in sources]
        expected = [data(step, source, rank if each else 0, n) for source, n in zip(sources, came)]
        alike = [every_third if gap == 3 else MPI.INT64_T for gap in gaps]
        send, send_displs = place(
            sent, [data(step, rank, t, n) for t, n in enumerate(sent)], chance.random() < 0.3, gaps[0]
        )
        own = [data(step, rank, each * t, n) if each or t == rank else () for t, n in enumerate(came)]
        into, displs = place(came, own if in_place and what != 1 else (), chance.random() < 0.3, gaps[1])
        sides = [
            [send, sent, send_displs, alike[0]] if each else [send, sent[0], alike[0]],
            [into, came[0], alike[1]] if what == 1 else [into, came, displs, alike[1]],
        ]
        if in_place and (what in (2, 3) or rank == root):
            sides[what == 1] = MPI.IN_PLACE
        if what < 4:
            name = ("Gatherv", "Scatterv", "Allgatherv", "Alltoallv")[what]
            call = getattr(comm, "I" + name.lower() if starts else name)
            request = call(
                *(side if has else None for side, has in zip(sides, (sender, receiver))), *[root] * (what < 2)
            )
            if receiver and not (what == 1 and rank == root and in_place):
                under_way.append((request, into, place(came, expected, False, gaps[1])[0], where))
            else:
                under_way.append((request, send, send.copy(), where))
        elif what == 4:
            comm.Barrier()
        elif what == 5:
            assert comm.bcast(step if rank == root else None, root) == step, where
        else:
            n = lengths[0][0]
            total = np.zeros(n, "i8")
            comm.Allreduce(data(step, rank, 0, n), total)
            assert (total == sum(data(step, r, 0, n) for r in range(size))).all(), where
        while len(under_way) > 5 or (under_way and (under_way[-1][0] is None or mine_alone.random() < 0.3)):
            request, got, right, where = under_way.pop()
            if request is not None:
                request.Wait()
            assert (got == right).all(), where
    for request, got, right, where in under_way:
        request.Wait()
        assert (got == right).all(), where
    every_third.Free()
