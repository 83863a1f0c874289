"""Utilities for programs that use MPI, with the names of mpi4py.util.

`dtlib` converts datatypes of NumPy, `pkl5` communicates objects without copying their buffers, `pool` has the
interface of multiprocessing.pool, and `sync` has counters, locks and conditions for processes.
"""
