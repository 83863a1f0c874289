"""The programs of test_exhaustion.py."""

import contextlib
import os
import pickle  # noqa: F401  who has no descriptors left can't import it
import resource
import time
from pathlib import Path

import numpy as np
from rankside import await_watchers, error_of, near, rank, say, size, world

import gormapy
from gormapy import MPI

private, shared, long = np.zeros(4096, np.uint8), gormapy.shared_empty(4096, np.uint8), np.zeros(1 << 18)
node = near()


def create_dynamic(nbytes):
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(private)
    win.Detach(private)
    win.Free()


def open_file():
    return MPI.File.Open(world, "file", MPI.MODE_CREATE | MPI.MODE_RDWR)


def write_at(nbytes):
    file = open_file()
    file.Write_at_all(rank * 8, private[:8])
    file.Close()


def write_shared(nbytes):
    file = open_file()
    file.Write_shared(private[:8])
    file.Close()


# Some are of so many bytes.
CALLS = {
    "Alloc_mem": lambda nbytes: MPI.Free_mem(MPI.Alloc_mem(nbytes)),
    "shared_empty": lambda nbytes: gormapy.shared_empty(nbytes, np.uint8),
    "Win.Allocate": lambda nbytes: MPI.Win.Allocate(nbytes, comm=world).Free(),
    "Win.Allocate_shared": lambda nbytes: MPI.Win.Allocate_shared(nbytes, comm=node).Free(),
    "Win.Create": lambda nbytes: MPI.Win.Create(private, comm=world).Free(),
    "Win.Create, shared": lambda nbytes: MPI.Win.Create(shared, comm=world).Free(),
    "Win.Create_dynamic": create_dynamic,
    "Dup": lambda nbytes: world.Dup().Free(),
    "Split_type": lambda nbytes: world.Split_type(MPI.COMM_TYPE_SHARED).Free(),
    "File": write_at,
    "File, shared pointer": write_shared,
    "Send, long": lambda nbytes: world.Sendrecv(long, (rank + 1) % size, recvbuf=long.copy()),
    "Allreduce": lambda nbytes: world.Allreduce(long, long.copy()),
}


def prepare(call):
    """Make the descriptors, the mappings and the modules that are needed once, and what the first error needs."""
    for _ in range(2):
        CALLS[call](4096)
    error_of(lambda: world.Send(private, size))


def attempt(call, nbytes, kind=None, limit=None):
    """Make a call, with a limit where one is given; return the error."""
    if kind is not None:
        before = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit, before[1]))
    try:
        CALLS[call](nbytes)
    except (MPI.Exception, MemoryError) as error:
        return str(error)
    finally:
        if kind is not None:
            resource.setrlimit(kind, before)
    return ""


def number_of_descriptors(spare):
    """Return the limit below which so many numbers of descriptors are free."""
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(spare + 1)]
    for fd in fds:
        os.close(fd)
    return fds[-1]


def open_descriptors():
    """Return what each descriptor of this process is of. One that is closed meanwhile, as that of the folder, is left out."""
    links = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            links[number] = os.readlink(f"/proc/self/fd/{number}")
    return links


def all_are_closed_but(before):
    """Report whether no more descriptors are open than before, soon: the core opens files of /proc for moments."""
    end = time.monotonic() + 10
    while len(open_descriptors()) > len(before) and time.monotonic() < end:
        time.sleep(0.01)
    return len(open_descriptors()) <= len(before)


def tally(ended):
    """See that all ranks have got on, and know of each other's errors."""
    all_ended = world.allgather(ended)
    assert world.allreduce(1) == size
    for r in range(size):
        assert "has ended" not in all_ended[r] and "PROC_FAILED" not in all_ended[r], all_ended
    return all_ended


def descriptors(call, most):
    prepare(call)
    await_watchers()
    tally("")  # connections stay
    for victim in range(size):
        outcomes = []
        before = open_descriptors()
        for spare in range(most):
            world.Barrier()
            limited = (resource.RLIMIT_NOFILE, number_of_descriptors(spare)) if rank == victim else ()
            all_ended = tally(attempt(call, 4096, *limited))
            if any(all_ended):
                said = all_ended[victim].lower()
                assert "too many open files" in said or "can't share memory" in said, all_ended
            outcomes.append(not any(all_ended))
        assert outcomes[-1] and outcomes == sorted(outcomes), outcomes
        assert attempt(call, 4096) == ""
        assert all_are_closed_but(before), ("descriptors are left", before, open_descriptors())
        if rank == 0:
            say("refused", outcomes.count(False))


def used():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def memory(call):
    prepare(call)
    nbytes = 1 << 30
    for victim in range(size):
        world.Barrier()
        limited = (resource.RLIMIT_AS, used() + (96 << 20)) if rank == victim else ()
        all_ended = tally(attempt(call, nbytes, *limited))
        assert all_ended[victim], all_ended
        assert "memory" in all_ended[victim], all_ended
        assert attempt(call, nbytes) == ""
