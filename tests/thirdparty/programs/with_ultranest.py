"""ultranest shares the points of a nested sampler among the ranks by itself."""

import numpy as np
import ultranest
from mpi4py import MPI


def log_likelihood(x):
    return -0.5 * np.sum(x**2) / 0.01


sampler = ultranest.ReactiveNestedSampler(["x", "y"], log_likelihood, lambda u: 2 * u - 1, log_dir=None)
assert sampler.use_mpi == (MPI.COMM_WORLD.size > 1)
result = sampler.run(min_num_live_points=60, dlogz=1, show_status=False, viz_callback=False, max_ncalls=20000)
assert abs(result["logz"] - np.log(2 * np.pi * 0.01 / 4)) < 1.5
assert len(set(MPI.COMM_WORLD.allgather(result["logz"]))) == 1
print("checked")
