"""The programs of test_threads.py."""

import os
import sys
import threading
import time

import numpy as np
from rankside import rank, stamp, world

from gormapy import MPI


def threads_on_different_communicators():
    comms = [world.Dup() for _ in range(2)]
    failures = []

    def work(k):
        try:
            comm, other = comms[k], 1 - rank
            a = np.zeros(4)
            for i in range(300):
                comm.Sendrecv(np.full(4, i + k, float), other, k, a, other, k)
                assert (a == i + k).all()
                assert comm.allreduce(k) == 2 * k
                comm.Barrier()
                assert comm.bcast((i, k) if rank == i % 2 else None, root=i % 2) == (i, k)
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def threads_on_one_communicator_by_tag():
    failures = []

    def work(k):
        try:
            for i in range(200):
                if rank == 0:
                    world.send((k, i), dest=1, tag=k)
                    assert world.recv(source=1, tag=k) == (k, i, "back")
                else:
                    world.send((*world.recv(source=0, tag=k), "back"), dest=0, tag=k)
                n = 30_000
                a = np.zeros(n)
                if rank == 0:
                    world.Send(np.full(n, k, float), dest=1, tag=10 + k)
                else:
                    world.Recv(a, source=0, tag=10 + k)
                    assert (a == k).all()
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def a_thread_that_sends_all_the_time_lets_another_one_receive():
    """Short sends give the interpreter's lock up where others may want it: this one is taken from nobody."""
    comm, received, n = MPI.COMM_SELF.Dup(), [], 50
    interval = sys.getswitchinterval()

    def receive():
        a = np.zeros(1)
        for _ in range(n):
            comm.Recv(a, 0)
            received.append(a[0])

    receiver = threading.Thread(target=receive, daemon=True)  # if it gets nothing, it waits for ever
    sys.setswitchinterval(1000)
    try:
        receiver.start()
        end, sent, a = time.monotonic() + 30, 0, np.zeros(1)
        while len(received) < n and time.monotonic() < end:
            a[0] = sent
            comm.Send(a, 0)
            sent += 1
        assert received == list(range(n)), received
    finally:
        sys.setswitchinterval(interval)
    receiver.join()
    for _ in range(sent - n):
        comm.Recv(a, 0)


def sends_of_the_only_thread():
    """All ranks but the last send that one more short messages than there is room for while it sleeps."""
    assert threading.active_count() == 1
    last, n = world.size - 1, 400
    sizes = [(0, 1, 100, 2000, 2048)[i % 5] for i in range(n)]
    if rank != last or last == 0:
        for i, size in enumerate(sizes):
            world.Send(np.full(size, i, float), last, i)
            world.send((i, "an object"), last, n + i)
    if rank == last:
        time.sleep(0.5)
        for i, size in enumerate(sizes):
            for source in range(max(last, 1)):
                got = np.zeros(2048)
                world.Recv(got, source, i)
                assert (got[:size] == i).all() and not got[size:].any(), (source, i)
                assert world.recv(source=source, tag=n + i) == (i, "an object")
    world.Send(np.zeros(3), MPI.PROC_NULL)
    for wrong in (world.size, -7):
        try:
            world.Send(np.zeros(3), wrong)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_RANK, error
        else:
            raise AssertionError(f"a message went to rank {wrong}")


def threads_on_different_windows():
    wins = [MPI.Win.Allocate(8, 8, comm=world) for _ in range(3)]
    for win in wins:
        np.frombuffer(win.tomemory(), "i8")[0] = 0
    world.Barrier()
    failures = []

    def work(win):
        try:
            one, old = np.ones(1, "i8"), np.zeros(1, "i8")
            for _i in range(300):
                win.Lock(0)
                win.Fetch_and_op(one, old, 0)
                win.Unlock(0)
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(win,)) for win in wins]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    world.Barrier()
    if rank == 0:
        for win in wins:
            assert np.frombuffer(win.tomemory(), "i8")[0] == 600
    world.Barrier()


def thread_that_waits_leaves_the_others_the_interpreter():
    got = []
    t = threading.Thread(target=lambda: got.append(world.recv(source=1 - rank)))
    t.start()
    begun, turns = time.monotonic(), 0
    while turns < 50:
        assert time.monotonic() - begun < 20, turns
        turns += 1
        time.sleep(0.001)
    world.send(rank, dest=1 - rank)
    t.join()
    assert got == [1 - rank]


def first_use_from_another_thread():
    done = []

    def work():
        from gormapy import MPI

        done.append(MPI.COMM_WORLD.allreduce(1))

    t = threading.Thread(target=work)
    t.start()
    t.join()
    assert done == [2]


def busy():
    while True:
        MPI.COMM_SELF.allreduce(1)


# What a thread does, and whether it is a daemon.
EXITS = {
    "daemon-recv": (lambda: world.recv(source=1 - rank, tag=99), True),
    "daemon-barrier": (lambda: other.Barrier() if rank == 0 else world.recv(tag=99), True),
    "daemon-lock": (lambda: win.Lock(0), True),
    "daemon-busy": (busy, True),
    "other-recv": (lambda: world.recv(source=1 - rank, tag=98), False),  # Python waits for it
}


def thread_in_a_call_does_not_hang_the_exit(case):
    global other, win  # there when the interpreter ends
    call, daemon = EXITS[case]
    other = world.Dup()
    win = MPI.Win.Allocate(8, comm=world)
    if rank == 0:
        win.Lock(0)
    world.Barrier()

    def work():
        try:
            call()
        except MPI.Exception as error:
            # Python aborts a process whose daemon thread is inside of print() when it exits.
            os.write(1, f"ended by {error}\n".encode())

    if case != "daemon-lock" or rank != 0:
        threading.Thread(target=work, daemon=daemon).start()
    if case == "other-recv":
        threading.Timer(0.5, world.send, (rank, 1 - rank, 98)).start()
    time.sleep(0.3)
    stamp("leaving" + str(rank))
