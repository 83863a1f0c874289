"""The programs of test_large_files.py."""

import numpy as np
from rankside import rank, size, world

from gormapy import MPI


def far_offsets():
    far = 1 << 32
    f = MPI.File.Open(world, "far", MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE)
    f.Set_size(size * far)
    assert f.Get_size() == size * far
    mine = np.arange(1000) + rank
    f.Write_at(rank * far + (1 << 31) - 4, mine)
    f.Set_view(rank * far, MPI.LONG, MPI.LONG.Create_vector(2, 1, 1 << 28).Commit())  # two numbers, 2 GiB apart
    f.Write_at_all(0, np.array([5, 7]))
    assert f.Get_byte_offset(1) == rank * far + (1 << 31)
    f.Set_view(0, MPI.BYTE)
    f.Sync()
    world.Barrier()
    other = (rank + 1) % size
    back = np.empty(1000, "l")
    f.Read_at(other * far + (1 << 31) - 4, back)
    expected = np.arange(1000) + other
    expected.view("u1")[4:12] = np.array([7]).view("u1")
    assert (back == expected).all()
    two = np.empty(1, "l")
    f.Read_at(other * far, two)
    assert two[0] == 5
    f.Seek(-8, MPI.SEEK_END)
    assert f.Get_position() == size * far - 8
    f.Close()


def long_counts():
    n = (1 << 31) + 1001
    data = np.arange(n, dtype="u1") if rank == 0 else np.arange(1001, dtype="u1")
    f = MPI.File.Open(world, "long", MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE)
    status = MPI.Status()
    f.Write_at_all(0 if rank == 0 else n, data, status)
    assert status.Get_count(MPI.BYTE) == len(data)
    assert f.Get_size() == n + 1001
    data[:] = 0
    f.Read_at_all(0 if rank == 0 else n, data, status)
    assert status.Get_count(MPI.BYTE) == len(data)
    for at in (0, len(data) // 2, len(data) - 500):
        assert (data[at : at + 500] == np.arange(at, at + 500).astype("u1")).all()
    f.Close()
