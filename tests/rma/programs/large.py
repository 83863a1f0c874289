"""Windows, displacements and counts beyond 2^31, where only the touched pages cost memory.

The argument is the size of the one long operation in bytes.
"""

import sys

import numpy as np
from onesided import FLAVOURS, MPI, rank, same, size, world

LONG = int(sys.argv[1])
NBYTES = (1 << 32) + (1 << 20)  # of a window; most of it is never touched
right, left = (rank + 1) % size, (rank - 1) % size
FAR = [(1 << 31) - 4, (1 << 31) + 5, (1 << 32) - 3, NBYTES - 8000]  # starts of accesses, bytes


def sparse(flavour):
    """Return a window of NBYTES bytes and its memory; no page of it is there yet."""
    if flavour == "create":
        memory = np.zeros(NBYTES, "u1")
        return MPI.Win.Create(memory, 1, comm=world), memory, 0
    if flavour == "allocate":
        win = MPI.Win.Allocate(NBYTES, 1, comm=world)
    elif flavour == "shared":
        win = MPI.Win.Allocate_shared(NBYTES, 1, comm=world)
    else:
        memory = np.zeros(NBYTES, "u1")
        win = MPI.Win.Create_dynamic(comm=world)
        win.Attach(memory)
        return win, memory, MPI.Get_address(memory)
    return win, win.tomemory(), 0


for flavour in [f for f in FLAVOURS if f != "create over Alloc_mem"]:
    win, memory, base = sparse(flavour)
    mine = np.frombuffer(memory, "u1")
    bases = world.allgather(base)
    values, back, old = np.arange(1000) + rank, np.zeros(1000, "i8"), np.zeros(1, "i8")
    theirs = np.arange(1000) + left
    for start in FAR:
        win.Lock(right)
        win.Put(values, right, bases[right] + start)
        win.Flush(right)
        win.Get(back, right, bases[right] + start)
        win.Flush(right)
        same(back, values)
        win.Accumulate(values, right, bases[right] + start)
        win.Get_accumulate(values, back, right, bases[right] + start, MPI.REPLACE)
        win.Flush(right)
        same(back, 2 * values)
        win.Fetch_and_op(values[1:2], old, right, bases[right] + start + 8 * 999)
        win.Flush(right)
        same(old, values[999:])
        win.Compare_and_swap(values[2:3], old + values[1], old, right, bases[right] + start + 8 * 999)
        win.Unlock(right)
        world.Barrier()
        expected = theirs.copy()
        expected[999] = theirs[2]
        same(np.frombuffer(memory, "u1", 8000, start).copy().view("i8"), expected, flavour, start)
        world.Barrier()
    # runs that are more than 2^31 bytes apart, in one type
    stride = (1 << 31) + 8
    apart = MPI.INT64_T.Create_hvector(2, 3, stride).Commit()
    six = np.arange(6) + 10 * rank
    win.Fence()
    win.Put([six, 6, MPI.INT64_T], right, (bases[right] + 4096, 1, apart))
    win.Fence()
    got = np.zeros(6, "i8")
    win.Accumulate([six, 6, MPI.INT64_T], right, (bases[right] + 4096, 1, apart))
    win.Fence()
    win.Get([got, 6, MPI.INT64_T], right, (bases[right] + 4096, 1, apart))
    win.Fence()
    same(got, 2 * six)
    same(mine[4096 : 4096 + 24].view("i8"), 2 * (np.arange(3) + 10 * left))
    same(mine[4096 + stride : 4096 + stride + 24].view("i8"), 2 * (np.arange(3, 6) + 10 * left))
    world.Barrier()
    apart.Free()
    if flavour == "dynamic":
        win.Detach(memory)
    win.Free()
    del mine, memory

# one operation on many elements, of a byte each; the target is one rank
for flavour in ("allocate", "create"):
    nbytes = LONG if rank == size - 1 else 0
    memory = np.zeros(nbytes, "u1") if flavour == "create" else None
    win = MPI.Win.Create(memory, 1, comm=world) if flavour == "create" else MPI.Win.Allocate(nbytes, 1, comm=world)
    mine = np.frombuffer(win.tomemory(), "u1") if nbytes else None
    win.Fence()
    if rank == 0:
        values = np.zeros(LONG, "u1")
        values[-1], values[LONG // 2], values[0] = 3, 5, 7
        win.Put(values, size - 1)
    win.Fence()
    if mine is not None:
        same([mine[0], mine[LONG // 2], mine[-1], mine.sum(dtype="i8")], [7, 5, 3, 15])
    world.Barrier()
    win.Fence()
    if rank == 0:
        win.Accumulate(values, size - 1)
    win.Fence()
    if rank == 0:
        values[:] = 1
        win.Get(values, size - 1)
    win.Fence()
    if rank == 0:
        same([values[0], values[LONG // 2], values[-1], values.sum(dtype="i8")], [14, 10, 6, 30])
        del values
    world.Barrier()
    win.Free()
    del mine, memory
