"""What a rank runs out of is an error of the call, on all ranks that take part; nobody is called dead, and it works again.

The n-th descriptor that a call needs is not to be had, for n from 0, on each rank in turn; memory is
limited to less than the call asks for. `make exhaustion` goes further. Threads, and the last pages, are
not in it: Go's run-time ends the process when it can't have those for itself.
"""

import os

import pytest
from support.programs import beside

program, without_mpi = beside(__file__), beside(__file__, "rdma")

WHOLE = os.environ.get("EXHAUSTION") == "whole"
RANKS = (2, 3, 5) if WHOLE else (2,)
SPARE = 24 if WHOLE else 5


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("call", program.keys_of("CALLS"))
def test_descriptors(mpirun, call, n):
    mpirun(n, program.descriptors, call, SPARE)


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("call", ["Alloc_mem", "shared_empty", "Win.Allocate", "Win.Allocate_shared"])
def test_memory(mpirun, call, n):
    mpirun(n, program.memory, call)


@pytest.mark.parametrize("backend", ["tcp", "shm"])
def test_rdma(mpirun, backend):
    from gormapy import rdma

    device = rdma.devices(backend)[0].name
    mpirun.alone(without_mpi.descriptors, device, backend, SPARE + 8)
