"""Other processes of the host: they connect and say nothing, or belong to somebody else. Ranks get on all the same.

`make neighbours` lets 10,000 connections come, the tests some hundreds; numbers that come again are in
test_reused_pid.py, descriptors that somebody closes in test_descriptors.py.
"""

import os
import shutil

import pytest

pytestmark = pytest.mark.exhaustive

WHOLE = os.environ.get("NEIGHBOURS") == "whole"
CONNECTIONS = 10_000 if WHOLE else 600

LISTENING = r"""
import os, re, resource, subprocess, sys, time

def listening():
    "The addresses at which this process can be called."
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
        inodes |= {found[1]} if found else set()
    addresses = []
    for line in open("/proc/self/net/tcp").read().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            host, port = words[1].split(":")
            addresses.append(f"{'.'.join(str(b) for b in bytes.fromhex(host)[::-1])}:{int(port, 16)}")
    for line in open("/proc/self/net/unix").read().splitlines()[1:]:
        words = line.split()
        if words[6] in inodes and words[5] == "01" and len(words) > 7 and words[7].startswith("@"):
            addresses.append(words[7])
    return addresses

CALLER = '''
import resource, socket, sys, time
count, *addresses = sys.argv[1:]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for i in range(int(count)):
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            s = socket.socket(socket.AF_INET if host else socket.AF_UNIX)
            s.setblocking(False)
            held.append(s)
            s.connect((host, int(port)) if host else chr(0) + address[1:])
        except BlockingIOError:
            time.sleep(0.0002)
        except OSError as error:
            if error.errno == 24:
                held = held[len(held) // 2:]
    if i == 300:
        print("begun", flush=True)
print("all", flush=True)
sys.stdin.read()
'''

def silent_callers(count):
    "Let a process connect so often to every address of this one, and wait until there are some hundreds."
    addresses = listening()
    assert addresses
    process = subprocess.Popen([sys.executable, "-c", CALLER, str(count), *addresses],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    return process

def until_all(process):
    "Whether it is still calling."
    import select
    return not select.select([process.stdout], [], [], 0)[0]
"""

RANKS = """
if os.environ["GORMAPY_JOB_RANK"] != "0":
    while not os.path.exists("flag-called"):
        time.sleep(0.01)
from rankside import *
import numpy as np
if rank == 0:
    callers = silent_callers({connections})
    raise_flag("called")
begun = time.monotonic()
got = world.alltoall([f"{{rank}} to {{r}}" for r in range(size)])
assert got == [f"{{r}} to {{rank}}" for r in range(size)]
first = time.monotonic() - begun
rounds = 0
more = True
while more:
    assert world.allreduce(1) == size
    rounds += 1
    more = world.bcast(until_all(callers) if rank == 0 else None)
if rank == 0:
    say("first", f"{{first:.2f}}", "rounds", rounds)
    callers.communicate("", timeout=10)
assert first < 10, first
"""


def test_silent_callers_of_ranks(mpirun):
    mpirun(3, LISTENING + RANKS.format(connections=CONNECTIONS), env={"GORMAPY_FABRIC": "tcp"}, timeout=60)


PAIRS = """
import numpy as np
from gormapy import rdma

class End:
    def __init__(self, context):
        self.pd = context.alloc_pd()
        self.cq = context.create_cq(64)
        self.qp = self.pd.create_qp(self.cq, self.cq)
        self.array = np.zeros(64, np.uint8)
        self.mr = self.pd.register(self.array)

device = rdma.devices({backend!r})[0].name
here, there = rdma.Context(device, {backend!r}), rdma.Context(device, {backend!r})
engine = rdma.Engine("engine", {backend!r})
source, target = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
theirs = engine.register_memory(target)
callers = silent_callers({connections})
slowest = pairs = 0
while pairs < 5 or until_all(callers):
    begun = time.monotonic()
    x, y = End(here), End(there)
    x.qp.connect(y.qp.info())
    y.qp.connect(x.qp.info())
    y.array[:] = pairs % 251 + 1
    x.qp.post_read(x.mr, y.mr.remote)
    (done,) = x.cq.wait(10)
    assert x.array.all() and (x.array == y.array).all()
    x.qp.close(), y.qp.close()
    target[:] = 0
    with rdma.Engine(f"other{{pairs}}", {backend!r}) as other:
        other.register_remote(engine.desc().pack())
        assert other.write(other.register_memory(source), 0, theirs, 0, 256).wait(10).code == rdma.StatusCode.SUCCESS
    assert (target == source).all()
    slowest = max(slowest, time.monotonic() - begun)
    pairs += 1
print("pairs", pairs, "slowest", f"{{slowest:.2f}}", flush=True)
assert slowest < 5, slowest
callers.communicate("", timeout=10)
"""


@pytest.mark.parametrize("backend", ["tcp", "shm"])
def test_silent_callers_of_rdma(mpirun, backend):
    mpirun.alone(LISTENING + PAIRS.format(backend=backend, connections=CONNECTIONS), timeout=60)


# What a process of another user can do to each process of a job. Its arguments: pids, then addresses.
STRANGER = """
import os, socket, sys

split = sys.argv.index("--")
pids, addresses = [int(pid) for pid in sys.argv[1:split]], sys.argv[split + 1:]
for pid in pids:
    try:
        os.kill(pid, 9)
        print("could kill", pid)
    except PermissionError:
        pass
    for call in (lambda: os.listdir(f"/proc/{pid}/fd"), lambda: open(f"/proc/{pid}/environ").read(), lambda: open(f"/proc/{pid}/mem", "rb")):
        try:
            print("could read", pid, call())
        except PermissionError:
            pass
    for fd in range(3, 64):
        try:
            os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
            print("could open", pid, fd)
        except OSError:
            pass
for address in addresses:
    host, _, port = address.rpartition(":")
    with socket.socket(socket.AF_INET if host else socket.AF_UNIX) as s:
        s.settimeout(8)
        s.connect((host, int(port)) if host else chr(0) + address[1:])
        if address.startswith("@"):  # the kernel tells who calls there: not a byte is said
            try:
                said = s.recv(1000)
            except ConnectionResetError:
                said = b""
            if said:
                print("was answered by", address, said)
for name in os.listdir("/dev/shm") + os.listdir("/tmp"):
    path = f"/dev/shm/{name}" if os.path.exists(f"/dev/shm/{name}") else f"/tmp/{name}"
    if "gormapy" in name and "gormapy-build-" not in name and os.access(path, os.R_OK):
        print("could read", path)
print("done", os.getuid())
"""

HOST = """
from rankside import *
from gormapy import rdma
import numpy as np
opened = [rdma.Context(rdma.devices(b)[0].name, b) for b in ("tcp", "shm")] + [rdma.Engine("e", b) for b in ("tcp", "shm")]
win = MPI.Win.Allocate(4096, comm=world)
memory = MPI.Win.Create(np.zeros(10), comm=world)
pids = world.allgather(os.getpid()) + [os.getppid()]
if rank == 0:
    done = subprocess.run(["/usr/bin/python3", "-c", {stranger!r}, *map(str, pids), "--", *listening()],
                          user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["done", "65534"], ""), done
world.Barrier()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs to start a process of another user")
@pytest.mark.skipif(not shutil.which("python3", path="/usr/bin"), reason="needs a Python that every user can run")
@pytest.mark.parametrize("fabric", ["shm", "tcp"])
def test_another_user(mpirun, fabric):
    mpirun(2, LISTENING + HOST.format(stranger=STRANGER), env={"GORMAPY_FABRIC": fabric})
