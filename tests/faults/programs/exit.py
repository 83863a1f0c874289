"""The programs of test_exit.py."""

import threading
import time

import numpy as np
from rankside import await_flag, error_of, raise_flag, rank, world

from gormapy import MPI


def sent_messages_arrive_after_the_senders_end():
    global requests  # there are some when the interpreter ends
    if rank == 0:
        world.Send(np.arange(10), dest=1, tag=1)
        world.isend("small", dest=1, tag=2)
        requests = [world.Isend(np.full(200_000, i, float), dest=1, tag=3) for i in range(3)]
    else:
        time.sleep(0.5)
        a = np.zeros(10, int)
        world.Recv(a, source=0, tag=1)
        assert (a == np.arange(10)).all()
        assert world.recv(source=0, tag=2) == "small"
        for i in range(3):
            b = np.zeros(200_000)
            world.Recv(b, source=0, tag=3)
            assert (b == i).all()


def exit_with_everything_open():
    global comms, wins, request, persistent  # open when the interpreter ends
    comms = [world.Dup() for _ in range(5)]
    wins = [MPI.Win.Allocate(1000, comm=world), MPI.Win.Create(np.zeros(10), comm=world)]
    request = world.Irecv(np.zeros(1), source=0, tag=50)
    persistent = world.Recv_init(np.zeros(1), source=0, tag=51)
    persistent.Start()
    wins[0].Lock(0, MPI.LOCK_SHARED)
    world.Barrier()


def explicit_finalize():
    world.Barrier()
    MPI.Finalize()
    assert MPI.Is_finalized()
    try:
        world.Barrier()
    except MPI.Exception as error:
        assert "finalized" in str(error).lower(), error
    else:
        raise AssertionError("a barrier after Finalize")


def finalize_while_a_thread_broadcasts():
    # Rank 0's data is published, and nobody has read it yet.
    data = np.zeros(50_000, int)
    world.Bcast(data)
    world.Barrier()
    if rank == 0:
        data[:] = 1
        errors = []
        broadcasts = threading.Thread(target=lambda: errors.append(error_of(lambda: world.Bcast(data))))
        broadcasts.start()
        time.sleep(0.01)  # in the first slice of its wait
        MPI.Finalize()
        broadcasts.join()
        assert "finalized" in str(errors[0]), errors
        data[:] = 2
        raise_flag("changed")
        await_flag("read")
    else:
        await_flag("changed")
        try:
            world.Bcast(data)
        except MPI.Exception:
            pass
        else:
            assert (data == 1).all(), data
        raise_flag("read")
