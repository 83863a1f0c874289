"""The programs of test_communicator_creation.py."""

import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress

import numpy as np
from rankside import MPI, await_call, await_flag, fails, interrupted_in_a_wait, raise_flag, rank, size, world

import gormapy


def splits(seed, rounds):
    """Split into groups of which all ranks know what they are, one out of another."""
    plan = random.Random(seed)
    parent = world.Dup()
    for _ in range(rounds):
        colors = [plan.choice([0, 1, 2, MPI.UNDEFINED]) for _ in range(size)]
        keys = [plan.randrange(size) for _ in range(size)]
        made = parent.Split(colors[rank], keys[rank])
        if colors[rank] == MPI.UNDEFINED:
            assert made == MPI.COMM_NULL
        else:
            members = sorted((r for r in range(size) if colors[r] == colors[rank]), key=lambda r: keys[r])
            assert made.allgather(rank) == members
            inner = made.Split(made.rank % 2, -made.rank)
            assert inner.allgather(rank) == [r for r in members if members.index(r) % 2 == made.rank % 2][::-1]
            again = inner.Dup()
            again.Barrier()
            again.Free()
            inner.Free()
            made.Free()
        assert parent.allreduce(1) == size
    parent.Free()


def more_than_there_are_blocks():
    """Communicators that find no barrier block use messages; blocks that are given back are used again."""
    for _ in range(2):
        made = [world.Dup() for _ in range(600)]
        for comm in (made[0], made[300], made[-1]):
            assert comm.allreduce(1) == size
            inner = comm.Split(0, -rank)
            assert inner.allgather(rank) == list(range(size))[::-1]
            inner.Free()
        for comm in made:
            comm.Free()


MAKING = {
    "Dup": lambda comm: comm.Dup(),
    "Split": lambda comm: comm.Split(0, -rank),
    "Create": lambda comm: comm.Create(comm.group),
    "Allocate": lambda comm: MPI.Win.Allocate(64, comm=comm),
    "Create_cart": lambda comm: comm.Create_cart([size]),
    "Open": lambda comm: MPI.File.Open(comm, "file", MPI.MODE_CREATE | MPI.MODE_RDWR),
}


def given_up(what, who):
    """A rank's call is interrupted before the others make theirs: these fail, and the communicator can be used."""
    make, comm = MAKING[what], world.Dup()
    for attempt in range(3):
        world.Barrier()
        if rank == who:
            with interrupted_in_a_wait():
                make(comm)
            raise_flag(f"interrupted {attempt}")
        else:
            await_flag(f"interrupted {attempt}")
            with fails(MPI.ERR_OTHER, "has given it up"):
                make(comm)
        assert comm.allreduce(1) == size
        made = make(comm)
        if isinstance(made, MPI.Comm):
            assert sorted(made.allgather(rank)) == list(range(size))
        (made.Close if isinstance(made, MPI.File) else made.Free)()
    comm.Free()


def exception_between(what, who):
    """A rank raises an exception as soon as the extension has made the object: its calls stay in step with the others'."""
    make, comm = MAKING[what], world.Dup()

    def profile(_frame, event, called):
        if event == "c_return" and called.__name__ in (
            "Dup",
            "Split",
            "comm_create",
            "win_create",
            "file_open",
        ):
            sys.setprofile(None)
            raise KeyboardInterrupt

    for _ in range(3):
        if rank == who:
            sys.setprofile(profile)
            try:
                make(comm)
            except KeyboardInterrupt:
                pass
            else:
                raise AssertionError(f"{what} calls no function of the extension that makes something")
            finally:
                sys.setprofile(None)
        else:
            make(comm)
        assert comm.allreduce(1) == size


WAITS = {
    "Barrier": lambda comm, win: comm.Barrier(),
    "Allreduce": lambda comm, win: comm.Allreduce(np.ones(1), np.zeros(1)),
    "allreduce": lambda comm, win: comm.allreduce(1),
    "Dup": lambda comm, win: comm.Dup(),
    "Split": lambda comm, win: comm.Split(1, rank),
    "Allocate": lambda comm, win: MPI.Win.Allocate(8, comm=comm),
    "Open": lambda comm, win: MPI.File.Open(comm, "file", MPI.MODE_CREATE | MPI.MODE_RDWR),
    "Fence": lambda comm, win: win.Fence(),
    "Free": lambda comm, win: comm.Free(),
    "Win.Free": lambda comm, win: win.Free(),
}


def ended_by_reset(what):
    """A collective reset ends the call that another thread waits in, whose part in it does not show in later calls."""
    comm, other = world.Dup(), world.Dup()
    win, errors = MPI.Win.Allocate(8, comm=other), []

    def work():
        try:
            WAITS[what](comm, win)
        except MPI.Exception as error:
            errors.append(error)

    if rank == 1:
        thread = threading.Thread(target=work)
        thread.start()
        await_call(1, r"\w+")
    else:
        await_call(1, r"\w+")
    gormapy.reset()
    if rank == 1:
        thread.join(20)
        assert not thread.is_alive(), f"{what} waits after the reset"
        assert errors[0].Get_error_class() == MPI.ERR_PENDING, errors
    if what not in ("Free", "Win.Free"):
        made = comm.Split(0, -rank)
        assert made.allgather(rank) == list(range(size))[::-1]
        made.Free()
        for _ in range(3):
            assert comm.allreduce(1) == size
        comm.Free()
        win.Fence()
        win.Free()
    other.Free()


def held():
    """Return how many descriptors and mappings of windows this process has."""
    with open("/proc/self/maps") as file:
        return len(os.listdir("/proc/self/fd")), sum("window" in line for line in file)


def stopped(what, rounds):
    """A rank is stopped at some step of a call, and another one interrupted meanwhile: all end, and nothing is left."""
    make = MAKING[what] if what != "Win.Free" else None
    plan, pids, comm = random.Random(what), world.allgather(os.getpid()), world.Dup()
    armed = False

    def interrupt(*_):
        if armed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGUSR1, interrupt)
    outcomes = []
    for k in range(rounds):
        victim, later = plan.randrange(size), plan.randrange(1, size)
        target, pause = (victim + later) % size, plan.random() * 8e-4
        made = None if make else MPI.Win.Allocate(64, comm=comm)
        before = held() if make else None
        world.Barrier()
        stopper = threading.Thread(target=stop, args=(pids[target], pause, os.getpid()))
        outcome = "made"
        try:
            if rank == victim:
                armed = True
                stopper.start()
            if make:
                made = make(comm)
            else:
                made.Free()
                made = None
            armed = False
        except KeyboardInterrupt:
            armed, outcome = False, "interrupted"
        except MPI.Exception as error:
            armed, outcome = False, "failed"
            assert "given it up" in str(error), error
        if rank == victim:
            stopper.join()
        every = world.allgather(outcome)
        outcomes.append(every)
        if "failed" in every or "interrupted" in every:
            assert made is None or "interrupted" in every, (k, every)
            # Where some ranks have it and others don't, it can't be freed. The first rounds open what is needed once.
            assert "made" in every or make is None or k < 20 or held() == before, (k, every, before, held())
        elif made is not None:
            (made.Close if isinstance(made, MPI.File) else made.Free)()
        assert comm.allreduce(1) == size
    assert any("interrupted" in every for every in outcomes)
    comm.Free()


def stop(pid, pause, victim):
    """Stop a process for a while, and signal another one meanwhile."""
    end = time.perf_counter() + pause
    while time.perf_counter() < end:
        pass
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.02)
    os.kill(victim, signal.SIGUSR1)
    time.sleep(0.02)
    os.kill(pid, signal.SIGCONT)


def free_given_up(flavor):
    """A rank is interrupted in Win.Free: the other one, which has not called it, uses the window and frees it."""
    memory = np.zeros(8)
    win = {
        "Allocate": lambda: MPI.Win.Allocate(64, 8, comm=world),
        "Create": lambda: MPI.Win.Create(memory, 8, comm=world),
    }[flavor]()
    if rank == 1:
        with interrupted_in_a_wait():
            win.Free()
        raise_flag("interrupted")
        await_flag("freed")
    else:
        await_flag("interrupted")
        one, found = np.ones(1), np.zeros(1)
        win.Lock(1)
        win.Put(one, 1)
        win.Flush(1)
        win.Fetch_and_op(one, found, 1, 0, MPI.SUM)
        win.Unlock(1)
        assert found[0] == 1
        with suppress(MPI.Exception):  # over a network it says that the other rank has given it up
            win.Free()
        raise_flag("freed")
    assert world.allreduce(1) == size


def different_calls():
    """After calls that make different objects all ranks have an error, and their next calls are in step."""
    comm = world.Dup()
    for _ in range(3):
        with fails(MPI.ERR_OTHER, "make or free communicators or windows by different calls"):
            MPI.Win.Allocate(8, comm=comm) if rank == 0 else comm.Dup()
        assert comm.allreduce(1) == size
    group = comm.Get_group()
    calls = {
        "Dup": comm.Dup,
        "Split": lambda: comm.Split(0, rank),
        "Create": lambda: comm.Create(group),
    }
    for one, other in [("Dup", "Split"), ("Split", "Create"), ("Create", "Dup")]:
        with fails(MPI.ERR_OTHER, f"by different calls: rank 0 of the communicator by {one}, rank 1 by {other}"):
            calls[one if rank == 0 else other]()
        assert comm.allreduce(1) == size
    group.Free()
    comm.Free()


def blocking_and_not():
    """Dup at one rank and Idup at another one: an error where that can be seen, and no hang."""
    comm = world.Dup()
    if rank == 0:
        with fails(MPI.ERR_OTHER, "make or free communicators or windows by different calls"):
            comm.Dup()
    else:
        comm.Idup()
    gormapy.reset()


def in_several_threads():
    """Threads make and free communicators of their own at a time."""
    comms = [world.Dup() for _ in range(4)]
    failed = []

    def work(comm):
        try:
            for k in range(30):
                made = comm.Dup() if k % 2 else comm.Split(rank % 2, rank)
                total = np.zeros(1)
                made.Allreduce(np.ones(1), total)
                assert total[0] == made.size
                made.Free()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(comm,)) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    for comm in comms:
        comm.Free()
