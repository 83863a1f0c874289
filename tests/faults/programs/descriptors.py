"""The programs of test_descriptors.py. Each begins MPI itself: some ranks come later."""

import os
import pickle  # noqa: F401  who has no descriptors left can't import it
import resource
import time
from pathlib import Path


def exhaust():
    """Take all descriptors there are, and let there be fewer than are open."""
    taken = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, hard))

    def back():
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)

    return back


def eventfds():
    """Return those of this process that are not of Go's run-time, which polls its own."""
    found, theirs = [], set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if "[eventfd]" in os.readlink(f"/proc/self/fd/{name}"):
                found.append(int(name))
            info = Path(f"/proc/self/fdinfo/{name}").read_text()
        except OSError:
            continue
        theirs |= {int(line.split()[1]) for line in info.splitlines() if line.startswith("tfd:")}
    return [fd for fd in found if fd not in theirs]


def come_after(flag, rank):
    """Let a rank wait for a flag before it begins MPI, which imports rankside."""
    while os.environ["GORMAPY_JOB_RANK"] == rank and not os.path.exists(f"flag-{flag}"):
        time.sleep(0.01)


def peer_that_comes_while_no_descriptors_are_left():
    come_after("exhausted", "1")
    from rankside import raise_flag, rank, world

    if rank == 0:
        raise_flag("exhausted")
        back = exhaust()
        time.sleep(6.5)
        world.send("are you there?", dest=1)
        assert world.recv(source=1) == "yes"
        back()
    else:
        assert world.recv(source=0) == "are you there?"
        time.sleep(0.5)  # rank 0 waits, and looks whether this one lives
        world.send("yes", dest=0)
    world.Barrier()


def end_of_a_peer_is_noticed_once_there_are_descriptors():
    come_after("exhausted", "1")
    from rankside import MPI, fails, raise_flag, rank, stamp, world

    if rank == 0:
        raise_flag("exhausted")
        back = exhaust()
        world.recv(source=1)
        time.sleep(1)
        back()
        with fails(MPI.ERR_PROC_FAILED):
            world.recv(source=1)
        stamp("noticed")
    else:
        world.send("here I am", dest=0)


def start_with_few_descriptors(spare):
    import gormapy

    gormapy.rc.initialize = False
    from gormapy import MPI

    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(spare + 1)]
    for fd in fds:
        os.close(fd)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (fds[-1], hard))  # so many are free
    try:
        MPI.Init()
    except Exception as error:
        print("refused:", error, flush=True)
        os._exit(3)
    time.sleep(0.4)
    MPI.COMM_WORLD.Barrier()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    MPI.COMM_WORLD.Barrier()
    print("works", flush=True)


def descriptors_that_somebody_else_closes(instead):
    come_after("survived", "2")  # until it comes, the others look for it now and then
    from rankside import MPI, await_flag, fails, pidfds, raise_flag, rank, world

    if rank == 0:
        while len(pidfds()) < 2:  # of the launcher and of rank 1
            time.sleep(0.01)
        closed = pidfds() + eventfds()
        assert len(closed) == 3, closed
        pipe = os.pipe()
        if instead == "readable":
            os.write(pipe[1], b"to be read")
        for fd in closed:
            if instead == "nothing":
                os.close(fd)
            else:
                os.dup2(pipe[0], fd)
        before = time.process_time()
        time.sleep(1)
        assert time.process_time() - before < 0.2, "the watcher spins"
        assert world.recv(source=1) == "still here"
        if instead != "nothing":
            assert {os.readlink(f"/proc/self/fd/{fd}") for fd in closed} == {os.readlink(f"/proc/self/fd/{pipe[0]}")}
        raise_flag("survived")
        world.recv(source=2)
        raise_flag("leave")
        with fails(MPI.ERR_PROC_FAILED):
            world.recv(source=1)
    elif rank == 1:
        time.sleep(6.5)  # longer than rank 0 waits for the launcher's word
        world.send("still here", dest=0)
        await_flag("leave")
    else:
        world.send("here I am", dest=0)
