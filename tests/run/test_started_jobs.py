"""Programs under `python -m gormapy.run` that start jobs of their own, as those that hand work to `mpiexec python worker.py`."""

import sys

import pytest
from support.mpirun import mpiexec

RUN = (sys.executable, "-m", "gormapy.run")

# A parent that waits for what the workers write on a connection, and for their end.
PARENT = """
    import subprocess, sys, os, socket
    assert len(sys.argv) == 3
    os.environ["PYTHONPATH"] = os.getcwd() + os.pathsep + os.environ["PYTHONPATH"]  # as some do for their workers
    listener = socket.create_server(("127.0.0.1", 0))
    port = str(listener.getsockname()[1])
    job = subprocess.Popen([sys.argv[1], "-n", "2", sys.executable, sys.argv[2], port], stderr=subprocess.PIPE, text=True)
    listener.settimeout(0.1)
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            if job.poll() is None:
                continue
            print("ended", job.returncode, job.stderr.read())
            break
        print("got", connection.makefile().read(), job.wait())
        break
"""

WORKER = """
import socket, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
assert MPI.__name__ == "gormapy.MPI" and comm.size == 2
total = comm.reduce(comm.rank + 1)
if comm.rank == 0:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        connection.sendall(str(total).encode())
"""

# One of the workers can't load what it needs; the other waits for it.
BROKEN = """
import socket, sys
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ImportError("a library is missing")
MPI.COMM_WORLD.Barrier()
"""

# None of them comes as far as MPI.
BLOCKED = """
raise ImportError("a library is missing")
"""


@pytest.mark.parametrize("n", (0, 1, 2))
def test_jobs_that_a_program_starts(mpirun, tmp_path, n):
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    if n == 0:
        result = mpirun.alone(PARENT, mpiexec(), str(worker), python=RUN)
    else:
        result = mpirun(n, PARENT, mpiexec(), str(worker), python=RUN)
    assert result.lines == ["got 3 0"] * max(n, 1), result


@pytest.mark.parametrize("source", (BROKEN, BLOCKED), ids=("one", "all"))
def test_workers_that_cannot_start(mpirun, tmp_path, source):
    worker = tmp_path / "worker.py"
    worker.write_text(source)
    result = mpirun.alone(PARENT, mpiexec(), str(worker), python=RUN)
    assert result.stdout.startswith("ended 1 "), result
    assert "a library is missing" in result.stdout and "ended with exit status 1" in result.stdout, result
    assert result.duration < 25
