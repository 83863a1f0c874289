"""The programs of test_interrupt.py."""

import gc
import os
import signal
import socket
import threading
import time
from collections import Counter

import numpy as np
from rankside import (
    await_call,
    await_flag,
    await_watchers,
    interrupted,
    raise_flag,
    rank,
    reset,
    signal_after,
    size,
    stamp,
    until,
    world,
)

from gormapy import MPI


def all_ranks_interrupted_in_different_calls():
    a = np.zeros(1)
    other = world.Dup()  # two collectives on one communicator would be an error
    calls = [
        lambda: world.Recv(a, source=3, tag=1),
        world.Barrier,
        lambda: other.Bcast(a, root=(rank + 1) % size),
        lambda: world.Ssend(a, dest=0, tag=2),
    ]
    for turn in range(3):
        with interrupted():
            calls[(rank + turn) % 4]()
        reset()
        assert world.allreduce(1) == 4


def long_collectives_are_interrupted_and_put_back():
    a, b = np.ones(100_000), np.zeros(100_000)
    other = world.Dup()
    for turn in range(3):
        with interrupted():
            if rank == turn:  # does not take part
                other.Barrier()
            else:
                world.Allreduce(a, b)
        reset()
        world.Allreduce(a, b)
        assert (b == size).all()
        world.Bcast(b, turn)


def whole_job_is_interrupted_and_put_back_again_and_again():
    one, four, into = np.ones(1), np.zeros(4), np.zeros(4)

    def compute(win):
        while True:
            sum(range(1000))

    def round_the_lock(win):
        win.Lock((rank + 1) % size)  # everybody holds one, and waits for another
        world.Barrier()
        win.Lock((rank + 2) % size)

    states = {
        "recv": lambda win: world.Recv(four, source=1),
        "Barrier": lambda win: world.Barrier(),
        "Fence": lambda win: win.Fence(),
        "Lock": lambda win: win.Lock(1),
        "Start": lambda win: win.Start(everybody.Incl([1])),
        "Win.Wait": lambda win: (win.Post(everybody), win.Wait()),
        "puts": lambda win: (kept.Fence(), kept.Put(one, 1), world.Recv(four, source=1)),
        "locks": round_the_lock,
        "Free": lambda win: win.Free(),
        "Allreduce": lambda win: world.Allreduce(four, into),
        "Bcast": lambda win: world.Bcast(four, root=1),
        "Alltoall": lambda win: world.alltoall([bytes(100_000)] * size),
        "Split": lambda win: world.Split(0),
        "Allocate": lambda win: MPI.Win.Allocate(64, comm=world),
        "computing": compute,
    }

    def descriptors():
        names = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
        return Counter(os.readlink(name) for name in names if os.path.islink(name))

    everybody = world.Get_group()
    memory = np.zeros(8)
    kept = MPI.Win.Create(memory, 8, comm=world)

    def check(turn):
        kept.Fence()
        kept.Put(np.full(1, rank + turn, float), (rank + 1) % size, 3)
        kept.Fence(MPI.MODE_NOSUCCEED)
        assert memory[3] == (rank - 1) % size + turn
        total = np.zeros(1)
        world.Allreduce(one, total)
        assert total[0] == size
        assert world.allgather((turn, rank)) == [(turn, r) for r in range(size)]
        win = MPI.Win.Allocate(8, 8, comm=world)
        win.Fence()
        win.Put(np.full(1, rank + turn, float), (rank + 1) % size)
        win.Fence()
        assert np.frombuffer(win.tomemory())[0] == (rank - 1) % size + turn
        world.Barrier()
        win.Lock(0)
        win.Accumulate(one, 0)
        win.Unlock(0)
        win.Free()

    check(-1)
    await_watchers()
    before = descriptors()
    for turn, (name, state) in enumerate(states.items()):
        win = MPI.Win.Allocate(8, 8, comm=world)
        if name == "Lock" and rank == 1:
            win.Lock(1)
        world.Barrier()
        with interrupted():
            if rank == 1 and name != "locks":
                world.recv(source=1, tag=99)
            state(win)
        reset()
        check(turn)
        if name != "Free":
            win.Free()
    more = descriptors() - before
    assert not more, more


def handler_that_does_not_raise_lets_the_call_go_on():
    seen = []

    def handler(*_):
        seen.append(True)
        raise_flag("seen")

    signal.signal(signal.SIGUSR1, handler)
    a = np.zeros(1)
    world.Barrier()
    if rank == 1:
        sender = signal_after(0.2, "USR1")
        world.Recv(a, source=0)
        sender.wait()
        assert len(seen) == 1, seen
        assert a[0] == 3
    else:
        await_flag("seen")
        world.Send(np.full(1, 3.0), dest=1)


def handler_asks_for_what_its_call_waits_for():
    """A handler tests the requests that Waitall waits for: those that are complete, and those that are not."""
    into = np.zeros(3)
    requests = [world.Irecv(into[i : i + 1], 0, i) for i in range(3)] if rank == 1 else []
    seen = []

    def handler(*_):
        try:
            seen.extend(request.Test() for request in requests)
        finally:
            raise_flag("seen")

    signal.signal(signal.SIGUSR1, handler)
    if rank == 1:
        await_flag("sent")
        sender = signal_after(0.2, "USR1")
        MPI.Request.Waitall(requests)
        sender.wait()
        assert seen == [True, False, True], seen
        assert not any(requests)
        assert into.tolist() == [1, 2, 3]
    else:
        world.Send(np.full(1, 1.0), 1, 0)
        world.Send(np.full(1, 3.0), 1, 2)
        raise_flag("sent")
        await_flag("seen")
        world.Send(np.full(1, 2.0), 1, 1)


def receive_that_was_interrupted_takes_no_later_message():
    a = np.zeros(1)
    if rank == 1:
        with interrupted():
            world.Recv(a, source=0)
        raise_flag("interrupted")
        b = np.zeros(1)
        world.Recv(b, source=0)
        assert b[0] == 5 and a[0] == 0, (a, b)
    else:
        await_flag("interrupted")
        world.Send(np.full(1, 5.0), dest=1)


def _state(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def _let_connections_hold(size):
    """Set the size of the buffers of this process's connections, in bytes."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(fd))) as s:
                if s.type == socket.SOCK_STREAM and s.family in (socket.AF_INET, socket.AF_INET6):
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * size)
        except OSError:
            pass  # it is no socket


def message_of_which_a_part_has_come_is_left_to_the_next_receive():
    n = 130_000
    other = world.sendrecv(os.getpid(), dest=1 - rank, source=1 - rank)
    _let_connections_hold(8192)  # less than a message
    world.Barrier()
    if rank == 0:
        await_call(1, "Recv")
        os.kill(other, signal.SIGSTOP)
        until(lambda: _state(other) == "T", lambda: "the other rank does not stop")
        request = world.Isend(np.full(n, 7, np.uint8), dest=1)
        child = os.fork()
        if child == 0:  # this process sends nothing more until the other one lets it go on
            while _state(os.getppid()) != "T":
                time.sleep(0.01)
            os.kill(other, signal.SIGCONT)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSTOP)
        _let_connections_hold(1 << 20)
        request.Wait()
        os.waitpid(child, 0)
        world.Send(np.full(n, 8, np.uint8), dest=1)
        return
    a = np.zeros(n, np.uint8)

    def interrupt_it():
        """Interrupt the receive when a part has come, and nothing more comes."""
        seen, last = 0, 0
        while seen < 20:
            time.sleep(0.01)
            now = np.count_nonzero(a)
            seen, last = seen + 1 if now and now == last else 0, now
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt_it)
    watcher.start()
    try:
        world.Recv(a, source=0)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("all of the message came at once")
    watcher.join()
    part = np.count_nonzero(a)
    assert 0 < part < n and (a[:part] == 7).all(), part
    _let_connections_hold(1 << 20)
    os.kill(other, signal.SIGCONT)
    for value in (7, 8):
        b = np.zeros(n, np.uint8)
        world.Recv(b, source=0)
        assert (b == value).all(), (value, np.unique(b))
    assert np.count_nonzero(a) == part


def interrupted_send_delivers_its_data_or_nothing():
    n = 1_000_000
    if rank == 1:
        a = np.full(n, 1.0)
        with interrupted():
            world.Send(a, dest=0, tag=3)
        raise_flag("interrupted")
        del a
        gc.collect()
        world.Send(np.full(n, 2.0), dest=0, tag=3)
    else:
        await_flag("interrupted")
        got = []
        while not got or got[-1][0] != 2.0:
            message = np.zeros(n)
            world.Recv(message, source=1, tag=3)
            got.append(message)
        values = [np.unique(message).tolist() for message in got]
        # what was sent before the interrupt comes whole, or not at all
        assert values in ([[2.0]], [[1.0], [2.0]]), values
        time.sleep(0.2)
        assert not world.Iprobe(), "the data of the second message was delivered for the first"


def singleton():
    a = np.zeros(1)
    for call in (
        lambda: world.Recv(a, source=0),
        world.Probe,
        world.recv,
        lambda: world.Irecv(a, tag=1).Wait(),
        lambda: world.Ssend(a, dest=0),
    ):
        with interrupted():
            call()
    assert world.allreduce(1) == 1
    stamp("leaving")


def uncaught_interrupt_ends_the_job():
    world.Barrier()
    if rank == 1:
        signal_after(0.2)
    world.recv(source=(rank + 1) % size)


def a_fence_that_one_rank_gives_up_and_the_other_passes():
    mine = np.zeros(4)
    win = MPI.Win.Create(mine, 8, comm=world)
    pids = world.allgather(os.getpid())
    if rank == 0:
        try:
            win.Fence()
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("the fence was passed alone")
        raise_flag("given up")
    else:
        await_call(0, "Win.Fence")
        os.kill(pids[0], signal.SIGINT)
        await_flag("given up")
        win.Fence()  # rank 0 had come there
    other = 1 - rank
    win.Lock(other)
    win.Put(np.full(1, rank + 1.0), other, 2)
    win.Flush(other)
    got = np.zeros(1)
    win.Get(got, other, 2)
    win.Unlock(other)
    assert got[0] == rank + 1
    world.Barrier()


def requests_of_the_time_before_a_reset_end():
    class Over(BaseException):
        pass

    def over(number, frame):
        raise Over

    signal.signal(signal.SIGALRM, over)
    a, b = np.zeros(1 << 14), np.zeros(1 << 14)
    for k in range(200):
        world.Barrier()
        request = None
        if rank == 0:
            request = world.Iallreduce(a, b)
        else:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.000005 * (1 + k % 60))
                world.Iallreduce(a, b).Wait()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Over:
                pass
        time.sleep(0.001)
        reset()
        if rank == 0:
            end = time.monotonic() + 25
            try:
                while not request.Test():
                    assert time.monotonic() < end, f"trial {k} does not end"
            except MPI.Exception as e:
                assert e.Get_error_class() == MPI.ERR_PENDING, e
