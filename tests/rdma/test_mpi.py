"""MPI over verbs: messages, windows, atomics, what info says of it."""

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


def test_nodes_choose_verbs(mpirun):
    """Without GORMAPY_FABRIC: a device that is on one network counts, one that is software only if it is named."""
    for name in sorted(os.listdir("/sys/class/infiniband"))[:1]:
        nodes = {"GORMAPY_JOB_NODES": "2", "GORMAPY_FABRIC": "auto", "GORMAPY_IB_DEV": name}
        command = [sys.executable, "-m", "gormapy", "info"]
        done = mpirun.command(2, *command, env=nodes, timeout=TIMEOUT).finish()
        assert re.search(r"^ +1 .* verbs +rdma", done.stdout, re.MULTILINE), done.stdout
        if name.startswith("rxe"):
            done = mpirun.command(2, *command, env=nodes | {"GORMAPY_IB_DEV": ""}, timeout=TIMEOUT).finish()
            assert re.search(r"^ +1 .* tcp +", done.stdout, re.MULTILINE), done.stdout
