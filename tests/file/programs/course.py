"""The programs of test_course.py."""

import os

import numpy as np

from gormapy import MPI


def explicit_offsets():
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    data = np.arange(5, dtype=np.int32) + 10 * rank
    offset = rank * data.nbytes
    fh = MPI.File.Open(comm, "output.bin", MPI.MODE_CREATE | MPI.MODE_WRONLY)
    fh.Write_at(offset, data)
    fh.Close()

    back = np.empty(5, dtype=np.int32)
    fh = MPI.File.Open(comm, "output.bin", MPI.MODE_RDONLY)
    fh.Read_at(offset, back)
    fh.Close()
    print(f"Rank {rank} read {back}")


def rows_of_a_matrix():
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    name, header = "rows_fixed.bin", 16
    rows, cols = 12, 10
    mine = rows // size
    i0 = rank * mine
    block = np.arange(i0 * cols, (i0 + mine) * cols, dtype=np.float64).reshape(mine, cols)

    etype = MPI.DOUBLE
    ft = etype.Create_subarray([rows, cols], [mine, cols], [i0, 0], order=MPI.ORDER_C)
    ft.Commit()
    fh = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    if rank == 0:
        fh.Write_at(0, np.array([rows, cols], dtype=np.int64))
    fh.Set_view(header, etype, ft, datarep="native")
    fh.Write_all(block)
    fh.Close()
    ft.Free()
    if rank == 0:
        print(f"[write] Wrote {rows}x{cols} (rows_per_rank={mine}) to {name}", flush=True)
    comm.Barrier()

    fh = MPI.File.Open(comm, name, MPI.MODE_RDONLY)
    shape = np.empty(2, dtype=np.int64)
    if rank == 0:
        fh.Read_at(0, shape)
    comm.Bcast(shape, root=0)
    ft = etype.Create_subarray(shape.tolist(), [mine, int(shape[1])], [i0, 0], order=MPI.ORDER_C)
    ft.Commit()
    fh.Set_view(header, etype, ft, datarep="native")
    ft.Free()  # the view keeps it
    back = np.empty((mine, cols))
    fh.Read_all(back)
    fh.Close()
    print(f"[read] rank {rank}: block {back.shape}, i0={i0}, ok={np.array_equal(back, block)}")
    assert os.path.getsize(name) == header + 8 * rows * cols
    assert (np.fromfile(name, offset=header) == np.arange(rows * cols)).all()
