"""mpiplus distributes tasks, and lets one rank do what is to be done once."""

import mpiplus
from mpi4py import MPI


def square(x):
    return x * x


@mpiplus.on_single_node(rank=0, broadcast_result=True)
def once():
    return MPI.COMM_WORLD.rank


assert once() == 0
assert list(mpiplus.distribute(square, range(10), send_results_to="all")) == [x * x for x in range(10)]
print("checked")
