"""zeus runs a chain on each rank, gathers them, and compares what they have found."""

import numpy as np
import zeus
from mpi4py import MPI
from zeus import ChainManager


def log_density(x):
    return -0.5 * np.sum(x**2)


with ChainManager(MPI.COMM_WORLD.size) as manager:
    rank = manager.get_rank
    np.random.seed(rank)
    sampler = zeus.EnsembleSampler(8, 2, log_density, verbose=False)
    sampler.run_mcmc(np.random.randn(8, 2), 200, progress=False)
    chains = manager.gather(sampler.get_chain(flat=True, discard=50), root=0)
    if rank == 0:
        assert len(chains) == MPI.COMM_WORLD.size
        assert abs(np.mean(chains)) < 0.4 and 0.6 < np.std(chains) < 1.4
    assert manager.bcast(rank, root=0) == 0
    print("checked")
