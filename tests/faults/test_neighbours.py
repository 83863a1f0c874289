"""Other processes of the host: they connect and say nothing, or belong to somebody else. Ranks get on all the same.

`make neighbours` lets 10,000 connections come, the tests some hundreds; numbers that come again are in
test_reused_pid.py, descriptors that somebody closes in test_descriptors.py.
"""

import os
import shutil

import pytest
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive

WHOLE = os.environ.get("NEIGHBOURS") == "whole"
CONNECTIONS = 10_000 if WHOLE else 600


def test_silent_callers_of_ranks(mpirun):
    mpirun(3, program.silent_callers_of_ranks, CONNECTIONS, env={"GORMAPY_FABRIC": "tcp"}, timeout=60)


@pytest.mark.parametrize("backend", ["tcp", "shm"])
def test_silent_callers_of_rdma(mpirun, backend):
    mpirun.alone(program.silent_callers_of_rdma, backend, CONNECTIONS, timeout=60)


@pytest.mark.skipif(os.getuid() != 0, reason="needs to start a process of another user")
@pytest.mark.skipif(not shutil.which("python3", path="/usr/bin"), reason="needs a Python that every user can run")
@pytest.mark.parametrize("fabric", ["shm", "tcp"])
def test_another_user(mpirun, fabric):
    mpirun(2, program.another_user, env={"GORMAPY_FABRIC": fabric})
