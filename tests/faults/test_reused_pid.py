"""The number of a process that has ended is given to another one: nothing of that one is touched.

The kernel takes the numbers in turn, so a job has a PID namespace of its own, in
which the next number can be chosen.
"""

import shutil
import subprocess
import sys

import pytest
from support import mpirun as support

pytestmark = pytest.mark.exhaustive

NEIGHBOUR = """
import ctypes, mmap, os, subprocess, sys, time

AT, BYTES = 0x600000000000, 1 << 20
FIXED = 0x10

def fixed(byte):
    "Memory at an address that two processes agree on."
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    got = libc.mmap(AT, BYTES, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED, -1, 0)
    assert got == AT
    memory = (ctypes.c_char * BYTES).from_address(AT)
    ctypes.memset(AT, byte, BYTES)
    return memory

def born_as(pid, *command, **options):
    "Start a process that has this number, None if that is still taken."
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    process = subprocess.Popen(command, **options)
    if process.pid == pid:
        return process
    process.kill()
    process.wait()
    return None

if __name__ == "__main__" and sys.argv[1:] == ["neighbour"]:
    memory = fixed(0x55)
    print("ready", flush=True)
    sys.stdin.readline()  # until it may look
    raise SystemExit(0 if memory.raw == b"\\x55" * BYTES else 17)
"""

ORIGIN = (
    NEIGHBOUR
    + """
import numpy as np
from rankside import *

mine = np.ctypeslib.as_array((ctypes.c_uint8 * BYTES).from_buffer(fixed(1)))
win = MPI.Win.Create(mine, comm=world)
pid = world.bcast(os.getpid(), root=1)
win.Lock_all()
if rank == 1:
    request = world.Isend(mine, dest=0)  # announced, for rank 0 to fetch
    world.Barrier()
    raise_flag("leaving")
    os._exit(0)
small, large = np.full(8, 7, np.uint8), np.full(BYTES, 7, np.uint8)
for array in (small, large):
    win.Put(array, 1)
world.Barrier()
time.sleep(0.5)  # it has ended by then, and who waits for it knows
process = born_as(pid, sys.executable, "-S", __file__, "neighbour", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
if process:
    assert process.stdout.readline() == b"ready\\n"
say("reused" if process else "kept")
for call, array in ((win.Put, small), (win.Put, large), (win.Get, small), (win.Get, large)):
    with fails(MPI.ERR_PROC_FAILED, "rank 1"):
        call(array, 1)
assert (small == 7).all() and (large == 7).all()
with fails(MPI.ERR_PROC_FAILED, "rank 1"):
    world.Recv(large, source=1)
assert not (large == 0x55).any(), "a message has come out of another process"
if process:
    process.communicate(b"look\\n")
    assert process.returncode == 0, "memory of another process was changed"
os._exit(0)
"""
)


# Process 1 of its namespace: it is given what others leave, as init is.
INIT = (
    NEIGHBOUR
    + """
import signal

def stat(pid):
    "State, parent and start of a process."
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return fields[0], int(fields[1]), fields[19]

def children(pid):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and stat(name)[1] == pid]

job = subprocess.Popen(sys.argv[1:])
guardian = rank = None
while guardian is None or rank is None:
    time.sleep(0.05)
    for pid in children(job.pid):
        name = open(f"/proc/{pid}/cmdline").read().split("\\0")
        if name[0] == "gormapy-guardian":
            guardian = pid
        elif "60" in name:
            rank = pid
os.kill(guardian, signal.SIGSTOP)
job.kill()
while os.path.exists(f"/proc/{rank}") or os.path.exists(f"/proc/{job.pid}"):
    os.waitpid(-1, os.WNOHANG)
    time.sleep(0.01)
time.sleep(0.05)
process = born_as(rank, "sleep", "60", start_new_session=True)
assert process, "the number is still taken"
os.kill(guardian, signal.SIGCONT)
while os.path.exists(f"/proc/{guardian}"):
    try:
        os.waitpid(guardian, os.WNOHANG)
    except ChildProcessError:
        pass
    time.sleep(0.01)
assert process.poll() is None, "the guardian has killed another process"
print("alive", flush=True)
"""
)


@pytest.fixture
def numbered(mpirun):
    """Run jobs in a PID namespace of their own."""
    command = [shutil.which("unshare") or "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try:
        tried = subprocess.run([*command, "sh", "-c", "echo 99 > /proc/sys/kernel/ns_last_pid"], capture_output=True)
    except OSError as error:
        pytest.skip(f"needs unshare: {error}")
    if tried.returncode:
        pytest.skip(f"needs a PID namespace of its own: {tried.stderr.decode()}")

    def run(*line):
        job = support.Job([*command, *line], support.environment(), mpirun.folder, timeout=30)
        mpirun.jobs.append(job)
        return job.finish()

    return run


def origin(folder):
    return support.program(ORIGIN, folder)


def test_put_and_get_after_the_targets_end(numbered, tmp_path):
    """Of a rank that the launcher has started the number stays taken."""
    result = numbered(support.mpiexec(), "-n", 2, "--timeout", 20, sys.executable, origin(tmp_path))
    assert "kept" in result.lines, str(result)


def test_put_and_get_after_the_end_of_a_target_in_a_wrapper(numbered, tmp_path):
    """A shell gives the number of its child away."""
    wrapper = ("sh", "-c", '"$0" "$@"; status=$?; sleep 2; exit $status', sys.executable)
    result = numbered(support.mpiexec(), "-n", 2, "--timeout", 20, *wrapper, origin(tmp_path))
    assert "reused" in result.lines, str(result)


def test_groups_that_the_guardian_kills(numbered, tmp_path):
    """The launcher is killed, its rank ends, and the rank's number is another's before the guardian runs."""
    init = support.program(INIT, tmp_path)
    result = numbered(sys.executable, init, support.mpiexec(), "-n", 1, "sleep", "60")
    assert "alive" in result.lines, str(result)
