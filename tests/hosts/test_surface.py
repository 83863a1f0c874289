"""What mpiexec gives on one host, on several: time-outs, the line about a failure, recordings, files of output."""

import json
import re

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

WAITS = r"\(%s, pid \d+\): in Recv, waiting for rank %d, tag 7, for"


def check_report(output, seconds, stopped):
    """Check what mpiexec says of the ranks of stuck.py."""
    assert output.count(f"mpiexec: time-out after {seconds}s; what the ranks do:") == 1, output
    for rank, host in ((0, "host0"), (1, "host0"), (3, "host1")):
        if rank == stopped:
            assert re.search(rf"rank {rank} \({host}, pid \d+\): .*as if it were stopped", output), output
            assert f"rank {rank} ({host}):\n" not in output
        else:
            assert re.search(rf"rank {rank} " + WAITS % (host, (rank + 1) % 4), output), output
            assert f"rank {rank} ({host}):\n" in output
    assert re.search(r"rank 2 \(host1, pid \d+\): running, in no MPI call\n", output), output
    assert output.count("in sleep_in_c") == 1, output


@pytest.mark.parametrize("stopped", [99, 0, 1])
def test_timeout(bed, launchers, python, programs, stopped):
    bed.up(2)
    command = launchers.ours(2, 4)
    for seconds in (8, 25):  # a busy machine takes long until all are there
        options = ["--timeout", seconds]
        result = bed.run([*command[:3], *options, *command[3:], python, programs / "stuck.py", stopped])
        assert result.status == 124, result
        if (
            result.output.count(": in Recv, waiting for") == (3 if stopped == 99 else 2)
            and "in sleep_in_c" in result.output
        ):
            break
    check_report(result.output, seconds, stopped)


def test_timeout_in_an_allocation(bed, slurm, python, programs):
    from support.mpirun import mpiexec

    job = [
        "salloc",
        "-N2",
        "-n4",
        "--ntasks-per-node=2",
        mpiexec(),
        "--timeout",
        15,
        "-n",
        4,
        python,
        programs / "stuck.py",
        1,
    ]
    result = bed.run(job, **slurm)
    assert result.status == 124, result
    assert "mpiexec: time-out after 15s" in result.output and "in sleep_in_c" in result.output, result
    assert re.search(r"rank 1 \(host0, pid \d+\): .*as if it were stopped", result.output), result


@pytest.mark.parametrize("launcher", ["hydra", "open_mpi"])
@pytest.mark.parametrize("stopped", [99, 0])
def test_timeout_of_ranks_that_another_launcher_starts(bed, launchers, launcher, python, programs, stopped):
    """The ranks keep the time, and speak for those of their host that are stopped."""
    bed.up(2)
    for seconds in (3, 12):  # a busy machine takes long until all are there
        command = ["env", f"GORMAPY_TIMEOUT={seconds}", python, programs / "stuck.py", stopped]
        result = bed.run([*getattr(launchers, launcher)(2, 4), *command])
        assert result.status == 124, result
        if "in sleep_in_c" in result.output:
            break
    for host in ("host0", "host1"):
        assert result.output.count(f"gormapy: time-out after {seconds}s; what the ranks of {host} do:") == 1, result
    assert len(re.findall(r"gormapy:   rank \d \(pid \d+\): ", result.output)) == 4, result
    assert result.output.count("in sleep_in_c") == 1, result


HOW = {
    "killed": ("was killed by signal 9 (SIGKILL)", 137),
    "exit": ("ended with exit status 3", 3),
    "abort": ("called Abort(7)", 7),
    "raise": ("ended with exit status 1", 1),
}


@pytest.mark.parametrize("how", HOW)
def test_one_line_says_which_rank_failed(bed, launchers, python, programs, how):
    bed.up(2)
    text, status = HOW[how]
    result = bed.run([*launchers.ours(2, 4), python, programs / "ends.py", how])
    lines = [line for line in result.output.splitlines() if line.startswith("mpiexec: rank")]
    assert len(lines) == 1, result
    said = re.fullmatch(r"mpiexec: rank 3 \(host1, pid \d+\) (.*)", lines[0])
    assert said, result
    if how == "killed":  # Hydra ends all at once: often nobody is left who knows how
        assert said[1].startswith((text, "was killed, or has ended without")), result
        assert result.status != 0, result
    else:
        assert said[1].startswith(text + "; stopping the other"), result
        assert result.status == status, result


@pytest.mark.parametrize("how", HOW)
def test_one_line_in_an_allocation(bed, slurm, python, programs, how):
    from support.mpirun import mpiexec

    text, status = HOW[how]
    job = ["salloc", "-N2", "-n4", "--ntasks-per-node=2", mpiexec(), "-n", 4, python, programs / "ends.py", how]
    result = bed.run(job, **slurm)
    lines = [line for line in result.output.splitlines() if line.startswith("mpiexec: rank")]
    assert len(lines) == 1, result
    said = rf"mpiexec: rank 3 \(host1, pid \d+\) {re.escape(text)}(; stopping the other .*)?"
    assert re.fullmatch(said, lines[0]), result
    assert result.status == status, result


@pytest.mark.parametrize("launcher", ["hydra", "open_mpi"])
@pytest.mark.parametrize("how", ["exit", "abort", "raise"])
def test_one_line_of_the_rank_itself(bed, launchers, launcher, python, programs, how):
    bed.up(2)
    text, status = HOW[how]
    result = bed.run([*getattr(launchers, launcher)(2, 4), python, programs / "ends.py", how])
    assert result.status == status, result
    lines = [line for line in result.output.splitlines() if line.startswith("gormapy: rank")]
    assert len(lines) == 1, result
    assert re.fullmatch(rf"gormapy: rank 3 \(host1, pid \d+\) {re.escape(text)}; the job ends", lines[0]), result


def test_a_killed_rank_ends_the_job_of_a_launcher_that_would_not(bed, slurm, python, programs):
    """srun waits for the others unless it has -K."""
    job = ["srun", "--mpi=pmi2", "-N2", "-n4", "--ntasks-per-node=2", python, "-c", KILLED]
    result = bed.run(job, **slurm)
    assert result.status != 0, result
    assert result.output.count("gormapy: rank 3 (host1, pid ") == 1, result
    assert "was killed by signal 9 (SIGKILL); the job ends" in result.output, result


KILLED = """
import os, signal, time
from gormapy import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 3:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(100)
"""


def test_recording(bed, launchers, python, programs, tmp_path):
    bed.up(2)
    command = launchers.ours(2, 4)
    file = programs.parents[2] / f".trace-{tmp_path.name}.json"  # each host has a /tmp of its own
    options = ["--trace", file, "--summary"]
    try:
        result = bed.run([*command[:3], *options, *command[3:], python, programs / "everything.py"])
        assert result.status == 0, result
        recording = json.loads(file.read_text())
    finally:
        file.unlink(missing_ok=True)
    assert "what 4 ranks did in" in result.output and "recorded nothing" not in result.output, result
    assert recording["otherData"]["ranks"] == 4 and not recording["otherData"]["absent"]
    sent = {e["id"]: e for e in recording["traceEvents"] if e["ph"] == "s" and e["name"] == "message"}
    ends = {e["id"]: e for e in recording["traceEvents"] if e["ph"] == "f" and e["name"] == "message"}
    far = [(sent[i], ends[i]) for i in sent if i in ends and sent[i]["pid"] // 2 != ends[i]["pid"] // 2]
    assert far, "no message from host to host is recorded"
    early = [(a, b) for a, b in far if b["ts"] < a["ts"]]
    assert not early, f"received before they were sent: {early}"


def test_recording_of_a_job_that_fails(bed, launchers, python, programs):
    """The launcher ends all ranks at once, but not before they have handed over what they recorded."""
    bed.up(2)
    command = launchers.ours(2, 4)
    result = bed.run([*command[:3], "--summary", *command[3:], python, programs / "ends.py", "raise"])
    assert result.status == 1, result
    assert "recorded nothing" not in result.output and "rank 0 was in Recv when it ended" in result.output, result


def test_output_files(bed, launchers, python, programs):
    bed.up(2)
    command = launchers.ours(2, 4)
    options = ["--output-dir", "/tmp/out"]  # each host has a /tmp of its own
    result = bed.run([*command[:3], *options, *command[3:], python, programs / "ends.py", "raise"])
    assert result.status == 1, result
    assert "is there" not in result.output and "; see /tmp/out/rank.3.err on host1" in result.output, result
    for host, ranks in ((0, (0, 1)), (1, (2, 3))):
        assert bed.on(host, "ls", "/tmp/out").split() == [f"rank.{r}.{name}" for r in ranks for name in ("err", "out")]
    assert "ValueError: wrong" in bed.on(1, "cat", "/tmp/out/rank.3.err")
