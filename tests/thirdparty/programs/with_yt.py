"""yt analyses parts of a data set on each rank, and a quantity of all of it."""

import numpy as np
import yt

yt.set_log_level("error")
yt.enable_parallelism()
density = np.random.default_rng(1).uniform(size=(16, 16, 16))
data = yt.load_uniform_grid({"density": (density, "g/cm**3")}, density.shape, nprocs=8)
low, high = data.all_data().quantities.extrema(("gas", "density"))
assert float(low) == density.min() and float(high) == density.max()
found = {}
for stored, k in yt.parallel_objects(range(10), storage=found):
    stored.result = k * k
assert found == {k: k * k for k in range(10)}
print("checked")
