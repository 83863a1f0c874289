"""dynesty computes an evidence by nested sampling; the workers of schwimmbad compute the likelihood."""

import sys

import dynesty
import numpy as np
from schwimmbad import MPIPool


def log_likelihood(x):
    return -0.5 * np.sum(x**2) / 0.01


def prior(u):
    return 2 * u - 1


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    options = {"nlive": 60, "pool": pool, "queue_size": 2 * pool.size, "rstate": np.random.default_rng(1)}
    sampler = dynesty.NestedSampler(log_likelihood, prior, 2, **options)
    sampler.run_nested(dlogz=0.5, print_progress=False)
    assert abs(sampler.results.logz[-1] - np.log(2 * np.pi * 0.01 / 4)) < 1.5
    print("checked")
