"""mpiparticles moves particles to the ranks that own them."""

import numpy as np
from mpi4py import MPI
from mpiparticles import BoxDecomposition, IdAllocator, ParticleStore, global_count, migrate

comm = MPI.COMM_WORLD
decomposition = BoxDecomposition(comm, [0.0, 0.0], [1.0, 1.0], proc_sizes=[comm.size, 1])
store = ParticleStore(ndim=2, nvel=3, id_allocator=IdAllocator.from_comm(comm))
random = np.random.default_rng(comm.rank)
store.add(random.uniform(size=(2, 100)), np.zeros((3, 100)))
migrate(store, decomposition)
store.compact_if_needed()
assert global_count(store, comm) == 100 * comm.size
x = store.positions[0, : store.length]
assert ((x >= comm.rank / comm.size) & (x <= (comm.rank + 1) / comm.size)).sum() >= global_count(store, MPI.COMM_SELF)
print("checked")
