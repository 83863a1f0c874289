"""parallel_statistics has the mean and the variance of what all ranks have added."""

import numpy as np
from mpi4py import MPI
from parallel_statistics import ParallelMeanVariance

comm = MPI.COMM_WORLD
values = np.random.default_rng(1).normal(size=(4, 1000))
calculator = ParallelMeanVariance(4)
for pixel in range(4):
    calculator.add_data(pixel, values[pixel, comm.rank :: comm.size])
_, mean, variance = calculator.collect(comm)
if comm.rank == 0:
    assert np.allclose(mean, values.mean(1)) and np.allclose(variance, values.var(1))
    print("checked")
