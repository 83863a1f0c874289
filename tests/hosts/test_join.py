"""gormapy.join: ranks that something else has started, here several on one host, without root."""

import socket
import subprocess
import sys

from support.mpirun import environment

PROGRAM = """
import sys
import gormapy
rank, size, address, secret = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
gormapy.join(rank, size, address, secret)
from gormapy import MPI
world = MPI.COMM_WORLD
assert (world.rank, world.size) == (rank, size)
assert world.allreduce(rank) == size * (size - 1) // 2
if rank == 1 and sys.argv[5:] == ["fails"]:
    sys.exit(3)
world.Barrier()
print("well")
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(n, *more, secret="mellon"):
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-c", PROGRAM]
    return [
        subprocess.Popen(
            [*command, str(rank), str(n), address, secret, *more],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(n)
    ]


def run(n, *more):
    """Start ranks; return how they end and what they write. Somebody else may get the port first: then once more."""
    for _ in range(3):
        jobs, outputs = start(n, *more), []
        for job in jobs:
            try:
                outputs.append(job.communicate(timeout=100)[0])
            finally:
                job.kill()
        if "address already in use" not in "".join(outputs):
            break
    return [job.returncode for job in jobs], outputs


def test_join():
    assert run(4) == ([0] * 4, ["well\n"] * 4)


def test_a_rank_that_fails_ends_the_others():
    status, outputs = run(3, "fails")
    assert status[1] == 3, (status, outputs)
    assert all(status), (status, outputs)
    assert "well" not in "".join(outputs), outputs


def test_wrong_places_are_refused():
    for call, says in (
        ("gormapy.join(2, 2, 'localhost:1')", "ValueError: join: rank 2 of 2"),
        ("gormapy.join(0, 2, 'nowhere')", "nowhere"),
        ("from gormapy import MPI; gormapy.join(0, 1, 'localhost:1')", "MPI is initialized already"),
    ):
        code = f"import gormapy; {call}; from gormapy import MPI"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60
        )
        assert done.returncode != 0 and says in done.stderr, done
