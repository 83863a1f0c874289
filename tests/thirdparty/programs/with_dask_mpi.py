"""Dask-MPI starts a scheduler and workers on the ranks, and the script goes on as their client."""

import dask
from dask_mpi import execute
from mpi4py import MPI


def client():
    from dask.distributed import Client

    with Client() as client:
        client.wait_for_workers(1, timeout=100)
        assert client.submit(sum, range(10)).result(100) == 45
        assert sum(client.gather(client.map(abs, range(-20, 0)))) == 210
    print("checked")


dask.config.set({"distributed.worker.daemon": False})
# The scheduler and a worker take a rank each if there are ranks enough for the client.
if MPI.COMM_WORLD.size > 2:
    execute(client, nthreads=1, local_directory=".", interface="lo", dashboard=False)
else:
    execute(client, nthreads=1, local_directory=".", interface="lo", dashboard=False, exclusive_workers=False)
