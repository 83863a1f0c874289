"""nautilus computes an evidence; the workers of schwimmbad compute the likelihood."""

import sys

import numpy as np
from nautilus import Prior, Sampler
from schwimmbad import MPIPool


def log_likelihood(point):
    return -0.5 * (point["x"] ** 2 + point["y"] ** 2) / 0.01


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    prior = Prior()
    for name in "xy":
        prior.add_parameter(name, dist=(-1, 1))
    sampler = Sampler(prior, log_likelihood, n_live=200, n_networks=0, pool=(pool, None), seed=1)
    sampler.run(n_eff=200, discard_exploration=False)
    assert abs(sampler.log_z - np.log(2 * np.pi * 0.01 / 4)) < 0.5
    print("checked")
