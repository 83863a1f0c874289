"""What a rank runs out of is an error of the call, on all ranks that take part; nobody is called dead, and it works again.

The n-th descriptor that a call needs is not to be had, for n from 0, on each rank in turn; memory is
limited to less than the call asks for. `make exhaustion` goes further. Threads, and the last pages, are
not in it: Go's run-time ends the process when it can't have those for itself.
"""

import os

import pytest

WHOLE = os.environ.get("EXHAUSTION") == "whole"
RANKS = (2, 3, 5) if WHOLE else (2,)
SPARE = 24 if WHOLE else 5

CALLS = {
    "Alloc_mem": "MPI.Free_mem(MPI.Alloc_mem(BYTES))",
    "shared_empty": "gormapy.shared_empty(BYTES, np.uint8)",
    "Win.Allocate": "MPI.Win.Allocate(BYTES, comm=world).Free()",
    "Win.Allocate_shared": "MPI.Win.Allocate_shared(BYTES, comm=world).Free()",
    "Win.Create": "MPI.Win.Create(private, comm=world).Free()",
    "Win.Create, shared": "MPI.Win.Create(shared, comm=world).Free()",
    "Win.Create_dynamic": "win = MPI.Win.Create_dynamic(comm=world); win.Attach(private); win.Detach(private); win.Free()",
    "Dup": "world.Dup().Free()",
    "Split_type": "world.Split_type(MPI.COMM_TYPE_SHARED).Free()",
    "File": "f = MPI.File.Open(world, 'file', MPI.MODE_CREATE | MPI.MODE_RDWR); f.Write_at_all(rank * 8, private[:8]); f.Close()",
    "File, shared pointer": "f = MPI.File.Open(world, 'file', MPI.MODE_CREATE | MPI.MODE_RDWR); f.Write_shared(private[:8]); f.Close()",
    "Send, long": "world.Sendrecv(long, (rank + 1) % size, recvbuf=long.copy())",
    "Allreduce": "world.Allreduce(long, long.copy())",
}

PROGRAM = """
import resource, sys
import numpy as np
import pickle  # and what the first error needs
from rankside import *

# Descriptors, mappings and modules that are needed once are there.
BYTES = 4096
private, shared, long = np.zeros(4096, np.uint8), gormapy.shared_empty(4096, np.uint8), np.zeros(1 << 18)
for _ in range(2):
    {call}
error_of(lambda: world.Send(private, size))

def limited(kind, value, call):
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, before[1]))
    try:
        return call()
    finally:
        resource.setrlimit(kind, before)

def attempt():
    try:
        {call}
    except (MPI.Exception, MemoryError) as error:
        return str(error)
    return ""

def limit(spare):
    "The limit below which so many numbers of descriptors are free."
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(spare + 1)]
    for fd in fds:
        os.close(fd)
    return fds[-1]

def tally(ended):
    "All ranks have got on, and know of each other's errors."
    all_ended = world.allgather(ended)
    assert world.allreduce(1) == size
    for r in range(size):
        assert "has ended" not in all_ended[r] and "PROC_FAILED" not in all_ended[r], all_ended
    return all_ended
"""

DESCRIPTORS = (
    PROGRAM
    + """
await_watchers()
for victim in range(size):
    outcomes = []
    open_before = len(os.listdir("/proc/self/fd"))
    for spare in range({spare}):
        world.Barrier()
        ended = limited(resource.RLIMIT_NOFILE, limit(spare), attempt) if rank == victim else attempt()
        all_ended = tally(ended)
        if any(all_ended):
            said = all_ended[victim].lower()
            assert "too many open files" in said or "can't share memory" in said, all_ended
        outcomes.append(not any(all_ended))
    assert outcomes[-1] and outcomes == sorted(outcomes), outcomes
    assert attempt() == ""
    assert len(os.listdir("/proc/self/fd")) == open_before, "descriptors are left"
    if rank == 0:
        say("refused", outcomes.count(False))
"""
)


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("call", CALLS)
def test_descriptors(mpirun, call, n):
    mpirun(n, DESCRIPTORS.format(call=CALLS[call], spare=SPARE))


MEMORY = (
    PROGRAM
    + """
BYTES = 1 << 30
def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

for victim in range(size):
    world.Barrier()
    ended = limited(resource.RLIMIT_AS, used() + (96 << 20), attempt) if rank == victim else attempt()
    all_ended = tally(ended)
    assert all_ended[victim], all_ended
    assert "memory" in all_ended[victim], all_ended
    assert attempt() == ""
"""
)


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("call", ["Alloc_mem", "shared_empty", "Win.Allocate", "Win.Allocate_shared"])
def test_memory(mpirun, call, n):
    mpirun(n, MEMORY.format(call=CALLS[call]))


RDMA = """
import os, resource, sys
import numpy as np
from gormapy import rdma

def context():
    with rdma.Context({device!r}, {backend!r}) as c:
        pair(c).close()

def pair(c):
    pd, cq = c.alloc_pd(), c.create_cq(16)
    return pd.create_qp(cq, cq)

def engines():
    with rdma.Engine("a", backend={backend!r}) as a, rdma.Engine("b", backend={backend!r}) as b:
        pass

for call in (context, engines):
    call()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    outcomes = []
    for spare in range({spare}):
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(spare + 1)]
        for fd in fds:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (fds[-1], hard))  # so many are free
        try:
            call()
        except (rdma.Error, OSError) as error:
            outcomes.append(str(error))
            refused = str(error).lower()
        else:
            outcomes.append("")
            refused = "too many open files"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "too many open files" in refused, refused
    assert outcomes[0] and not outcomes[-1], outcomes
    call()
"""


@pytest.mark.parametrize("backend", ["tcp", "shm"])
def test_rdma(mpirun, backend):
    from gormapy import rdma

    device = rdma.devices(backend)[0].name
    mpirun.alone(RDMA.format(device=device, backend=backend, spare=SPARE + 8))
