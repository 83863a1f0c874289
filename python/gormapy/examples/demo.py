"""A tour on a few ranks: who is where, a ring, a one-sided Put, and a Put to a rank that is busy.

    mpiexec -n 4 python -m gormapy.examples.demo

Rank 0 prints what the others report to it, so the output is in order.
"""

import os
from statistics import median

import numpy as np

from gormapy import MPI

BUSY = 0.5  # seconds that a rank computes while another writes into its memory


def who(comm):
    """Print which process is which rank."""
    ranks = comm.gather((MPI.Get_processor_name(), os.getpid()))
    if comm.rank == 0:
        print(f"{comm.size} rank{'s' * (comm.size > 1)}, {MPI.Get_library_version().split(',')[0].strip()}")
        for rank, (host, pid) in enumerate(ranks):
            print(f"  rank {rank}: process {pid} on {host}")


def ring(comm):
    """Pass numbers to the right, five times, with requests that are made once."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    mine, got = np.zeros(1, "i"), np.zeros(1, "i")
    requests = [comm.Send_init(mine, dest=right), comm.Recv_init(got, source=left)]
    right_every_time = True
    for turn in range(5):
        mine[0] = comm.rank + 100 * turn
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        right_every_time &= int(got[0]) == left + 100 * turn
    for request in requests:
        request.Free()
    rows = comm.gather((left, int(got[0]), right_every_time))
    if comm.rank == 0:
        print("\nRing: each rank sends to its right-hand neighbour; the last of 5 turns")
        for rank, (source, value, good) in enumerate(rows):
            print(f"  rank {rank} got {value} from rank {source}" + ("" if good else ", but not every turn was right!"))


def put(comm):
    """Write into a neighbour's array; the neighbour does nothing for it."""
    memory = np.full(1, -1, "i")
    win = MPI.Win.Create(memory, disp_unit=memory.itemsize, comm=comm)
    right = (comm.rank + 1) % comm.size
    value = np.array([comm.rank * 11], "i")
    win.Fence()
    win.Put(value, right)
    win.Fence()
    seen = comm.gather(int(memory[0]))
    win.Free()
    if comm.rank == 0:
        print("\nPut: each rank writes 11 x its rank into its right-hand neighbour's array")
        print("  " + ", ".join(f"rank {rank} has {value}" for rank, value in enumerate(seen)))


def compute(seconds):
    """Compute in pure Python, without any call of MPI, and return the number of steps."""
    steps, end = 0, MPI.Wtime() + seconds
    while MPI.Wtime() < end:
        steps += sum(i * i for i in range(1000))
    return steps


def busy(comm):
    """Write into the memory of a rank that computes: it is not asked to take part."""
    if comm.size < 2:
        print("\nPut to a busy rank: start 2 ranks or more to see it")
        return
    target = comm.size - 1
    memory = np.zeros(1, "d")
    win = MPI.Win.Create(memory if comm.rank == target else None, disp_unit=8, comm=comm)
    comm.Barrier()
    if comm.rank == target:
        compute(BUSY)
    times = []
    if comm.rank == 0:
        begin = MPI.Wtime()
        while MPI.Wtime() < begin + BUSY / 2:
            start = MPI.Wtime()
            count = np.array([len(times)], "d")
            win.Lock(target)
            win.Put(count, target)
            win.Unlock(target)
            times.append(MPI.Wtime() - start)
    comm.Barrier()  # the others wait here, asleep
    win.Lock(comm.rank)
    last = comm.bcast(float(memory[0]), root=target)
    win.Unlock(comm.rank)
    win.Free()
    if comm.rank == 0:
        slowest = 1e6 * sorted(times)[len(times) * 99 // 100]
        print(f"\nPut to a busy rank: rank {target} computes in pure Python for {BUSY} s and never calls MPI")
        print(f"  rank 0 wrote {len(times)} times meanwhile, and the last value is there: {last == len(times) - 1}")
        print(f"  Lock + Put + Unlock took {1e6 * median(times):.1f} us (median), 99 of 100 less than {slowest:.0f} us")


def main():
    """Run the tour."""
    comm = MPI.COMM_WORLD
    for part in (who, ring, put, busy):
        part(comm)


if __name__ == "__main__":
    main()
