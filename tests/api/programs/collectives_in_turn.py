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
