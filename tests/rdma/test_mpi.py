"""MPI over verbs: messages, windows, atomics, what info says of it, and a peer that is killed."""

import os
import re
import sys

# The guest is 20 times slower than a machine.
TIMEOUT = 120.0 if "RXE_GUEST" in os.environ else 30.0
VERBS = {"GORMAPY_FABRIC": "verbs"}


def test_messages_and_windows(mpirun):
    mpirun(
        3,
        """
        import numpy as np
        from gormapy import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        right, left = (rank + 1) % size, (rank - 1) % size
        for count in (1, 1000, 300_000):  # eager, eager in pieces, rendezvous
            mine, other = np.full(count, rank, "d"), np.empty(count)
            comm.Sendrecv(mine, right, recvbuf=other, source=left)
            assert (other == left).all(), count
        assert comm.allreduce(rank) == sum(range(size))
        target = np.zeros(1000)
        win = MPI.Win.Create(target, comm=comm)
        win.Fence()
        win.Put(np.full(1000, float(rank)), right)
        win.Fence()
        assert (target == left).all()
        got = np.zeros(1000)
        win.Lock(right)
        win.Get(got, right)
        win.Flush(right)
        assert (got == rank).all()
        win.Unlock(right)
        win.Free()
        counter = np.zeros(1, "q")
        win = MPI.Win.Create(counter if rank == 0 else None, disp_unit=8, comm=comm)
        found = np.zeros(1, "q")
        win.Lock_all()
        for _ in range(20):
            win.Fetch_and_op(np.ones(1, "q"), found, 0)
            win.Flush(0)
        win.Unlock_all()
        comm.Barrier()
        if rank == 0:
            win.Lock(0)
            assert counter[0] == 20 * size, counter
            win.Unlock(0)
        comm.Barrier()
        win.Free()
        """,
        env=VERBS,
        timeout=TIMEOUT,
    )


def test_info_names_verbs(mpirun):
    done = mpirun.command(2, sys.executable, "-m", "gormapy", "info", env=VERBS, timeout=TIMEOUT).finish()
    print(done.stdout)
    # The row of the peer: rank, pid, host, cores, transport, and how windows reach it.
    assert re.search(r"^ +1 .* verbs +rdma", done.stdout, re.MULTILINE), done.stdout


def test_peer_is_killed_in_mid_write(mpirun):
    job = mpirun(
        2,
        """
        import os, signal, threading, time
        import numpy as np
        from gormapy import MPI

        comm = MPI.COMM_WORLD
        win = MPI.Win.Create(np.zeros(1 << 20, "b") if comm.rank == 1 else None, comm=comm)
        comm.Barrier()
        if comm.rank == 1:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
            time.sleep(60)
        data = np.ones(1 << 20, "b")
        win.Lock(1)
        while True:
            win.Put(data, 1)
            win.Flush(1)
        """,
        env=VERBS,
        timeout=TIMEOUT,
        expect=137,
    )
    assert "rank 1" in str(job)
