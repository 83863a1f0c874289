"""A rank of a soak: operations on words of a window, locks and files, while a nemesis is at work.

Argument: a folder for histories, in which the file ``over`` ends the work. Each rank writes what it calls, and what
that returned, to a history of its own as it goes (checker/main.go has the format). A
KeyboardInterrupt makes all ranks call gormapy.reset, which the nemesis sees to by
interrupting all of them.
"""

import ctypes
import os
import platform
import random
import resource
import sys
import time

import numpy as np

import gormapy
from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
folder = sys.argv[1]
chance = random.Random(rank * 1000 + int(time.time()))

WORDS = 32  # of each rank, for atomic operations
LOCKED = 8  # behind them, of each rank: changed by Get and Put under a lock
# Writes from these offsets on fail, see fail_far_writes.
NO_DEVICE, NO_SPACE = 1 << 40, 1 << 41


def fail_far_writes():
    """Have the kernel refuse pwrite64 from far offsets on: EIO, and further out ENOSPC."""
    # struct sock_filter: code, jump if true, jump if false, value; see seccomp(2).
    load, equal, greater, give = 0x20, 0x15, 0x35, 0x06
    number, high = 0, 16 + 3 * 8 + 4  # of struct seccomp_data: nr, and args[3]'s upper half
    rules = [
        (load, 0, 0, number),
        (equal, 0, 4, 18),  # pwrite64 on x86-64
        (load, 0, 0, high),
        (greater, 1, 0, NO_SPACE >> 32),
        (greater, 2, 1, NO_DEVICE >> 32),
        (give, 0, 0, 0x00050000 | 28),
        (give, 0, 0, 0x7FFF0000),
        (give, 0, 0, 0x00050000 | 5),
    ]
    raw = b"".join(c.to_bytes(2, "little") + bytes([t, f]) + v.to_bytes(4, "little") for c, t, f, v in rules)
    code = ctypes.create_string_buffer(raw, len(raw))

    class Program(ctypes.Structure):
        _fields_ = [("n", ctypes.c_ushort), ("rules", ctypes.c_void_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(rules), ctypes.addressof(code))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    # seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC): all threads
    assert libc.syscall(317, 1, 1, ctypes.byref(program)) == 0, ctypes.get_errno()


class History:
    """What this rank called and what came of it."""

    def __init__(self):
        self.fd = os.open(f"{folder}/history.{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.id = 0
        self.done = 0

    def line(self, *fields):
        os.write(self.fd, (" ".join(map(str, fields)) + "\n").encode())

    def call(self, key, kind, a, b, do):
        """Do something that returns an old value, and write it down."""
        self.id += 1
        self.line("call", self.id, time.monotonic_ns(), key, kind, a, b)
        value = do()
        self.line("return", self.id, time.monotonic_ns(), int(value))
        self.done += 1

    def over(self):
        """Nothing that was called before takes effect from now on."""
        self.line("over", time.monotonic_ns())


history = History()
slots = WORDS + LOCKED


def make_window():
    """Make the window that all words lie in: of MPI's memory or the program's."""
    if kind == "allocate":
        return MPI.Win.Allocate(8 * slots, 8, comm=world), None
    memory = np.zeros(slots, "l")
    return MPI.Win.Create(memory, 8, comm=world), memory


def atomic():
    """Make an atomic operation on a word of any rank."""
    target, word = chance.randrange(size), chance.randrange(WORDS)
    key, a, b = target * slots + word, chance.randrange(5), chance.randrange(5)
    one, two, old = np.array([a], "l"), np.array([b], "l"), np.zeros(1, "l")
    what = chance.choice(["add", "cas", "swap", "read"])

    def do():
        win.Lock(target, MPI.LOCK_SHARED)
        if what == "cas":
            win.Compare_and_swap(two, one, old, target, word)
        else:
            op = {"add": MPI.SUM, "swap": MPI.REPLACE, "read": MPI.NO_OP}[what]
            win.Fetch_and_op(one, old, target, word, op)
        win.Unlock(target)
        return old[0]

    history.call(key, what, a, b, do)


def locked():
    """Add to a word by Get and Put, under an exclusive lock."""
    target, word = chance.randrange(size), WORDS + chance.randrange(LOCKED)
    a = chance.randrange(5)
    old, new = np.zeros(1, "l"), np.zeros(1, "l")

    def do():
        win.Lock(target, MPI.LOCK_EXCLUSIVE)
        win.Get(old, target, word)
        win.Flush(target)
        new[0] = old[0] + a
        win.Put(new, target, word)
        win.Unlock(target)
        return old[0]

    history.call(target * slots + word, "add", a, 0, do)


def message():
    """Send something to itself, long or short: what it does to memory and handles is looked at."""
    data = np.full(chance.choice([10, 3000, 100_000]), rank)
    got = np.zeros_like(data)
    request = world.Irecv(got, rank, 5)
    world.Send(data, rank, 5) if len(data) < 1000 else MPI.Request.Waitall([world.Isend(data, rank, 5)])
    request.Wait()
    assert (got == rank).all()


def file_access():
    """Write records and read them back; some writes fail, and the file works on."""
    record = np.full(8, rank * 1_000_000 + history.done, "l")
    place = 64 * (rank * 1000 + chance.randrange(1000))
    far = chance.choice([0, 0, 0, NO_DEVICE, NO_SPACE]) if refusals else 0
    try:
        file.Write_at(far + place, record)
    except MPI.Exception as error:
        expected = {NO_DEVICE: MPI.ERR_IO, NO_SPACE: MPI.ERR_NO_SPACE}
        assert far and error.Get_error_class() == expected[far], error
        return
    assert not far, "a write that the kernel refuses succeeded"
    back = np.zeros(8, "l")
    file.Read_at(place, back)
    assert (back == record).all(), (back, record)


def resources():
    """Count what this process has: descriptors, threads, mappings, and resident memory in KiB."""
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    with open("/proc/self/maps") as maps:
        mappings = sum(1 for _ in maps)
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": int(fields["Threads"]),
        "mappings": mappings,
        "memory": int(fields["VmRSS"].split()[0]),
    }


def work():
    """Go on until the nemesis says that it is over, or interrupts."""
    while not os.path.exists(f"{folder}/over"):
        chance.choices([atomic, locked, message, file_access], [60, 25, 5, 10])[0]()
        if chance.random() < 0.05:
            time.sleep(0.001)


refusals = platform.machine() == "x86_64"  # whose numbers of system calls the filter has
if refusals:
    fail_far_writes()
kind = os.environ.get("SOAK_WINDOW", "allocate")
win, memory = make_window()
file = MPI.File.Open(world, f"{folder}/file", MPI.MODE_CREATE | MPI.MODE_RDWR)
world.Barrier()
print("pid", rank, os.getpid(), flush=True)
resets = 0
first = None
reset_due = finished = False
while not finished:
    # The next interrupt comes when all ranks have printed the last reset, wherever this rank is by then.
    try:
        while not finished:
            if reset_due:
                gormapy.reset()
                history.over()
                resets += 1
                if first is None and resets == 3:
                    first = resources()
                reset_due = False
                print("reset", rank, resets, flush=True)
            work()
            finished = True
    except KeyboardInterrupt:  # also of a reset, which is then gone on with
        reset_due = not finished
while True:
    try:
        print("done", rank, history.done, resets, flush=True)
        break
    except KeyboardInterrupt:
        pass
# All come here: a rank that was interrupted after its last operation has nobody to reset with.
try:
    world.Barrier()
    last = resources()
    # A peer's process is looked at when it is first needed, and Go keeps the threads that it once had in
    # system calls. What a reset or an operation left behind would be more: there are thousands of them.
    limits = {"descriptors": size, "threads": 16, "mappings": 120, "memory": 40_000}
    for what, more in limits.items():
        assert first is None or last[what] <= first[what] + more, (what, first, last)
    print("resources", rank, first, last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    file.Close()
    win.Free()
except KeyboardInterrupt:
    pass
