"""What the processes do that the programs of dynamic.py spawn: the function that the command line names."""

import os
import signal
import sys
import time

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
parent = MPI.Comm.Get_parent()


def greet():
    """Say who this is, and what it was given."""
    parent.gather((world.rank, world.size, world.Get_attr(MPI.APPNUM), os.getcwd(), sys.argv[2:]), root=0)
    parent.Disconnect()
    assert parent == MPI.COMM_NULL == MPI.Comm.Get_parent()


def everything():
    """Take part in what dynamic.everything does."""
    from dynamic import everything as do

    do(parent, high=True)


def wait():
    """Wait for a message that never comes."""
    tell()
    parent.recv(source=0)


def tell():
    parent.gather(os.getpid(), root=0)


def killed():
    tell()
    if world.rank == world.size - 1:
        parent.recv(source=0)
        os.kill(os.getpid(), signal.SIGKILL)
    parent.recv(source=0)


def raising():
    tell()
    if world.rank == world.size - 1:
        parent.recv(source=0)
        raise ValueError("a child fails")
    parent.recv(source=0)


def last_words():
    """Send messages, short and long, and end at once."""
    parent.isend("short", 0)
    parent.Send(np.arange(1 << 18, dtype="d"), 0, tag=1)


def grandchildren():
    """Spawn, and connect all three generations."""
    mine = world.Spawn(sys.executable, [__file__, "grandchild"], 2)
    three = parent.Merge(True)
    ours = mine.Merge(False)
    # the group of the parents, and that of the grandchildren, by way of this generation
    assert ours.allreduce(1) == 2 + world.size
    parent.gather(ours.allgather(world.rank), root=0)
    for comm in (three, ours):
        comm.Free()
    mine.Disconnect()
    parent.Disconnect()


def grandchild():
    ours = parent.Merge(True)
    assert ours.allreduce(1) == ours.size
    ours.allgather(world.rank)
    ours.Free()
    parent.Disconnect()


def leave():
    parent.allgather(1)
    both = parent.Merge(True)
    window = MPI.Win.Allocate(64, 1, comm=both)
    window.Fence()
    window.Free()
    both.Free()
    parent.Disconnect()


def shows():
    """Take part in what dynamic.memory_of_the_dead does."""
    both = parent.Merge(True)
    memory = MPI.Alloc_mem(1_200_000)
    np.frombuffer(memory, "i4")[:] = 7
    window = MPI.Win.Create(memory, comm=both)
    window.Fence()
    window.Fence()
    window.Free()
    both.Free()
    parent.send(os.getpid(), 0)
    parent.Disconnect()


def synchronous():
    """Send synchronously to a parent that computes once it has received, and make a file when that has ended."""
    parent.Ssend(np.ones(4), 0, 1)
    open(sys.argv[2], "w").close()
    parent.Disconnect()


def sends():
    """Begin to send, and leave without a receiver when the parent says so."""
    parent.Isend(np.full(1 << 17, 3.0), 0, 1)
    parent.send(os.getpid(), 0, 2)
    parent.recv(source=0, tag=0)
    parent.Free()
    os._exit(0)


def vanishes():
    if world.rank == 0:
        parent.send("here", 0)
    time.sleep(0.1)
    os._exit(0)


def busy():
    """Call nothing of MPI until a parent has put and made a file."""
    both = parent.Merge(True)
    window = MPI.Win.Create(np.zeros(1), comm=both)
    both.Barrier()
    end = time.monotonic() + 20
    while not os.path.exists(sys.argv[2]):
        assert time.monotonic() < end, "a put waits for its target"
        time.sleep(0.01)
    both.Barrier()
    window.Free()
    both.Free()
    parent.Disconnect()


globals()[sys.argv[1]]()
