"""What the ranks of several hosts do when one of them, or a host, is lost."""

import re
import time

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


@pytest.mark.parametrize("how", ["killed", "exit", "abort", "raise"])
def test_a_rank_that_fails_ends_all(bed, launchers, python, programs, how, network):
    bed.up(2)
    begun = time.monotonic()
    result = bed.run([*launchers.ours(2, 4), python, programs / "ends.py", how], **network)
    assert time.monotonic() - begun < 60, result
    assert result.status != 0, result
    if how == "abort":
        assert result.status == 7, result
    if how == "raise":
        assert result.output.count("ValueError: wrong") == 1, result


@pytest.mark.parametrize("how", ["waits", "writes"])
def test_a_host_that_vanishes(bed, launchers, python, programs, network, how):
    """Its ranks have failed after GORMAPY_PEER_TIMEOUT, also for a rank without a connection to them."""
    bed.up(2)
    job = bed.begin([*launchers.ours(2, 4), python, programs / "ends.py", how], GORMAPY_PEER_TIMEOUT="3", **network)
    lines = []
    while sum("is there" in line for line in lines) < 4:
        lines.append(job.stdout.readline())
        assert lines[-1], lines
    time.sleep(0.5)
    bed.on(1, "ip", "link", "set", "eth0", "down")
    try:
        for line in job.stdout:
            lines.append(line)
            if "learns" in line:
                break
    finally:
        bed.on(1, "ip", "link", "set", "eth0", "up")
        job.kill()
        job.communicate()
    told = re.search(r"rank [01] learns after ([\d.]+) s: MPI_ERR_PROC_FAILED: .*its host has left the job", lines[-1])
    assert told, lines
    assert 2 < float(told[1]) < 15, lines


@pytest.mark.parametrize("cut", ["host 2 reaches nobody", "hosts 1 and 2 do not reach each other"])
def test_a_divided_network(bed, python, programs, cut):
    """The ranks of host 2 end: it has fewer ranks than the others together, or the higher number."""
    bed.up(3)
    rendezvous = f"10.77.0.1:{29700 + len(cut)}"
    ranks = [
        bed.begin(
            [python, programs / "ends.py", "waits"],
            host=host,
            RANK=str(host),
            WORLD_SIZE="3",
            LOCAL_RANK="0",
            GORMAPY_RENDEZVOUS=rendezvous,
            GORMAPY_PEER_TIMEOUT="3",
        )
        for host in range(3)
    ]
    pairs = [(0, 2), (1, 2)] if "nobody" in cut else [(1, 2)]
    apart = [(x, f"10.77.0.{y + 1}") for pair in pairs for x, y in (pair, pair[::-1])]
    try:
        for job in ranks:
            assert "is there" in job.stdout.readline()
        time.sleep(0.5)
        for host, address in apart:
            bed.on(host, "ip", "route", "add", "blackhole", address)
        begun = time.monotonic()
        results = [bed.finish(job, 60) for job in ranks]
        assert time.monotonic() - begun < 30, results
    finally:
        for host, address in apart:
            bed.on(host, "sh", "-c", f"ip route del blackhole {address} || true")
        for job in ranks:
            job.kill()
            job.communicate()
    assert "does not reach the larger part of the job any more: its ranks end" in results[2].output, results[2]
    assert results[2].status == 1, results[2]
    # The first of the others that learns ends the job.
    assert "rank 2" in results[0].output + results[1].output, results
    assert "does not reach the larger part" not in results[0].output + results[1].output, results


@pytest.mark.parametrize("launcher", ["ours", "hydra", "open_mpi"])
def test_the_end_of_the_launcher_ends_all(bed, launchers, python, programs, launcher):
    bed.up(2)

    def running(pattern):
        return [bed.on(h, "sh", "-c", f"pgrep -f '{pattern}' || true").split() for h in range(2)]

    job = bed.begin([*getattr(launchers, launcher)(2, 4), python, programs / "ends.py", "waits"])
    try:
        lines = []
        while sum("is there" in line for line in lines) < 4:
            lines.append(job.stdout.readline())
            assert lines[-1], lines
        program = {"ours": "_bin/[m]piexec", "hydra": "[m]piexec.hydra", "open_mpi": "bin/[p]rterun|bin/[m]pirun"}[
            launcher
        ]
        found = running(program)[0]
        assert found, launcher
        bed.on(0, "kill", "-9", *found)
        limit = time.monotonic() + 30
        while any(left := running("ends.py wait[s]")):
            assert time.monotonic() < limit, left
            time.sleep(0.2)
    finally:
        job.kill()
        job.communicate()
