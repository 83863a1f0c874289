"""Memory of an operation that nobody waits for any more stays until the operation is over, and then goes."""

import functools
import json
import os
import subprocess
import sys

import pytest
from support.mpirun import environment
from support.programs import beside

program = beside(__file__)


@functools.cache
def why_not(transport):
    """Say why jobs can't use a transport on this machine, or nothing."""
    command = [sys.executable, "-m", "gormapy", "info", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    row = next(row for row in json.loads(done.stdout)["transports"] if row["name"] == transport)
    return "" if row["usable"] else row["text"]


@pytest.mark.parametrize("end", ["request.Free()", "del request"])
def test_receive(ranks, end):
    """The message comes, and into nobody else's memory."""
    ranks(2, program.receive, end)


@pytest.mark.parametrize("count", [1, 1 << 12, 1 << 20])
@pytest.mark.parametrize("call", ["Isend", "Issend", "Ibsend"])
@pytest.mark.parametrize("end", ["request.Free()", "del request"])
def test_send(ranks, call, end, count):
    ranks(2, program.send, call, end, count)


@pytest.mark.parametrize("call", program.keys_of("COLLECTIVES"))
def test_collective(ranks, call):
    ranks(3, program.collective, call)


@pytest.mark.parametrize("count", [1, 1 << 20])
def test_started_and_interrupted(ranks, count):
    """Ctrl-C comes between the start of an operation and the object that is to hold it."""
    ranks(2, program.started_and_interrupted, count)


@pytest.mark.parametrize("call", program.keys_of("SENDS"))
def test_interrupted_sends_come_whole(ranks, call):
    ranks(2, program.interrupted_sends_come_whole, call)


def test_the_end_does_not_wait_for_interrupted_sends(mpirun):
    result = mpirun(2, program.the_end_does_not_wait_for_interrupted_sends)
    assert result.since("done") < 20


@pytest.mark.parametrize("call", program.keys_of("WAITS"))
def test_interrupted_calls_give_memory_back(ranks, call):
    """At once, or after the collective reset."""
    ranks(2, program.interrupted_calls_give_memory_back, call)


def test_nothing_is_collected_for_good(ranks):
    """Thousands of requests that are freed: memory and handles stay bounded."""
    ranks(2, program.nothing_is_collected_for_good)


@pytest.mark.parametrize("call", program.keys_of("CALLS_OF_A_STOPPED_PEER"))
def test_a_network_that_may_still_write(mpirun, call):
    """Ctrl-C while a network reads the data of a sender that is stopped: the memory stays until that is over."""
    if why_not("ofi"):
        pytest.skip(f"no libfabric here: {why_not('ofi')}")
    mpirun(2, program.a_network_that_may_still_write, call, env={"GORMAPY_FABRIC": "ofi"})


@pytest.mark.shm("a peer reads memory")
@pytest.mark.parametrize("call", program.keys_of("SENDS_TO_A_STOPPED_PEER"))
def test_a_collective_that_fails_while_a_peer_may_read(mpirun, call):
    """By messages: the memory stays until the peer, which is stopped, has read it, or the collective reset."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two ranks that share a core do not use messages for a long allreduce")
    mpirun(2, program.a_collective_that_fails_while_a_peer_may_read, call)


def test_receive_in_a_cycle(ranks):
    """The garbage collector ends the request, and not the receive."""
    ranks(2, program.receive_in_a_cycle)


@pytest.mark.parametrize("first", ["completed", "active"])
def test_others_of_a_list_that_is_refused(ranks, first):
    """Testall of a request that is completed already, and of an active one: that stays active."""
    ranks(2, program.others_of_a_list_that_is_refused, first)
