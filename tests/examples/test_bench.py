"""The measurements run, and what they report can be read by programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.mpirun import environment
from support.mpirun import mpiexec as launcher

CORES = len(os.sched_getaffinity(0))

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
    "sockets": (2, ["Send/Recv half round trip 8 B, beside a socket", "Get 64 MiB + Flush, beside a socket"]),
    "barrier": (4, ["Barrier"]),
    "allreduce": (4, ["Allreduce 8 B", "Allreduce 4 MiB"]),
    "bcast": (4, ["Bcast 8 B, roots in turn"]),
    "collectives": (4, ["Bcast 8 B", "Reduce_scatter_block 16 MiB"]),
    "collectives_changing": (4, ["Alltoall 1 MiB, changing"]),
    "collectives_allocated": (4, ["Allreduce 64 KiB, Alloc_mem"]),
    "everyday_messages": (2, ["Sendrecv 8 B", "isend(dict) + recv + wait", "Sendrecv 4 MiB"]),
    "everyday_collectives": (2, ["Gatherv", "neighbor_allgather(dict)"]),
    "everyday_windows": (2, ["Post + Start + Put + Complete + Wait", "Get_accumulate + Flush"]),
    "everyday_local": (2, ["Get_rank", "Pack + Unpack 8 B"]),
    "everyday_files": (2, ["Write_at 8 B", "Read_at_all 1 MiB"]),
    "objects": (4, ["allreduce(1)", "sendrecv(dict)"]),
    "creation": (4, ["Split + Free", "Create_vector + Commit + Free"]),
    "alive": (2, ["Dup + Free with 10000 communicators alive"]),
    "transpose": (2, ["Get 1024 x 1024 doubles, vector of columns at the target, Win.Allocate"]),
    "numpy_copy": (2, ["Put 64 KiB + Flush, Win.Allocate, beside NumPy's copy"]),
    "oversubscribed": (4 * CORES, [f"{4 * CORES} ranks: Barrier"]),
    "startup": (4, ["job of 4 ranks: import, Barrier, end"]),
}


def bench(*args):
    """Run the command and return what it did."""
    command = [sys.executable, "-m", "gormapy.bench", *map(str, args)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)


LONG = ("startup", "oversubscribed", "collectives", "collectives_changing", "collectives_allocated", "alive", "sockets")
SHARED = ("numpy_copy",)
NAMES = [
    pytest.param(
        name,
        marks=[pytest.mark.exhaustive] * (name in LONG)
        + [pytest.mark.one_node("it copies into memory of another rank")] * (name in SHARED),
    )
    for name in ROWS
]


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["passive", "passive_asleep", "passive_c_call"])
def test_put_to_a_busy_rank_does_not_wait_for_it(name):
    busy = 0.3
    done = bench(name, "--json", "--budget", busy / 10)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 4
    for row in rows:
        assert row["us"] < 1e6 * busy / 100, row
        assert row["us"] <= row["p99"] <= row["max"], row


def test_copies_beside_numpy_need_one_node():
    command = [launcher(), "-n", "2", sys.executable, "-m", "gormapy.bench", "numpy_copy"]
    done = subprocess.run(
        command, env=environment({"GORMAPY_JOB_NODES": 2}), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "numpy_copy: the ranks are on several nodes, which share no memory: run it on one" in done.stderr


def test_idle_threads_are_counted_in_every_rank():
    done = bench("idle", "--json", "--budget", 0.1, "-n", 3)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["samples"] == 15
    assert row["us"] < 10_000 and row["wake-ups"] < 50, row  # for each second


@pytest.mark.exhaustive
def test_contention_counts_the_turns_of_each_rank():
    done = bench("contention", "--json", "--budget", 0.03, "-n", 3)
    assert done.returncode == 0, done.stderr
    turn, wait = json.loads(done.stdout)["rows"]
    assert len(turn["turns"]) == 3 and min(turn["turns"]) > 0
    assert turn["fewest"] <= 1 <= turn["most"]
    assert wait["samples"] == sum(turn["turns"])


@pytest.mark.exhaustive
def test_all_programs_of_osu_with_every_window_and_synchronisation():
    done = bench("osu", "all", "--window", "all", "--sync", "all", "--sizes", "1,65536", "--iterations", 3, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    passive, active = ["lock", "lock_all", "flush", "flush_local"], ["fence", "pscw"]
    programs = ("put_latency", "get_latency", "acc_latency", "get_acc_latency", "put_bw", "get_bw", "put_bibw")
    sizes = {**dict.fromkeys(programs, (1, 65536)), "fop_latency": (8,), "cas_latency": (8,)}
    expected = {
        (name, window, sync, size)
        for name in sizes
        for window in ("create", "allocate", "dynamic", "shared")
        for sync in (active if name == "put_bibw" else passive + active)
        for size in sizes[name]
    }
    assert {(row["program"], row["window"], row["sync"], row["size"]) for row in rows} == expected
    for row in rows:
        assert row["valid"] is True, row
        assert row["iterations"] == 3
        assert 0 < row["min"] <= row["us"] <= row["max"], row


def test_osu_prints_its_columns():
    done = bench("osu", "put_latency", "put_bw", "--sizes", "1:4", "--budget", 0.01, "--type", "double")
    assert done.returncode == 0, done.stderr
    latency, rate = done.stdout.split("# osu_")[1:]
    assert latency.startswith("put_latency: MPI_Put latency, gormapy")
    assert "# Window creation: MPI_Win_allocate\n# Synchronization: MPI_Win_flush\n# Size" in latency
    assert [line.split()[0] for line in latency.splitlines()[4:]] == ["1", "2", "4"]
    assert all(line.endswith("Pass") for line in latency.splitlines()[4:])
    assert "Bandwidth (MB/s)" in rate


def test_osu_makes_as_many_iterations_as_osu():
    from gormapy.bench.osu import PROGRAMS, Settings, counts

    put, rate = PROGRAMS["put_latency"], PROGRAMS["put_bw"]
    assert counts(put, 8192, Settings()) == (10_000, 100)
    assert counts(put, 16384, Settings()) == (1_000, 10)
    assert counts(rate, 8192, Settings()) == (100, 10)
    assert counts(rate, 16384, Settings()) == (20, 2)
    assert put.depth == 1 and rate.depth == 64


@pytest.mark.parametrize("program", ["put_latency", "get_latency", "acc_latency", "get_acc_latency", "cas_latency"])
@pytest.mark.parametrize("sync", ["flush", "fence"])
def test_osu_finds_wrong_data(program, sync):
    arguments = ["osu", program, "--sync", sync, "--sizes", "8", "--iterations", "5", "--json"]
    env = environment({"PYTHONPATH": f"{Path(__file__).parent / 'programs'}{os.pathsep}{environment()['PYTHONPATH']}"})
    command = [sys.executable, "-m", "gormapy.bench", *arguments, "--mpi", "astray", "--mpiexec", launcher()]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "wrong data" in done.stderr
    assert [row["valid"] for row in json.loads(done.stdout)["rows"]] == [False]


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
        (["ring", "--mpi", "mpi4py.MPI"], "--mpiexec"),
        (["pingpong", "-n", "1"], "it takes 2 ranks"),
        (["osu", "put_latency", "-n", "1"], "it takes 2 ranks"),
        (["osu", "put"], "there is no program 'put'"),
        (["osu", "put_bw", "--window", "static"], "there is no 'static': choose from create,"),
        (["osu", "put_bibw", "--sync", "flush"], "use fence or pscw"),
        (["osu", "put_bw", "--sizes", "0"], "has no sizes"),
        (["osu", "put_bw", "--sizes", "many"], "neither FIRST:LAST nor"),
        (["osu", "put_bw", "--iterations", "0"], "not a number of iterations"),
        (["--json", "osu"], "put it first"),
    ],
)
def test_refuses_what_cannot_be(args, words):
    done = bench(*args)
    assert done.returncode != 0
    assert words in done.stderr
