"""Small programs that show how gormapy is used.

    mpiexec -n 4 python -m gormapy.examples.ring

Each uses only what mpi4py has too: with `from mpi4py import MPI` in place of its import it runs there.
"""
