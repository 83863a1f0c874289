"""TreeCorr counts the pairs of a catalogue, its patches divided among the ranks."""

import numpy as np
import treecorr
from mpi4py import MPI

random = np.random.default_rng(1)
x, y = random.uniform(0, 100, (2, 800))
options = {"min_sep": 1, "max_sep": 30, "nbins": 8, "bin_slop": 0}
whole = treecorr.NNCorrelation(**options)
whole.process(treecorr.Catalog(x=x, y=y))
patch = (x > 50).astype(int) + 2 * (y > 50)
parts = treecorr.NNCorrelation(**options)
parts.process(treecorr.Catalog(x=x, y=y, patch=patch), comm=MPI.COMM_WORLD)
if MPI.COMM_WORLD.rank == 0:
    assert np.allclose(parts.npairs, whole.npairs)
    print("checked")
