"""h5py of the index, which is serial: each rank writes a file, and one makes a virtual data set of them."""

import os
import tempfile

import h5py
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
assert not h5py.get_config().mpi
folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
with h5py.File(os.path.join(folder, f"{comm.rank}.h5"), "w") as file:
    file["part"] = np.full(10, comm.rank)
comm.Barrier()
if comm.rank == 0:
    layout = h5py.VirtualLayout((comm.size, 10), int)
    for rank in range(comm.size):
        layout[rank] = h5py.VirtualSource(os.path.join(folder, f"{rank}.h5"), "part", (10,))
    with h5py.File(os.path.join(folder, "all.h5"), "w") as file:
        file.create_virtual_dataset("all", layout)
    with h5py.File(os.path.join(folder, "all.h5")) as file:
        assert file["all"][:, 0].tolist() == list(range(comm.size))
        print("checked")
