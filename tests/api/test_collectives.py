"""Collective operations on buffers and on objects."""

from support.programs import beside

program = beside(__file__)


def test_buffers(mpirun, n):
    mpirun(
        n,
        """
        import numpy as np
        from rankside import *
        world.Barrier()
        for comm in (world, MPI.COMM_SELF, world.Dup()):
            rank, size = comm.rank, comm.size
            for count in (0, 1, 5, 3000, 100_000):
                for root in {0, size - 1}:
                    data = np.arange(count, dtype="i8") * 3 if rank == root else np.zeros(count, "i8")
                    comm.Bcast(data, root)
                    assert (data == np.arange(count) * 3).all()
                    mine = np.arange(count) + 1000 * rank
                    rows = np.zeros((size, count), int) if rank == root else None
                    comm.Gather(mine, rows, root)
                    if rank == root:
                        assert (rows == np.arange(count) + 1000 * np.arange(size)[:, None]).all()
                        rows += 1
                    back = np.zeros(count, int)
                    comm.Scatter(rows, [back, MPI.LONG], root=root)
                    assert (back == mine + 1).all()
                    if rank == root:
                        rows[root] = -1
                    comm.Scatter(rows, MPI.IN_PLACE if rank == root else back, root)
                    if rank == root:
                        rows[root] = mine
                        comm.Gather(MPI.IN_PLACE, rows, root)
                        assert (rows[root] == mine).all()
                    else:
                        comm.Gather(mine, None, root)
                rows = np.zeros((size, count), int)
                comm.Allgather(mine, rows)
                assert (rows == np.arange(count) + 1000 * np.arange(size)[:, None]).all()
                rows[:] = -1
                rows[rank] = mine
                comm.Allgather(MPI.IN_PLACE, rows)
                assert (rows == np.arange(count) + 1000 * np.arange(size)[:, None]).all()
                out = np.array([[100 * rank + r] * count for r in range(size)])
                into = np.zeros_like(out)
                comm.Alltoall(out, into)
                expected = np.array([[100 * r + rank] * count for r in range(size)])
                assert (into == expected).all()
                comm.Alltoall(MPI.IN_PLACE, out)
                assert (out == expected).all()
        """,
        timeout=60,
    )


def test_different_amounts(ranks, n):
    ranks(
        n,
        program.different_amounts,
    )


def test_reductions(ranks, n):
    ranks(
        n,
        program.reductions,
        timeout=60,
    )


def test_nonblocking(ranks, n):
    ranks(
        n,
        program.nonblocking,
    )


def test_objects(ranks, n):
    ranks(
        n,
        program.objects,
    )


def test_errors_before_anything_moves(ranks):
    ranks(
        2,
        program.errors_before_anything_moves,
    )
