"""The programs of HiCR on gormapy.slots print what its documentation says."""

import re
import sys

import pytest
from support.mpirun import ANY

PROGRAMS = {
    "remote_memcpy": [],
    "channel_spsc": ["3"],
    "channel_varsize": ["3"],
    "pingpong": ["5", "10", "256"],
}


def example(mpirun, n, name, *args, expect=0, **options):
    """Run an example on ``n`` ranks."""
    return mpirun.command(n, sys.executable, "-m", f"gormapy.examples.{name}", *args, **options).finish(expect)


def test_remote_memcpy_counts_the_message_and_has_no_race(mpirun):
    for _ in range(3):
        assert example(mpirun, 2, "remote_memcpy").lines == [  # of the two ranks, in the order of the alphabet
            "[Receiver] Received Message Count: 1",
            "[Receiver] Received buffer: Hello, receiver! This is sender.",
            "[Sender] Received buffer: Hello, sender! This is receiver.",
        ]


@pytest.mark.parametrize("capacity", [1, 3, 100])
def test_channel_spsc(mpirun, capacity):
    lines = example(mpirun, 2, "channel_spsc", capacity).stdout.splitlines()
    for word in ("Sent", "Received"):
        assert [line for line in lines if line.startswith(word)] == [f"{word} Value: {v}" for v in (42, 43, 44)]


@pytest.mark.parametrize(
    "n, options", [(2, ["3"]), (4, ["1"]), (7, ["3"]), (2, ["1", "--nonlocking"]), (7, ["3", "--nonlocking"])]
)
def test_channel_mpsc(mpirun, n, options):
    lines = example(mpirun, n, "channel_mpsc", *options).stdout.splitlines()
    for rank in range(1, n):
        mine = [line for line in lines if line.startswith(f"[Producer {rank:03d}]")]
        assert mine == [f"[Producer {rank:03d}] Sent Value: {v}" for v in (42, 43, 44)]
    pattern = r"    \[Consumer\] Recv Value: (\d+)  \((\d+)/(\d+)\) Pos: (\d+)" + (
        r" @ SPSC Channel (\d+)$" if "--nonlocking" in options else "()$"
    )
    got = [re.match(pattern, line) for line in lines if "Consumer" in line]
    total = 3 * (n - 1)
    assert [(int(m[2]), int(m[3])) for m in got] == [(i + 1, total) for i in range(total)]
    assert sorted(int(m[1]) for m in got) == sorted((42, 43, 44) * (n - 1))
    if "--nonlocking" in options:
        for ring in range(n - 1):
            assert [int(m[1]) for m in got if int(m[5]) == ring] == [42, 43, 44]
    else:
        assert [int(m[4]) for m in got] == [i % int(options[0]) for i in range(total)]


@pytest.mark.parametrize("capacity", [1, 3])
def test_channel_varsize(mpirun, capacity):
    lines = example(mpirun, 2, "channel_varsize", capacity).stdout.splitlines()
    for word in ("PRODUCER sent:", "CONSUMER:"):
        assert [line for line in lines if line.startswith(word)] == [
            f"{word}{text}" for text in ("0,1,2,3,", "4,5,6,", "7,8,")
        ]


@pytest.mark.parametrize("arguments", [["5", "10", "256"], ["1", "50", "1"], ["2", "5", "65536"]], ids=" ".join)
def test_pingpong(mpirun, arguments):
    assert re.fullmatch(r"Time: \d+\.\d{6} seconds\n", example(mpirun, 2, "pingpong", *arguments).stdout)


def test_object_store(mpirun):
    assert example(mpirun, 2, "object_store").stdout.splitlines() == [
        "Reader: Received block 1: Test",
        "Reader: Received block 2: This is another block",
    ]


def test_object_store_alone(mpirun):
    assert example(mpirun, 1, "object_store").stdout.splitlines() == [
        "Block 1: R",
        "Block 2: S",
        "Copy of a Custom Block: Test",
    ]


@pytest.mark.parametrize(
    "name, n",
    [("remote_memcpy", 1), ("remote_memcpy", 3), ("channel_spsc", 3), ("channel_varsize", 1), ("pingpong", 3)],
)
def test_wrong_number_of_ranks(mpirun, name, n):
    result = example(mpirun, n, name, *PROGRAMS[name], expect=ANY)
    assert result.status == 1
    assert result.stderr.count("[Error] This example requires exactly 2 HiCR instances to run") == 1, str(result)


def test_wrong_number_of_ranks_elsewhere(mpirun):
    assert "at least 2 HiCR instances" in example(mpirun, 1, "channel_mpsc", "3", expect=1).stderr
    assert "1 or 2 HiCR instances" in example(mpirun, 3, "object_store", expect=1).stderr


@pytest.mark.parametrize(
    "command",
    [
        "channel_spsc",
        "channel_spsc x",
        "channel_spsc 3 4",
        "channel_mpsc -1",
        "channel_mpsc 3 --lockless",
        "channel_varsize 1.5",
        "pingpong 5 10",
        "pingpong 5 10 0",
        "remote_memcpy 3",
        "object_store x",
    ],
)
def test_bad_arguments(mpirun, command):
    name, *arguments = command.split()
    result = example(mpirun, 1, name, *arguments, expect=ANY)
    assert result.status == 2
    assert f"usage: {name}" in result.stderr and "error:" in result.stderr


@pytest.mark.parametrize("name", [*PROGRAMS, "channel_mpsc", "object_store"])
def test_help(mpirun, name):
    assert f"usage: {name}" in example(mpirun, 1, name, "--help").stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_over_tcp(mpirun, name):
    example(mpirun, 2, name, *PROGRAMS[name], env={"GORMAPY_FABRIC": "tcp"})
