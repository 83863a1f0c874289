"""PTMCMCSampler runs chains of several temperatures, a rank each, that exchange their states."""

import tempfile

import numpy as np
from mpi4py import MPI
from PTMCMCSampler.PTMCMCSampler import PTSampler

comm = MPI.COMM_WORLD
folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)


def log_density(x):
    return -0.5 * np.sum(x**2)


sampler = PTSampler(2, log_density, lambda x: 0.0, np.eye(2), outDir=folder, verbose=False, seed=comm.rank)
sampler.sample(np.zeros(2), 3000, burn=500, thin=1, covUpdate=500, isave=500)
comm.Barrier()
if comm.rank == 0:
    chain = np.loadtxt(f"{folder}/chain_1.0.txt")
    assert abs(chain[500:, :2].mean()) < 0.5 and 0.5 < chain[500:, :2].std() < 1.5
    print("checked")
