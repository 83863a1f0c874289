"""cobaya runs a chain on each rank; they learn their proposals from one another until they agree."""

from cobaya.run import run
from mpi4py import MPI

info = {
    "likelihood": {"gaussian": "lambda x, y: -0.5 * (x**2 + (y - x)**2)"},
    "params": {name: {"prior": {"min": -5, "max": 5}, "ref": 0.1, "proposal": 0.7} for name in "xy"},
    "sampler": {"mcmc": {"max_samples": 60, "Rminus1_stop": 0.5, "learn_every": "20d", "seed": 1}},
}
updated, sampler = run(info)
samples = sampler.samples(combined=True, skip_samples=0.2)
if MPI.COMM_WORLD.rank == 0:
    assert abs(samples.mean()[0]) < 3 and len(samples) > 10
    print("checked")
