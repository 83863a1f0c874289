"""The ladder of RDMA writes runs, writes what it says, and refuses what can't be."""

import csv
import json
import re
import subprocess
import sys

import pytest
from support.mpirun import environment
from test_simple_interchange import BACKENDS

from gormapy.bench import rdma_ladder as ladder
from gormapy.bench.rdma_writer import progress

SMALL = ["--page-size", "4096", "--pages", "6", "--repeats", "5", "--rounds", "1"]
LINE = re.compile(
    r"\[\d+\.\d{3}s\] WRITE: (\d+)%, ops=(\d+)/(\d+), posted=(\d+)\((\d+)%\), bytes=(\d+)/(\d+), "
    r"bw=\d+\.\d{3}Gbps\(\d+\.\d%\), \d+\.\d{3}Mpps"
)


def bench(*args):
    """Run the command and return what it did."""
    command = [sys.executable, "-m", "gormapy.bench", "rdma_ladder", *map(str, args)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)


def test_all_steps(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "deeper" / "ladder.png"
    done = bench(*SMALL, "--out", tmp_path / "figures", "--plot", picture)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "figures" / "rdma_ladder.json").read_text())
    assert [row["step"] for row in found["rows"]] == ["naive", "queue", "batch", "lazy", "shard", "pin"]
    assert [row["switches"] for row in found["rows"]][::5] == ["", "--queue 64 --batch 16 --lazy --shard 2 --pin"]
    for before, row in zip([None, *found["rows"]], found["rows"]):
        assert 0 < row["least"] <= row["gbps"] <= row["most"]
        assert row["gbps"] == pytest.approx(8e-3 * 4096 / row["us"], rel=0.01)
        assert (row["before"] is None) == (before is None)
        if before:
            assert row["before"] == pytest.approx(row["gbps"] / before["gbps"], rel=0.01)
        assert f"{row['gbps']:.3f}" in done.stdout
    with (tmp_path / "figures" / "rdma_ladder.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [float(row["gbps"]) for row in table] == [row["gbps"] for row in found["rows"]]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "100 % is " in done.stdout


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "switches",
    ["--queue 3", "--batch 4", "--lazy", "--batch 4 --lazy", "--queue 5 --batch 4 --lazy --shard 3 --pin"],
)
def test_combinations(backend, switches):
    done = bench(*SMALL, "--backend", backend, "--json", *switches.split())  # the target's memory is verified, too
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["backend"] == backend
    (row,) = found["rows"]
    assert row["switches"] == switches


def test_progress():
    done = bench(*SMALL, "--queue", "--progress")
    assert done.returncode == 0, done.stderr
    told = [match.groups() for match in LINE.finditer(done.stdout)]
    assert told[-1] == ("100", "30", "30", "30", "100", "122880", "122880")


def test_progress_line_of_the_original():
    # 3108.283 Gbps of 3200, in 5.398 s
    ops = round(3108.283e9 / 8 / 65536 * 5.398)
    line = progress(5.398, ops, ops, ops, 65536, 3200.0)
    assert line == (
        f"[5.398s] WRITE: 100%, ops={ops}/{ops}, posted={ops}(100%), bytes={ops * 65536}/{ops * 65536}, "
        "bw=3108.283Gbps(97.1%), 5.929Mpps"
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("--queue 0", "argument --queue: 0 is not from 1 to 16384"),
        ("--batch -1", "argument --batch: -1 is not"),
        ("--pages 0", "argument --pages: 0 is not"),
        ("--pages 1", "1 can't be shared by 2 shards"),
        ("--page-size 1073741824 --pages 5", "more than 4 GiB"),
        ("--plot ladder.nix", "must end with"),
        ("--json --progress", "not with --json"),
    ],
)
def test_refusals(args, words, capsys):
    with pytest.raises(SystemExit) as exit:
        ladder.parse(args.split())
    assert exit.value.code == 2
    assert words in capsys.readouterr().err


def test_devices_that_are_not_there(capsys):
    assert ladder.main([*SMALL, "--device", "nix"]) == 1
    assert "there is no device" in capsys.readouterr().err


def test_a_writer_that_fails_is_told_of(monkeypatch, capfd):
    from gormapy.bench import rdma_writer

    def command(role, config):
        return real(role, {**config, "device": "nix"})

    real = rdma_writer.command
    monkeypatch.setattr(rdma_writer, "command", command)
    assert ladder.main([*SMALL, "--lazy", "--json"]) == 1
    err = capfd.readouterr().err
    assert "rdma_ladder: writer: open device" in err
    assert "rdma_ladder: the writer has ended with status 1" in err


def test_pins_to_different_cores(monkeypatch):
    monkeypatch.setattr(ladder.os, "sched_getaffinity", lambda _: {7, 3, 5})
    assert ladder.cores(True) == {"writer": [3, 5], "target": [7]}
    monkeypatch.setattr(ladder.os, "sched_getaffinity", lambda _: {4})
    assert ladder.cores(True) == {"writer": [4], "target": [4]}
    assert ladder.cores(False) == {"writer": None, "target": None}
