"""The measurements run, and what they report can be read by programs."""

import json
import subprocess
import sys

import pytest
from support.mpirun import environment

# Programs that measure take as long as they take; the tests look at what they say, not at how fast they are.
ROWS = {
    "put_latency": (2, ["Put 8 B + Flush, Win.Allocate", "Compare_and_swap 8 B + Flush, Win.Create"]),
    "fence": (2, ["Put 8 B + Fence, Win.Create"]),
    "pingpong": (2, ["Send/Recv half round trip 8 B", "Send/Recv half round trip 4 MiB"]),
    "ring": (4, ["persistent ring (Start 2, Waitall)"]),
    "barrier": (4, ["Barrier", "Allreduce 1 MiB"]),
    "startup": (4, ["job of 4 ranks: import, Barrier, end"]),
}


def bench(*args):
    """Run the command and return what it did."""
    command = [sys.executable, "-m", "gormapy.bench", *map(str, args)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", ROWS)
def test_reports_rows(name):
    ranks, rows = ROWS[name]
    done = bench(name, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["name"] == name
    assert report["ranks"] == ranks
    found = {row["what"]: row for row in report["rows"]}
    assert set(rows) <= set(found)
    for row in found.values():
        assert 0 < row["p10"] <= row["us"] <= row["p90"]


def test_put_to_a_computing_rank_does_not_wait_for_it():
    done = bench("passive", "--json")
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout)["rows"]:
        assert row["us"] < 1000, row  # it computes for 3 s


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
        (["ring", "--mpi", "mpi4py.MPI"], "--mpiexec"),
        (["pingpong", "-n", "1"], "it takes 2 ranks"),
    ],
)
def test_refuses_what_cannot_be(args, words):
    done = bench(*args)
    assert done.returncode != 0
    assert words in done.stderr
