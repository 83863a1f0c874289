"""The measurement of the transfer engine."""

import json
import subprocess
import sys

import pytest
from support.mpirun import environment


def bench(*args):
    """Run the measurement and return how it ended."""
    line = [sys.executable, "-m", "gormapy.bench", "rdma_engine", *args]
    return subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("op", ("read", "write"))
def test_rows(backend, op):
    options = (
        "--op",
        op,
        "--sizes",
        "8,5000",
        "--batches",
        "1,7",
        "--budget",
        "0.01",
        "--notify",
        "--queue-pairs",
        "2",
    )
    done = bench("--backend", backend, "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["backend"], found["op"]) == (backend, op)
    assert [(row["batch"], row["bytes"]) for row in found["rows"]] == [(1, 8), (1, 5000), (7, 8), (7, 5000)]
    assert all(row["batches"] >= 10 and 0 < row["p10"] <= row["us"] <= row["p90"] for row in found["rows"])


def test_table_and_refusals():
    done = bench("--backend", "tcp", "--sizes", "64", "--batches", "1", "--budget", "0.01", "--polling")
    assert done.returncode == 0 and "gormapy.rdma.Engine, tcp tcp0, write, polling" in done.stdout, done
    done = bench("--backend", "nothing")
    assert done.returncode == 1 and "there is no back end" in done.stderr, done
    done = bench("--sizes", "1000000000", "--batches", "2")
    assert done.returncode == 2 and "more than" in done.stderr, done
