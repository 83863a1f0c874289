"""The measurements run, and what they report can be read by programs."""

import json
import subprocess
import sys

import pytest
from support.mpirun import environment

# Programs that measure take as long as they take; the tests look at what they say, not at how fast they are.
ROWS = {
    "put_latency": (2, ["Put 8 B + Flush, Win.Allocate", "Put 4 MiB + Flush, Win.Create"]),
    "get_latency": (2, ["Get 8 B + Flush, Win.Allocate", "Get 4 MiB + Flush, Win.Create"]),
    "atomics": (2, ["Accumulate 8 B + Flush, Win.Allocate", "Compare_and_swap 8 B + Flush, Win.Create"]),
    "lock_put_unlock": (2, ["Lock shared + Put 8 B + Unlock, Win.Allocate"]),
    "fence": (2, ["Put 8 B + Fence, Win.Create"]),
    "pingpong": (2, ["Send/Recv half round trip 8 B", "Send/Recv half round trip 4 MiB"]),
    "ring": (4, ["persistent ring (Start 2, Waitall)"]),
    "bandwidth": (2, ["16 Isend/Irecv 8 B + answer", "16 Put 1 MiB + Flush, Win.Create"]),
    "barrier": (4, ["Barrier"]),
    "allreduce": (4, ["Allreduce 8 B", "Allreduce 4 MiB"]),
    "bcast": (4, ["Bcast 8 B, roots in turn"]),
    "startup": (4, ["job of 4 ranks: import, Barrier, end"]),
}


def bench(*args):
    """Run the command and return what it did."""
    command = [sys.executable, "-m", "gormapy.bench", *map(str, args)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", ROWS)
def test_reports_rows(name):
    ranks, rows = ROWS[name]
    done = bench(name, "--json", "--budget", 0.02)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["name"] == name
    assert report["ranks"] == ranks
    found = {row["what"]: row for row in report["rows"]}
    assert set(rows) <= set(found)
    for row in found.values():
        assert 0 < row["p10"] <= row["us"] <= row["p90"]


def test_put_to_a_computing_rank_does_not_wait_for_it():
    busy = 2.0
    done = bench("passive", "--json", "--budget", busy / 10)
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout)["rows"]:
        assert row["us"] < 1e6 * busy / 100, row


def test_under_a_launcher_it_starts_none(mpirun):
    job = mpirun.command(3, sys.executable, "-m", "gormapy.bench", "ring", "--json")
    assert json.loads(job.finish().stdout)["ranks"] == 3


def test_prints_a_table():
    done = bench("ring", "-n", 2)
    assert done.returncode == 0, done.stderr
    assert "2 ranks" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nothing"], "invalid choice: 'nothing'"),
        (["ring", "-n", "0"], "there can't be 0 ranks"),
        (["ring", "--budget", "0"], "not a number of seconds"),
        (["compare", "-n", "1"], "at least 2 ranks"),
        (["compare", "--rows", "nothing"], "there is no 'nothing'"),
        (["compare", "--peers", "lam"], "there is no 'lam': choose from mpich, openmpi"),
        (["ring", "--mpi", "mpi4py.MPI"], "--mpiexec"),
        (["pingpong", "-n", "1"], "it takes 2 ranks"),
    ],
)
def test_refuses_what_cannot_be(args, words):
    done = bench(*args)
    assert done.returncode != 0
    assert words in done.stderr
