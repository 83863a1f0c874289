"""What test programs import on the ranks: timing, and signals that come from outside."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import contextmanager

import gormapy
from gormapy import MPI
from gormapy._ext import core, fast

world = MPI.COMM_WORLD
rank = world.Get_rank()
size = world.Get_size()

# The ranks of a node share memory.
nodes = [json.loads(core.PeerInfo(r))["node"] for r in range(size)]
node_ranks = [r for r in range(size) if nodes[r] == nodes[rank]]
one_node = len(node_ranks) == size


def near():
    """Return a communicator of the ranks that share memory with this one, in the order of world. All ranks call it."""
    return world if one_node else world.Split_type(MPI.COMM_TYPE_SHARED)


# Every rank calls it, to put communication back after an interrupt.
reset = getattr(gormapy, "reset", fast.reset)


def hello():
    """Print which process this rank is, for Job.pids."""
    print(f"pid {rank} {os.getpid()}", flush=True)


def stamp(word):
    """Print the moment, for Result.since."""
    print(f"{word} {time.monotonic():.6f}", flush=True)


def until(condition, what, within=60.0):
    """Wait, outside of MPI, until a condition holds; what: returns the text of the error if it does not come to that."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.005)


def raise_flag(name):
    """Tell other ranks of something without MPI: see await_flag."""
    open(f"flag-{name}", "w").close()  # in the folder of the test


def await_flag(name, within=60.0):
    """Wait, outside of MPI, until a rank has raised a flag."""
    until(lambda: os.path.exists(f"flag-{name}"), lambda: f"nobody raised the flag {name!r}", within)


def await_call(of, name, within=60.0):
    """Wait, outside of MPI, until another rank waits in a call: the names are those of gocore/job/calls.go."""
    if of not in node_ranks:
        time.sleep(1)  # what ranks of other nodes wait for is not seen
        return
    # Between two slices of a wait it is not among them for a moment.
    record = re.compile(rf"^rank {of} \(pid \d+\): in {name}\b", re.MULTILINE)
    until(
        lambda: record.search(core.Describe()),
        lambda: f"rank {of} did not come to wait in {name}:\n{core.Describe()}",
        within,
    )


def pidfds():
    """List the descriptors by which this process notices the end of others."""
    found = []
    for name in os.listdir("/proc/self/fdinfo"):
        try:
            with open(f"/proc/self/fdinfo/{name}") as info:
                if any(line.startswith("Pid:") for line in info):
                    found.append(int(name))
        except OSError:
            pass  # it was that of the list
    return found


def await_watchers():
    """Wait until the launcher and all ranks of the node are watched, for which each takes a descriptor when it has come."""
    until(lambda: len(pidfds()) >= len(node_ranks), pidfds)


def signal_after(seconds, name="INT", pid=None):
    """Let another process send this one a signal."""
    return subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -{name} {pid or os.getpid()}"])


@contextmanager
def interrupted(after=0.3, within=20.0):
    """Expect KeyboardInterrupt within ``within`` seconds of a SIGINT that comes ``after`` seconds into the block.

    What it yields is a list, which has the seconds that it took when the block is over.
    """
    # The time begins in the block: no signal comes before.
    sender = subprocess.Popen(["sh", "-c", f"read go; sleep {after}; kill -INT {os.getpid()}"], stdin=subprocess.PIPE)
    begun, seconds = time.monotonic(), []
    try:
        sender.stdin.close()
        yield seconds
    except KeyboardInterrupt:
        took = time.monotonic() - begun - after
        seconds.append(took)
    else:
        raise AssertionError(
            f"the call returned after {time.monotonic() - begun:.2f} s: it did not wait for the signal"
        )
    finally:
        sender.wait()
    assert took < within, f"KeyboardInterrupt came {took:.2f} s after the signal"


@contextmanager
def interrupted_in_a_wait():
    """Expect KeyboardInterrupt by a SIGINT that comes when this rank, of a job on one node, waits in a call."""

    def send():
        await_call(rank, r"\w+")
        time.sleep(0.2)  # for what the call begins
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        yield
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("the call returned: it did not wait for the signal")
    finally:
        sender.join()


def error_of(call):
    """Return the exception that a call raises."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("no error")


def refused(kind, call, *words):
    """Expect a call to raise an exception of a kind, with these words in its text."""
    error = error_of(call)
    assert isinstance(error, kind), repr(error)
    for word in words:
        assert word in str(error), f"{word!r} is not in {error}"


@contextmanager
def fails(error_class, naming=None, within=20.0):
    """Expect MPI.Exception of a class, with a text that has ``naming``, within some seconds."""
    begun = time.monotonic()
    try:
        yield
    except MPI.Exception as error:
        took = time.monotonic() - begun
        assert error.Get_error_class() == error_class, f"class {error.Get_error_class()}: {error}"
        assert naming is None or naming in str(error), f"{naming!r} is not in: {error}"
        assert took < within, f"the error came after {took:.2f} s: {error}"
    else:
        raise AssertionError(f"no error, {time.monotonic() - begun:.2f} s")


def say(*words):
    """Print a line at once."""
    print(*words, flush=True)
