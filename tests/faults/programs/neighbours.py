"""The programs of test_neighbours.py. Each begins MPI itself, or does without."""

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def listening():
    """Return the addresses at which this process can be called."""
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
        inodes |= {found[1]} if found else set()
    addresses = []
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            host, port = words[1].split(":")
            addresses.append(f"{'.'.join(str(b) for b in bytes.fromhex(host)[::-1])}:{int(port, 16)}")
    for line in Path("/proc/self/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if words[6] in inodes and words[5] == "01" and len(words) > 7 and words[7].startswith("@"):
            addresses.append(words[7])
    return addresses


def silent_callers(count):
    """Let a process connect so often to every address of this one, and wait until there are some hundreds."""
    addresses = listening()
    assert addresses
    command = [sys.executable, Path(__file__).with_name("neighbours_caller.py"), str(count), *addresses]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    return process


def until_all(process):
    """Report whether it is still calling."""
    return not select.select([process.stdout], [], [], 0)[0]


def silent_callers_of_ranks(connections):
    if os.environ["GORMAPY_JOB_RANK"] != "0":
        while not os.path.exists("flag-called"):
            time.sleep(0.01)
    from rankside import raise_flag, rank, say, size, world

    if rank == 0:
        callers = silent_callers(connections)
        raise_flag("called")
    begun = time.monotonic()
    got = world.alltoall([f"{rank} to {r}" for r in range(size)])
    assert got == [f"{r} to {rank}" for r in range(size)]
    first = time.monotonic() - begun
    rounds = 0
    more = True
    while more:
        assert world.allreduce(1) == size
        rounds += 1
        more = world.bcast(until_all(callers) if rank == 0 else None)
    if rank == 0:
        say("first", f"{first:.2f}", "rounds", rounds)
        callers.communicate("", timeout=10)
    assert first < 40, first


class End:
    """One end of a connection."""

    def __init__(self, context):
        self.pd = context.alloc_pd()
        self.cq = context.create_cq(64)
        self.qp = self.pd.create_qp(self.cq, self.cq)
        self.array = np.zeros(64, np.uint8)
        self.mr = self.pd.register(self.array)


def silent_callers_of_rdma(backend, connections):
    from gormapy import rdma

    device = rdma.devices(backend)[0].name
    here, there = rdma.Context(device, backend), rdma.Context(device, backend)
    engine = rdma.Engine("engine", backend)
    source, target = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    theirs = engine.register_memory(target)
    callers = silent_callers(connections)
    slowest = pairs = 0
    while pairs < 5 or until_all(callers):
        begun = time.monotonic()
        x, y = End(here), End(there)
        x.qp.connect(y.qp.info())
        y.qp.connect(x.qp.info())
        y.array[:] = pairs % 251 + 1
        x.qp.post_read(x.mr, y.mr.remote)
        (done,) = x.cq.wait(10)
        assert done.ok and x.array.all() and (x.array == y.array).all()
        x.qp.close()
        y.qp.close()
        target[:] = 0
        with rdma.Engine(f"other{pairs}", backend) as other:
            other.register_remote(engine.desc().pack())
            status = other.write(other.register_memory(source), 0, theirs, 0, 256).wait(10)
            assert status.code == rdma.StatusCode.SUCCESS
        assert (target == source).all()
        slowest = max(slowest, time.monotonic() - begun)
        pairs += 1
    print("pairs", pairs, "slowest", f"{slowest:.2f}", flush=True)
    assert slowest < 20, slowest
    callers.communicate("", timeout=10)


def another_user():
    from rankside import MPI, rank, world

    from gormapy import rdma

    backends = "tcp", "shm"
    opened = [rdma.Context(rdma.devices(b)[0].name, b) for b in backends] + [rdma.Engine("e", b) for b in backends]
    windows = [MPI.Win.Allocate(4096, comm=world), MPI.Win.Create(np.zeros(10), comm=world)]
    pids = [*world.allgather(os.getpid()), os.getppid()]
    if rank == 0:
        # The other user may not be able to read the file.
        program = Path(__file__).with_name("neighbours_stranger.py").read_text()
        command = ["/usr/bin/python3", "-c", program, *map(str, pids), "--", *listening()]
        done = subprocess.run(
            command, user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True
        )
        assert (done.stdout.split(), done.stderr) == (["done", "65534"], ""), done
    world.Barrier()
    for thing in opened:
        thing.close()
    for win in windows:
        win.Free()
