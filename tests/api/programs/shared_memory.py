"""The programs of test_shared_memory.py."""

from rankside import rank, world

import gormapy
from gormapy import MPI


def alignment_as_the_hint_says():
    def alloc(n, align):
        return MPI.Alloc_mem(n, MPI.Info.Create({"mpi_minimum_memory_alignment": align, "unknown": "x"}))

    for power in range(22):
        for n in (1, 100, 70_000):
            assert alloc(n, str(1 << power)).address % (1 << power) == 0
    for bad in ("0", "3", "-8", "", "x", "8.0", "4194304", "9" * 40, "\u0663"):
        try:
            alloc(8, bad)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_INFO_VALUE
            assert "a power of two from 1 to 2097152" in str(error)
        else:
            raise AssertionError(bad)
    assert len(MPI.Alloc_mem(0)) == 0


def arrays_travel_as_copies():
    mine = gormapy.shared_zeros(10)
    mine[:] = rank
    other = world.sendrecv(mine, 1 - rank, source=1 - rank)
    other += 1
    assert (other == 2 - rank).all() and (mine == rank).all()
    got = gormapy.shared_empty(10)
    world.Sendrecv(mine, 1 - rank, 0, got, 1 - rank, 0)
    assert (got == 1 - rank).all()
