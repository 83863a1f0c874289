"""Comparisons with other MPIs: what is installed, in turn, and what becomes of a library that hangs."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest
from support import leftovers
from support.mpirun import environment, mpiexec

from gormapy_compare import __main__ as compare
from gormapy_compare import job, memory, peers, table, targets

# What pip says when it can't reach the index, as opposed to what it says about a package.
UNREACHABLE = ("Failed to establish", "Name or service not known", "ProxyError", "Could not fetch URL")


def run(*args, timeout=240):
    """Run compare and return what it did."""
    command = [sys.executable, "-m", "gormapy_compare", *args]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=timeout)


@pytest.mark.exhaustive
def test_compares_with_a_peer():
    done = run("--quick", "-n", "2", "--peers", "mpich", "--rows", "ring,put_latency,import,startup", "--json")
    if done.returncode and any(words in done.stderr for words in UNREACHABLE):
        pytest.skip(f"the package index can't be reached:\n{done.stderr[-500:]}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "MPICH" in found["libraries"]["mpich"]
    assert "gormapy" in found["libraries"]["gormapy"]
    rows = {row["what"]: row for row in found["rows"]}
    for row in rows.values():
        assert row["problems"] == {}, row
        assert row["us"]["gormapy"] > 0 and row["us"]["mpich"] > 0, row
        assert row["ratio"] == pytest.approx(row["us"]["gormapy"] / row["us"]["mpich"]), row
    assert rows["Put 8 B + Flush, Win.Allocate"]["target"]
    assert {"persistent ring (Start 2, Waitall)", "import beyond NumPy's", "start, Barrier and end of 2 ranks"} <= set(
        rows
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-n", "1"], "at least 2 ranks"),
        (["--rows", "nothing"], "there is no 'nothing'"),
        (["--peers", "lam"], "there is no 'lam': choose from mpich, openmpi"),
    ],
)
def test_refuses_what_cannot_be(args, words):
    done = run(*args)
    assert done.returncode != 0
    assert words in done.stderr


def test_refuses_to_be_a_rank():
    command = [mpiexec(), "-n", "1", sys.executable, "-m", "gormapy_compare", "--peers", "none"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "run it without a launcher" in done.stderr


def test_table_without_peers():
    done = run("--quick", "-n", "2", "--peers", "none", "--rows", "barrier")
    assert done.returncode == 0, done.stderr
    assert "Barrier" in done.stdout
    assert "0 of 0 targets met" in done.stdout


@pytest.mark.parametrize(
    ("source", "word", "detail"),
    [
        ("import time; time.sleep(100)", "hang", "had not ended after "),
        ("import os; os.kill(os.getpid(), 11)", "crash", "SIGSEGV"),
        ("raise ValueError('not today')", "error", "ValueError: not today"),
        ("pass", "error", "wrote no rows"),
    ],
    ids=["hang", "crash", "exception", "silent"],
)
def test_peer_that_fails_is_shown(tmp_path, capsys, source, word, detail):
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    launcher.chmod(0o755)
    line = "import json; print(json.dumps({'library': 'L'})); print(json.dumps({'what': 'Barrier', 'us': 1, 'p10': 1}))"
    libraries = [
        peers.Library(name, sys.executable, (str(launcher),), "math", ("-c", program), dict(os.environ))
        for name, program in (("gormapy", line), ("peer", source))
    ]
    for limit in (1, 5, 25) if word == "hang" else (60,):  # seconds, which gormapy's program has, too
        options = compare.parse(["-n", "2", "--rows", "barrier", "--limit", str(limit), "--rounds", "2"])
        begin = time.monotonic()
        rows, about = compare.measure(libraries, options, print)
        took = time.monotonic() - begin
        found = {**compare.report(rows, libraries, about, options), "memory": memory.speeds(), "others": None}
        if [row["us"]["gormapy"] for row in found["rows"]] == [1]:
            break
    assert took < 80
    (row,) = found["rows"]
    assert row["us"] == {"gormapy": 1, "peer": None}
    assert row["ratio"] is None and row["met"] is None
    table.show(found)
    shown = capsys.readouterr().out
    assert detail in shown
    assert word in next(line for line in shown.splitlines() if line.startswith("Barrier"))


def test_rows_before_a_crash_count():
    outcome = job.run(["sh", "-c", "echo one; kill -SEGV $$"], dict(os.environ), 10)
    assert (outcome.stdout, outcome.problem) == ("one\n", "crash")


def test_hanging_job_is_ended_with_its_children():
    begin = time.monotonic()
    source = "trap '' TERM; setsid sleep 97531 & echo $!; sleep 97531"
    for limit in (0.5, 4, 20):
        outcome = job.run(["sh", "-c", source], dict(os.environ), limit)
        assert outcome.problem == "hang"
        if outcome.stdout:  # the shell came so far
            break
    assert time.monotonic() - begin < limit + 60
    pid = int(outcome.stdout)
    try:
        with open(f"/proc/{pid}/stat") as file:
            assert file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        pass


@pytest.mark.parametrize(
    ("us", "expected"),
    [
        ({"gormapy": [2, 4, 6], "a": [2, 2, 2], "b": [8, 8, 8]}, (2, (1, 3))),
        ({"gormapy": [2, 4, 6], "b": [8, 8, 8]}, (0.5, (0.25, 0.75))),
        ({"gormapy": [2]}, (None, None)),
        ({"a": [2]}, (None, None)),
    ],
)
def test_ratio_is_to_the_better_peer(us, expected):
    assert compare.Row(2, "ring", "ring", us).ratio(["gormapy", "a", "b"]) == expected


@pytest.mark.parametrize(
    ("row", "good", "bad"),
    [
        (("put_latency", "Put 8 B + Flush, Win.Allocate", 2, 2), (1, 0.67), (1, 0.68)),
        (("get_latency", "Get 8 B + Flush, Win.Allocate", 4, 2), (1, 0.67), (1, 0.68)),
        (("put_latency", "Put 8 B + Flush, Win.Create on Alloc_mem", 2, 2), (1, 0.67), (1, 0.68)),
        (("put_latency", "Put 8 B + Flush, Win.Create", 2, 2), (1, 2.5), (1, 2.6)),
        (("put_latency", "Put 8 B + Flush, Win.Create", 4, 2), (1, 0.5), (1, 0.6)),
        (("put_latency", "Put 8 B + Flush, Win.Create", 4, 8), (1, 2.5), (1, 2.6)),
        (("put_latency", "Put 4 MiB + Flush, Win.Create", 2, 2), (1, 1.0), (1, 1.1)),
        (("atomics", "Compare_and_swap 8 B + Flush, Win.Allocate", 2, 2), (1, 0.67), (1, 0.68)),
        (("fence", "Put 8 B + Fence, Win.Create", 2, 2), (1, 0.83), (1, 0.84)),
        (("fence", "Put 8 B + Fence, Win.Allocate", 4, 2), (1, 0.5), (1, 0.51)),
        (("fence", "Fence, Win.Allocate", 2, 2), (1, 1.2), (1, 1.3)),
        (("lock_put_unlock", "Lock shared + Put 8 B + Unlock, Win.Allocate", 4, 2), (1, 0.83), (1, 0.84)),
        (("transpose", "Put ..., Win.Create", 2, 2), (1, 0.5), (1, 0.51)),
        (("passive", "...", 2, 2), (49, None, {"p99": 999}), (50, None, {"p99": 999})),
        (("passive", "...", 2, 2), (49, None, {"p99": 999}), (49, None, {"p99": 1000})),
        (("numpy_copy", "...", 2, 2), (1, 9.0, {"numpy": 1.05}), (1, 0.1, {"numpy": 1.06})),
        (
            ("contention", "16 ranks: time per turn", 16, 2),
            (1, 9.0, {"fewest": 0.5, "most": 2.0}),
            (1, 0.1, {"fewest": 0.4, "most": 1.1}),
        ),
        (("ring", "ring", 2, 2), (1, 1.2), (1, 1.3)),
        (("ring", "ring", 4, 2), (1, 0.99), (1, 1.0)),
        (("ring", "ring", 4, 8), (1, 1.2), (1, 1.3)),
        (("import", "import", 1, 2), (59_999, None), (60_000, None)),
        (("startup", "start", 4, 2), (1, 1.0), (1, 1.1)),
    ],
)
def test_targets(row, good, bad):
    goal = targets.target(*row)
    assert goal.met(*good) is True
    assert goal.met(*bad) is False
    assert str(goal)


def test_rows_without_target_or_without_anything_to_compare_with():
    assert targets.target("put_latency", "Put 4 MiB + Flush, Win.Allocate", 2, 2) is None
    assert targets.target("osu_put_latency", "osu put_latency, allocate, flush, 8 B", 4, 2) is None
    assert targets.target("ring", "ring", 2, 2).met(1, None) is None
    assert targets.target("numpy_copy", "...", 2, 2).met(1, 1.0, {}) is None


@pytest.mark.exhaustive
def test_programs_of_osu_written_and_drawn(tmp_path):
    done = run(
        *("--quick", "--peers", "none", "--rows", "osu_put_latency,osu_put_bibw,ring", "-n", "2"),
        *("--window", "create,allocate", "--sync", "flush,fence", "--sizes", "8,16"),
        *("--out", str(tmp_path / "out"), "--plot", str(tmp_path / "out")),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "compare.json").read_text())
    rows = {row["what"]: row for row in found["rows"]}
    for window in ("create", "allocate"):
        for sync in ("flush", "fence"):
            assert rows[f"osu put_latency, {window}, {sync}, 8 B"]["us"]["gormapy"] > 0
        assert rows[f"osu put_bibw, {window}, fence, 16 B"]["rate"]["gormapy"] > 0
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert {"osu_put_latency_create_flush_n_2.png", "osu_put_bibw_allocate_fence_n_2.png", "ring_n_2.png"} <= pictures
    for path in (tmp_path / "out").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_pictures_without_matplotlib_are_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    command = [sys.executable, "-m", "gormapy_compare", "--peers", "none", "--plot", str(tmp_path / "p")]
    env = environment({"PYTHONPATH": f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"})
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "pip install 'gormapy[plot]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_not_implemented_or_wrong_is_no_result(tmp_path, capsys):
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    launcher.chmod(0o755)
    lines = [
        {"library": "L"},
        {"what": "a", "problem": "not implemented", "detail": "Win.Post is not implemented"},
        {"what": "b", "us": 1, "p10": 1, "valid": False},
        {"what": "c", "us": 2, "p10": 1, "numpy": 1, "p99": 7},
    ]
    source = f"import json\nfor line in {lines!r}: print(json.dumps(line))"
    libraries = [peers.Library("gormapy", sys.executable, (str(launcher),), "math", ("-c", source), dict(os.environ))]
    options = compare.parse(["-n", "2", "--rows", "ring", "--rounds", "2"])
    found = compare.report(*measured(libraries, options), options)
    rows = {row["what"]: row for row in found["rows"]}
    assert rows["a"]["us"] == rows["b"]["us"] == {"gormapy": None}
    assert rows["a"]["problems"]["gormapy"] == ["not implemented", "Win.Post is not implemented"]
    assert rows["b"]["problems"]["gormapy"][0] == "wrong"
    assert rows["c"]["more"]["gormapy"] == {"numpy": 2, "p99": 7}
    table.show({**found, "memory": memory.speeds(), "others": None})
    assert "Win.Post is not implemented" in capsys.readouterr().out


def measured(libraries, options):
    """Measure, and return what a report is made of."""
    rows, about = compare.measure(libraries, options, print)
    return rows, libraries, about


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_what_is_running(number, status):
    command = [
        sys.executable,
        "-m",
        "gormapy_compare",
        "--peers",
        "none",
        "--rows",
        "passive",
        "--budget",
        "9",
    ]
    mark, names = uuid.uuid4().hex, leftovers.names()
    env = environment({"GORMAPYTEST_JOB": mark})
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = process.stderr.readline()
    assert "passive" in begun, begun
    end = time.monotonic() + 30
    while not any(mpiexec() in line for line in leftovers.processes(mark)):
        assert time.monotonic() < end, "it has not started a job"
        time.sleep(0.01)
    time.sleep(0.1)  # and waits for it
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert "Traceback" not in err, err
    assert leftovers.after(mark, names) == []


def test_geometric_means_by_rows_and_ranks():
    rows = [
        {"n": n, "loop": loop, "ratio": ratio}
        for n, loop, ratio in [(2, "a", 0.5), (2, "a", 2.0), (2, "b", 4.0), (2, "b", None), (4, "a", 3.0)]
    ]
    assert table.means(rows) == {
        "2": {"a": pytest.approx(1), "b": pytest.approx(4), "all": pytest.approx(4 ** (1 / 3))},
        "4": {"a": pytest.approx(3), "all": pytest.approx(3)},
    }


def test_speed_of_memory():
    found = memory.speeds()
    assert all(0.01 < speed < 10_000 for by_size in found.values() for speed in by_size.values()), found
    shown = memory.line(found)
    assert all(name in shown for name in ("memmove", "NumPy copy", "64 MiB"))
