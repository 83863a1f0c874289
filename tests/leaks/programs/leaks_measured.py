"""Operations that are made many times, and what a process has before and after: the programs of test_leaks.py."""

import gc
import os
import sys
import time
from collections import Counter

import numpy as np
from rankside import MPI, rank, say, size, world

import gormapy

a, b = np.zeros(4), np.zeros(4)
one, two = np.zeros(1), np.zeros(1)
large, huge = np.zeros(100_000), np.zeros(100_000)
peer = 1 - rank if size == 2 else rank
win = MPI.Win.Allocate(64, 8, comm=world)
win.Lock_all()
null = MPI.Request()
info = {"key": list(range(10))}


def self_messages():
    request = world.Irecv(a, peer)
    world.Send(b, peer)
    request.Wait()


def freed_communicator(comm):
    comm.Barrier()
    comm.Free()


def freed_window(window):
    window.Fence()
    window.Free()


def shared_window():
    array = gormapy.shared_zeros(10_000)
    freed_window(MPI.Win.Create(array, comm=world))


def groups():
    group = world.Get_group()
    first = group.Incl([0])
    first.Free()
    group.Free()


def persistent():
    request = world.Recv_init(a, peer)
    request.Start()
    world.Send(b, peer)
    request.Wait()
    request.Free()


def failing():
    try:
        world.Send(a, dest=17)
    except MPI.Exception as error:
        error.Get_error_string()


def memory():
    allocated = MPI.Alloc_mem(100_000)
    allocated[:] = bytes(100_000)
    MPI.Free_mem(allocated)


def intercommunicator():
    between = MPI.COMM_SELF.Create_intercomm(0, world, peer)
    between.Barrier()
    between.Free()


def spawned():
    command = "from gormapy import MPI; MPI.Comm.Get_parent().Disconnect()"
    world.Spawn(sys.executable, ["-c", command]).Disconnect()


OPERATIONS = {
    "put-flush": lambda: (win.Put(one, peer), win.Flush(peer)),
    "get-flush": lambda: (win.Get(one, peer), win.Flush(peer)),
    "accumulate": lambda: (win.Accumulate(one, peer), win.Flush(peer)),
    "fetch-and-op": lambda: (win.Fetch_and_op(one, two, 0), win.Flush(0)),
    "self-messages": self_messages,
    "pair-messages": lambda: (world.Send(a, 1 - rank), world.Recv(b, 1 - rank)),
    "nonblocking": lambda: MPI.Request.Waitall([world.Irecv(a, peer), world.Isend(b, peer)]),
    "sendrecv": lambda: world.Sendrecv(a, peer, 0, b, peer, 0),
    "barrier": world.Barrier,
    "allreduce": lambda: world.Allreduce(a, b),
    "bcast": lambda: world.Bcast(a),
    "test-on-null": null.Test,
    "pickled": lambda: (world.send(info, peer), world.recv(source=peer)),
    "pickled-allreduce": lambda: world.allreduce(1),
    "iprobe": world.Iprobe,
    "rendezvous": lambda: world.Sendrecv(large, peer, 0, huge, peer, 0),
    "dup": lambda: freed_communicator(world.Dup()),
    "split": lambda: freed_communicator(world.Split(rank % 2)),
    "allocate": lambda: freed_window(MPI.Win.Allocate(100_000, comm=world)),
    "create": lambda: freed_window(MPI.Win.Create(large, comm=world)),
    "create-shared": shared_window,
    "group": groups,
    "datatype": lambda: MPI.DOUBLE.Create_vector(3, 2, 5).Commit().Free(),
    "persistent": persistent,
    "errors": failing,
    "alloc-mem": memory,
    "intercomm": intercommunicator,
    "spawn": spawned,
}


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def descriptors():
    names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sorted(os.readlink(name) for name in names if os.path.islink(name))


def mappings():
    """Return how much shared memory is mapped; the allocator's own mappings come and go."""
    with open("/proc/self/maps") as file:
        return sum("memfd:" in line for line in file)


def threads():
    return len(os.listdir("/proc/self/task"))


def children():
    """Return how many child processes this one has, those that have ended and were not waited for included."""
    found = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children") as file:
                found += len(file.read().split())
        except FileNotFoundError:  # the thread has ended
            pass
    return found


def measure(kind, times, slack):
    """Make an operation so many times; its process may have so much more memory then, for other reasons."""
    operation = OPERATIONS[kind]

    def repeat(count):
        for _ in range(count):
            operation()
        gc.collect()

    repeat(max(times // 10, 5))  # what is made on first use is made
    world.Barrier()
    time.sleep(0.5)  # the watcher of peers has seen them all
    before, others = (resident(), descriptors(), mappings(), threads()), children()
    repeat(times)
    world.Barrier()
    end = time.monotonic() + 20
    # Children that have let go end by themselves.
    while (children() > others or Counter(descriptors()) - Counter(before[1])) and time.monotonic() < end:
        time.sleep(0.01)
    after = resident(), descriptors(), mappings(), threads()
    more = Counter(after[1]) - Counter(before[1])
    assert not more, dict(more)
    assert children() <= others, ("children", others, children())
    assert after[2] <= before[2], ("mappings", before[2], after[2])
    # Go adds one whenever a call takes longer than usual and all others are busy: few, but not at once
    assert after[3] <= before[3] + 16, ("threads", before[3], after[3])
    grown = after[0] - before[0]
    say(f"grown {grown / times:.1f} bytes for each of {times}")
    assert grown < slack, f"{grown / 1e6:.1f} MB more after {times} operations"
    win.Unlock_all()
