"""Write or read arrays in external32 under another MPI, or under gormapy; an argument says which, another one where."""

import sys

import numpy as np

# Elements that have the same size in memory and in external32, and a view without gaps: with others, MPICH writes
# beyond the data, and neither it nor Open MPI scales the extents in the file.
ARRAYS = {"h": "SHORT", "i": "INT", "f": "FLOAT", "d": "DOUBLE", "q": "LONG_LONG", "D": "C_DOUBLE_COMPLEX"}


def work(MPI, direction, folder):
    world = MPI.COMM_WORLD
    rank, n = world.Get_rank(), 5000
    amode = MPI.MODE_RDONLY if direction == "read" else MPI.MODE_CREATE | MPI.MODE_WRONLY
    for code, name in ARRAYS.items():
        datatype = getattr(MPI, name)
        everything = (np.arange(n * world.Get_size()) * 3 - 7).astype(code)
        values = everything[rank * n : (rank + 1) * n]
        file = MPI.File.Open(world, f"{folder}/{code}", amode)
        file.Set_view(datatype.Get_size() * n * rank, datatype, datatype, "external32")
        if direction == "write":
            file.Write_at_all(0, [values[:3000], 3000, datatype])
            file.Write_at(3000, [values[3000:], n - 3000, datatype])
        else:
            got = np.zeros_like(values)
            file.Read_at_all(0, [got[:2000], 2000, datatype])
            file.Read_at(2000, [got[2000:], n - 2000, datatype])
            assert (got == values).all(), (code, got, values)
        file.Close()
        world.Barrier()
        if rank == 0:
            written = np.fromfile(f"{folder}/{code}", np.dtype(code).newbyteorder(">"))
            assert (written == everything).all(), (code, written)
        world.Barrier()


if __name__ == "__main__":
    from mpi4py import MPI

    work(MPI, *sys.argv[1:])
