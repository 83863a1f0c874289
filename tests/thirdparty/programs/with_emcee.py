"""emcee samples a normal distribution; the workers of schwimmbad compute its density."""

import sys

import emcee
import numpy as np
from schwimmbad import MPIPool


def log_density(x):
    return -0.5 * np.sum(x**2)


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    np.random.seed(1)
    sampler = emcee.EnsembleSampler(16, 2, log_density, pool=pool)
    sampler.run_mcmc(np.random.randn(16, 2), 200)
    samples = sampler.get_chain(discard=50, flat=True)
    assert abs(samples.mean()) < 0.4 and 0.6 < samples.std() < 1.4
    print("checked")
