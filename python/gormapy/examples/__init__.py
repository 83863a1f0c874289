"""Small programs that show how gormapy is used.

    mpiexec -n 4 python -m gormapy.examples.ring

Most use only features of mpi4py: with `from mpi4py import MPI` in place of their import they run with it.
`simple_interchange` and `write_cpu` are programs of `gormapy.rdma`, without MPI and without mpiexec.
"""
