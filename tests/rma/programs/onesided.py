"""What the programs of this folder share: windows of every flavour, and cases that run over them.

They are plain MPI as far as possible, so that the same files run on other MPIs: where gormapy is not
installed, they use mpi4py.
"""

import sys
import time
from contextlib import contextmanager

import numpy as np

try:
    from gormapy import MPI
except ImportError:
    from mpi4py import MPI

GORMAPY = MPI.__name__.startswith("gormapy")

world = MPI.COMM_WORLD
rank = world.Get_rank()
size = world.Get_size()

# The memory of a window: of the program (private, or from Alloc_mem), of MPI, shared, attached later.
FLAVOURS = ["create", "create over Alloc_mem", "allocate", "shared", "dynamic"]
node = world.Split_type(MPI.COMM_TYPE_SHARED)
node_ranks = node.allgather(rank)
if len(node_ranks) < size:
    FLAVOURS.remove("shared")
node.Free()


class Window:
    """A window of ``count`` elements on each rank, whatever its flavour, with the own part as an array.

    Use ``at(rank, i)`` for the displacement of element i: dynamic windows have addresses there.
    """

    def __init__(self, flavour, count, dtype="f8", disp_unit=None, comm=world, info=MPI.INFO_NULL):
        self.flavour = flavour
        self.dtype = np.dtype(dtype)
        self.comm = comm
        self.unit = self.dtype.itemsize if disp_unit is None else disp_unit
        nbytes = count * self.dtype.itemsize
        if flavour == "create":
            self.memory = np.zeros(nbytes, "u1")
            self.win = MPI.Win.Create(self.memory, self.unit, info, comm)
        elif flavour == "create over Alloc_mem":
            self.memory = MPI.Alloc_mem(max(nbytes, 1))
            self.win = MPI.Win.Create(memoryview(self.memory)[:nbytes], self.unit, info, comm)
        elif flavour == "allocate":
            self.win = MPI.Win.Allocate(nbytes, self.unit, info, comm)
            self.memory = self.win.tomemory()
        elif flavour == "shared":
            self.win = MPI.Win.Allocate_shared(nbytes, self.unit, info, comm)
            self.memory = self.win.tomemory()
        elif flavour == "dynamic":
            self.memory = np.zeros(nbytes, "u1")
            self.win = MPI.Win.Create_dynamic(info, comm)
            if nbytes:
                self.win.Attach(self.memory)
            self.unit = 1
        else:
            raise ValueError(flavour)
        self.mine = np.frombuffer(self.memory, self.dtype, count) if count else np.zeros(0, self.dtype)
        self.mine.view("u1")[:] = 0
        base = MPI.Get_address(self.memory) if flavour == "dynamic" and nbytes else 0
        self.bases = comm.allgather(base)
        comm.Barrier()

    def at(self, target, element=0):
        """Return the displacement of an element, which may be a fraction where the unit allows it."""
        offset = element * self.dtype.itemsize
        assert offset % self.unit == 0
        return self.bases[target] + int(offset) // self.unit

    def byte(self, target, offset):
        """Return the displacement of a byte; the unit has to be 1."""
        assert self.unit == 1
        return self.bases[target] + offset

    def settle(self):
        """Let every rank see what all ranks did."""
        self.comm.Barrier()
        self.win.Lock(self.comm.rank, MPI.LOCK_SHARED)
        self.win.Sync()
        self.win.Unlock(self.comm.rank)

    def free(self):
        """Free the window and the memory that MPI gave."""
        self.comm.Barrier()
        if self.flavour == "dynamic" and len(self.memory):
            self.win.Detach(self.memory)
        self.win.Free()
        self.mine = None
        if self.flavour == "create over Alloc_mem":
            MPI.Free_mem(self.memory)
        self.memory = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:  # else the other ranks do not come
            self.free()


_cases = []


def case(function):
    """Register a function of a flavour, to be run over each."""
    _cases.append((function, True))
    return function


def once(function):
    """Register a function that makes its windows itself."""
    _cases.append((function, False))
    return function


def main():
    """Run every case over every flavour, or those whose names contain the first argument."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    flavours = sys.argv[2:] or FLAVOURS
    for function, every in _cases:
        if wanted not in function.__name__:
            continue
        for flavour in flavours if every else [None]:
            begun = time.monotonic()
            try:
                function(flavour) if every else function()
                world.Barrier()
            except Exception:
                print(f"rank {rank} of {size}: {function.__name__}, window {flavour}", file=sys.stderr, flush=True)
                raise
            if rank == 0:
                print(f"ok {time.monotonic() - begun:6.3f} s  {function.__name__}  {flavour or ''}", flush=True)


def same(found, expected, *what):
    """Compare arrays, or anything, exactly."""
    found, expected = np.asarray(found), np.asarray(expected)
    if not np.array_equal(found, expected):
        where = np.argwhere(found != expected)[:5].tolist() if found.shape == expected.shape else ""
        raise AssertionError(f"rank {rank} {what} at {where}: found {found!s:.500}, expected {expected!s:.500}")


@contextmanager
def fails(error_class, *naming):
    """Expect MPI.Exception of a class, with a text that has all of ``naming``."""
    try:
        yield
    except MPI.Exception as error:
        text = str(error)
        assert error.Get_error_class() == error_class, f"class {error.Get_error_class()}, not {error_class}: {text}"
        for word in naming:
            assert str(word) in text, f"{word!r} is not in: {text}"
    else:
        raise AssertionError(f"no error of class {error_class} ({naming})")
