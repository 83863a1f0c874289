"""The programs of test_reused_pid.py, and what they have for a neighbour."""

import contextlib
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from program import command

AT, BYTES = 0x600000000000, 1 << 20
FIXED = 0x10


def fixed(byte):
    """Return memory at an address that two processes agree on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    got = libc.mmap(AT, BYTES, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED, -1, 0)
    assert got == AT
    memory = (ctypes.c_char * BYTES).from_address(AT)
    ctypes.memset(AT, byte, BYTES)
    return memory


def neighbour():
    """Have memory of its own where another process had some."""
    memory = fixed(0x55)
    print("ready", flush=True)
    sys.stdin.readline()  # until it may look
    sys.exit(0 if memory.raw == b"\x55" * BYTES else 17)


def born_as(pid, *line, **options):
    """Start a process that has this number; return None if that is still taken."""
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    process = subprocess.Popen(line, **options)
    if process.pid == pid:
        return process
    process.kill()
    process.wait()
    return None


def origin(wrapped):
    import numpy as np
    from rankside import MPI, await_watchers, fails, pidfds, raise_flag, rank, say, world

    mine = np.ctypeslib.as_array((ctypes.c_uint8 * BYTES).from_buffer(fixed(1)))
    win = MPI.Win.Create(mine, comm=world)
    pid = world.bcast(os.getpid(), root=1)
    await_watchers()
    watched = len(pidfds())
    win.Lock_all()
    if rank == 1:
        _request = world.Isend(mine, dest=0)  # announced, for rank 0 to fetch
        world.Barrier()
        raise_flag("leaving")
        os._exit(0)
    small, large = np.full(8, 7, np.uint8), np.full(BYTES, 7, np.uint8)
    for array in (small, large):
        win.Put(array, 1)
    world.Barrier()
    while len(pidfds()) == watched:  # until this process has noticed its end
        time.sleep(0.01)
    while wrapped and os.path.exists(f"/proc/{pid}"):  # until the shell has, too
        time.sleep(0.01)
    python, *line = command(neighbour)
    process = born_as(pid, python, "-S", *line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process:
        assert process.stdout.readline() == b"ready\n"
    say("reused" if process else "kept")
    for call, array in ((win.Put, small), (win.Put, large), (win.Get, small), (win.Get, large)):
        with fails(MPI.ERR_PROC_FAILED, "rank 1"):
            call(array, 1)
    assert (small == 7).all() and (large == 7).all()
    with fails(MPI.ERR_PROC_FAILED, "rank 1"):
        world.Recv(large, source=1)
    assert not (large == 0x55).any(), "a message has come out of another process"
    if process:
        process.communicate(b"look\n")
        assert process.returncode == 0, "memory of another process was changed"
    os._exit(0)


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(name) == pid]


def init(*line):
    """Be process 1 of a namespace, which is given what others leave, and run a launcher of one rank, sleep 60."""
    job = subprocess.Popen(line)
    guardian = rank = None
    while guardian is None or rank is None:
        time.sleep(0.05)
        for pid in children(job.pid):
            name = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
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
        with contextlib.suppress(ChildProcessError):
            os.waitpid(guardian, os.WNOHANG)
        time.sleep(0.01)
    assert process.poll() is None, "the guardian has killed another process"
    print("alive", flush=True)
