"""maybempi takes mpi4py if a launcher has started the program."""

import maybempi

MPI = maybempi.get_mpi()
assert not maybempi.is_serial(MPI)
assert MPI.COMM_WORLD.size > 1
assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size
print("checked")
