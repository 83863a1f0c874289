"""Measurements: ``python -m gormapy.bench NAME``, on ranks that it starts or under any launcher.

The loops take the MPI module as an argument, so that they measure another MPI in the same way:

    mpiexec -n 2 python -m gormapy.bench put_latency --mpi mpi4py.MPI
"""
