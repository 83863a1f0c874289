"""MPI over verbs: messages, windows, atomics, what info says of it, and a peer that is killed."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
# The guest is 20 times slower than a machine.
TIMEOUT = 120.0 if "RXE_GUEST" in os.environ else 30.0
VERBS = {"GORMAPY_FABRIC": "verbs"}


def test_everything_a_little(mpirun):
    done = mpirun(3, HERE / "mpi_over_verbs.py", env=VERBS, timeout=2 * TIMEOUT)
    print(done.stdout)
    assert done.stdout.count("ok  ") == 6


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


def test_simple_interchange(mpirun):
    done = mpirun.command(
        1, sys.executable, "-m", "gormapy.examples.simple_interchange", "--backend", "verbs", timeout=TIMEOUT
    ).finish()
    print(done.stdout)
    assert "Success! All 1024 bytes verified with value 42" in done.stdout
