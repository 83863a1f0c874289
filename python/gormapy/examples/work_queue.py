"""Share out tasks by one-sided calls: no rank serves the queue.

    mpiexec -n 4 python -m gormapy.examples.work_queue [TASKS]

Rank 0 owns the number of tasks that are left, the tasks, and room for the results. Every worker takes a
task by compare-and-swap, squares it, and puts the result into its place. Rank 0 waits in a barrier all the
while. Displacements are bytes, because `disp_unit` is 1 by default.
"""

import sys

import numpy as np

from gormapy import MPI

ROOT = 0


def take(win, cur):
    """Lower the counter by one and return the number of the task, or None when there are no more."""
    new, old = np.empty(1, "i"), np.empty(1, "i")
    while True:
        win.Lock(ROOT, MPI.LOCK_SHARED)
        win.Get([cur, MPI.INT], ROOT, 0)
        win.Unlock(ROOT)
        if cur[0] == 0:
            return None
        new[0] = cur[0] - 1
        win.Lock(ROOT, MPI.LOCK_EXCLUSIVE)
        win.Compare_and_swap([new, MPI.INT], [cur, MPI.INT], [old, MPI.INT], ROOT, 0)
        win.Flush(ROOT)
        win.Unlock(ROOT)
        if old[0] == cur[0]:  # no other worker was faster
            return int(new[0])


def work(comm, counter, tasks, results):
    """Do tasks until there are no more and return how many were done."""
    cur, task, done = np.empty(1, "i"), np.empty(1, "i"), 0
    while (index := take(counter, cur)) is not None:
        tasks.Lock(ROOT, MPI.LOCK_SHARED)
        tasks.Get([task, MPI.INT], ROOT, index * task.itemsize)
        tasks.Unlock(ROOT)
        result = np.array([float(task[0]) ** 2], "d")
        results.Lock(ROOT, MPI.LOCK_SHARED)
        results.Put([result, MPI.DOUBLE], ROOT, index * result.itemsize)
        results.Unlock(ROOT)
        done += 1
    return done


def main(args=None):
    """Square the numbers from 1 to TASKS (8 unless said otherwise)."""
    args = sys.argv[1:] if args is None else args
    comm = MPI.COMM_WORLD
    try:
        (n,) = map(int, args or ["8"])
        if n < 0:
            raise ValueError
    except ValueError:
        sys.exit(f"work_queue: the number of tasks was expected, not {' '.join(args)!r}")
    owner = comm.Get_rank() == ROOT
    counter = np.array([n], "i") if owner else None
    tasks = np.arange(1, n + 1, dtype="i") if owner else None
    results = np.full(n, np.nan) if owner else None
    windows = [MPI.Win.Create(memory, comm=comm) for memory in (counter, tasks, results)]

    comm.Barrier()
    alone = comm.Get_size() == 1
    done = work(comm, *windows) if alone or not owner else 0
    comm.Barrier()
    total = comm.reduce(done, root=ROOT)
    if owner:
        print(f"final counter={counter[0]} (should be 0)")
        print(f"results filled: {np.count_nonzero(~np.isnan(results))}/{n}")
        print(f"results: {results.tolist()}", flush=True)
        assert total == n and np.array_equal(results, np.arange(1.0, n + 1) ** 2)
    for win in windows:
        win.Free()


if __name__ == "__main__":
    main()
