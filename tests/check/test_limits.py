"""What the checker looks at where it may not look at everything: at its limit, behind `renew`, and in threads."""

import pytest

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

BEGIN = """
import numpy as np
from gormapy import MPI, check

world = MPI.COMM_WORLD
rank = world.rank
before = MPI.Win.Allocate(64, 8, comm=world)

def to_the_limit():
    mem = np.frombuffer(before, "f8")
    for _ in range(check.LIMIT + 1000):
        mem[0]
"""
END = """
win.Unlock_all()
win.Free()
before.Free()
"""


def found(result):
    """Return the lines of findings."""
    return [line for line in result.stderr.splitlines() if line.startswith("mpiexec --check found")]


def test_a_window_made_behind_the_limit_is_watched_when_that_is_renewed(mpirun):
    program = """
to_the_limit()
win = MPI.Win.Allocate(64, 8, comm=world)
mem = np.frombuffer(win, "f8")
check.renew()
world.Barrier()
win.Lock_all()
if rank == 0:
    win.Put(np.ones(1), 1)
else:
    mem[0]
"""
    (line,) = found(mpirun(2, BEGIN + program + END, launcher=["--check"], expect=1))
    assert "local-access" in line


@pytest.mark.parametrize("times", [1, 4])  # at one line: the first call, and those that follow
def test_an_operation_begun_behind_the_limit_is_watched_when_that_is_renewed(mpirun, times):
    program = f"""
win = MPI.Win.Allocate(64, 8, comm=world)
mine = np.ones(4)
win.Lock_all()
to_the_limit()
for turn in range({times} if rank == 0 else 0):
    win.Put(mine, 1)
    if turn == {times} - 1:
        check.renew()
        mine[0] = 5.0
    win.Flush(1)
"""
    (line,) = found(mpirun(2, BEGIN + program + END, launcher=["--check"], expect=1))
    assert "origin-reuse" in line


@pytest.mark.parametrize("mebibytes", [640, 5000])  # more pages than there may be mappings; than are watched
def test_a_large_window(mpirun, mebibytes):
    program = f"""
win = MPI.Win.Allocate({mebibytes} << 20, 1, comm=MPI.COMM_SELF)
win.Lock_all()
mem = np.frombuffer(win, "B")
to_the_limit()
assert mem[:: 50 << 12].sum() == 0
check.renew()
assert mem[1 :: 50 << 12].sum() == 0
"""
    mpirun(1, BEGIN + program + END, launcher=["--check"])


@pytest.mark.slow
def test_threads_on_one_page(mpirun):
    program = """
import threading, time

win = MPI.Win.Allocate(8192, 8, comm=MPI.COMM_SELF)
win.Lock_all()
mem = np.frombuffer(win, "f8")[:512]
end = time.monotonic() + 4

def work():
    while time.monotonic() < end:
        np.add(mem, 1.0)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    mpirun(1, BEGIN + program + END, launcher=["--check=exact"], timeout=60)
