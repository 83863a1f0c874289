"""What programs do to the ranks that run them."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
from rankside import MPI, await_call, rank, size, world

import gormapy


def process():
    """Print which process each rank is."""
    print(rank, os.getpid())


def arguments(a, b, c):
    assert (a, b, c) == (1, "two", [3.0, None])


def names():
    """Leave a name in the namespace, and find none."""
    assert "left" not in globals()
    globals()["left"] = 1


def speak():
    """Write much, in pieces, on both streams, and by the C library."""
    for i in range(200):
        print("out", rank, i)
        print("err", rank, i, file=sys.stderr)
    sys.stdout.flush()
    os.write(1, f"raw {rank}\n".encode())


def fail(where):
    """Raise an error on one rank, while the others wait for it."""
    if rank == where:
        for other in range(size):
            if other != where:
                await_call(other, "recv")
        raise ValueError("nobody expects this")
    world.recv(source=where)


def status(number):
    sys.exit(number)


def die(where):
    """Kill one rank, while the others wait for it."""
    if rank == where:
        os.kill(os.getpid(), signal.SIGKILL)
    world.recv(source=where)


def leave_job():
    """End a rank in the middle of the program without an error."""
    if rank == 0:
        os._exit(0)


def forsaken():
    world.recv(source=(rank + 1) % size, tag=77)


def compute():
    while True:
        pass


def unreceived():
    """Send what nobody receives."""
    for tag in 5, 6:
        world.send("of the program before", dest=(rank + 1) % size, tag=tag)


def nothing_is_there():
    time.sleep(0.05)
    assert not world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)
    world.Barrier()


def release_late():
    """Send a long message and go; the receiver comes later."""
    if rank == 0:
        world.Isend(np.arange(3_000_000.0), 1).Free()
    elif rank == 1:
        time.sleep(0.3)
        got = np.empty(3_000_000)
        world.Recv(got, 0)
        assert got[-1] == 2_999_999


def leave(what):
    """Leave something that the next program must not meet."""
    if what == "window":
        gormapy.left = MPI.Win.Allocate(64, 8, comm=world)
    elif what == "communicator":
        gormapy.left = world.Dup()
    elif what == "request":
        gormapy.left = world.irecv(source=MPI.ANY_SOURCE, tag=6)
    elif what == "datatype":
        gormapy.left = MPI.INT.Create_vector(2, 1, 3)
    elif what == "signal":
        signal.signal(signal.SIGUSR1, lambda number, frame: None)
    elif what == "environment":
        os.environ["GORMAPY_LOG"] = "debug"
    elif what == "thread":
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
    elif what == "file":
        gormapy.left = open(__file__)  # noqa: SIM115
    elif what == "error handler":
        world.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    elif what == "method":
        MPI.Comm.Barrier = MPI.Comm.barrier
    elif what == "print options":
        np.set_printoptions(precision=2)
    elif what == "folder":
        os.chdir("/")
    elif what == "module":
        import this_is_beside  # noqa: F401
    elif what == "name of the main module":
        sys.modules["__mp_main__"] = sys.modules["__main__"]  # as multiprocessing does
    else:
        raise ValueError(what)


def leave_child():
    if rank == 0:
        subprocess.Popen(["sleep", "60"])


def setting(name, value):
    assert os.environ.get(name) == value
