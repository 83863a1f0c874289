"""executorlib starts its workers by mpiexec, and each of their ranks computes a part. Started without a launcher."""

import sys

from executorlib import SingleNodeExecutor


def part(x):
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, MPI.COMM_WORLD.allreduce(x)


if __name__ == "__main__":
    n = int(sys.argv[1])
    with SingleNodeExecutor(resource_dict={"cores": n}, hostname_localhost=True) as executor:
        futures = [executor.submit(part, x) for x in range(3)]
        for x, future in enumerate(futures):
            assert future.result(200) == [(rank, n, n * x) for rank in range(n)]
    print("checked")
