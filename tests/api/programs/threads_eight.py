"""The programs of test_threads.py."""

import threading
from functools import reduce
from itertools import chain

import numpy as np
from rankside import rank, size, world

from gormapy import MPI

left, right = (rank - 1) % size, (rank + 1) % size
comms = [world.Dup() for _ in range(8)]
wins = [MPI.Win.Allocate(8 * (size + 1), 8, comm=world) for _ in range(8)]
for win in wins:
    np.frombuffer(win.tomemory())[:] = 0
world.Barrier()
failures, sums = [], [0] * 8


def data(k, i, r, n):
    # what rank r sends in turn i of thread k
    return np.arange(n) * 3.0 + k + 10 * i + 1000 * r


def send_recv(k, comm, win):
    for i in range(TURNS):
        n = (1, 700, 40_000)[i % 3]
        got = np.zeros(n)
        if rank % 2:
            comm.Recv(got, left, k)
            comm.Send(data(k, i, rank, n), right, k)
        else:
            comm.Send(data(k, i, rank, n), right, k)
            comm.Recv(got, left, k)
        assert (got == data(k, i, left, n)).all(), (i, got)
        sums[k] += got.sum()


def wait(k, comm, win):
    for i in range(TURNS):
        n = (2, 5000)[i % 2]
        got = [np.zeros(n) for _ in range(3)]
        requests = [comm.Irecv(part, left, j) for j, part in enumerate(got)]
        requests += [comm.Isend(data(k, i + j, rank, n), right, j) for j in range(3)]
        for request in requests:
            request.Wait()
        for j, part in enumerate(got):
            assert (part == data(k, i + j, left, n)).all(), (i, j, part)
            sums[k] += part.sum()


def put(k, comm, win):
    mine = np.frombuffer(win.tomemory())
    for i in range(TURNS):
        win.Fence()
        win.Put(np.full(1, 7.0 * i + rank), right, rank)
        win.Fence()
        assert mine[left] == 7 * i + left, (i, mine)
        sums[k] += mine[left]
    win.Fence()


def put_locked(k, comm, win):
    got = np.zeros(1)
    for i in range(TURNS):
        win.Lock(right, MPI.LOCK_SHARED)
        win.Put(np.full(1, 5.0 * i + rank), right, rank)
        win.Flush(right)
        win.Get(got, right, rank)
        win.Unlock(right)
        assert got[0] == 5 * i + rank, (i, got)
        sums[k] += got[0]


def fetch_and_op(k, comm, win):
    one, old, tickets = np.ones(1), np.zeros(1), []
    for _i in range(TURNS):
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(one, old, 0, size)
        win.Unlock(0)
        tickets.append(int(old[0]))
    everyone = comm.allgather(tickets)
    assert sorted(chain.from_iterable(everyone)) == list(range(TURNS * size)), everyone
    sums[k] = sum(tickets)


def accumulate(k, comm, win):
    for _i in range(TURNS):
        win.Lock(0)
        win.Accumulate(np.full(1, 2.0), 0)
        win.Unlock(0)
    comm.Barrier()
    win.Lock(0)
    got = np.zeros(1)
    win.Get(got, 0)
    win.Unlock(0)
    assert got[0] == 2 * TURNS * size, got
    sums[k] = got[0]


def collectives(k, comm, win):
    for i in range(TURNS):
        total = np.zeros(300)
        comm.Allreduce(data(k, i, rank, 300), total)
        assert (total == reduce(np.add, [data(k, i, r, 300) for r in range(size)])).all(), i
        root = data(k, i, i % size, 9000) if rank == i % size else np.zeros(9000)
        comm.Bcast(root, i % size)
        assert (root == data(k, i, i % size, 9000)).all(), i
        sums[k] += total.sum()


def objects(k, comm, win):
    for i in range(TURNS):
        got = comm.sendrecv({"from": rank, "turn": i, "more": "x" * (i * 100)}, right, source=left)
        assert (got["from"], got["turn"], len(got["more"])) == (left, i, i * 100), got
        comm.Barrier()
        sums[k] += i


WORK = [send_recv, wait, put, put_locked, fetch_and_op, accumulate, collectives, objects]


def run(k, work):
    try:
        work(k, comms[k], wins[k])
    except BaseException as error:
        failures.append((work.__name__, repr(error)))
        raise


def all_at_once():
    threads = [threading.Thread(target=run, args=(k, work)) for k, work in enumerate(WORK)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def eight_threads_in_different_calls_at_once():
    global sums
    global TURNS
    TURNS = 40
    all_at_once()
    together = sums
    # the same work, one after the other, has the same sums; tickets are drawn in another order
    sums = [0] * 8
    for win in wins:
        win.Fence()
        np.frombuffer(win.tomemory())[:] = 0
        win.Fence()
    for k, work in enumerate(WORK):
        work(k, comms[k], wins[k])
    together[4], sums[4] = (world.allreduce(s[4]) for s in (together, sums))
    assert together == sums, (together, sums)
    assert not world.Iprobe()


def threads_that_wait_block_no_others():
    global TURNS, WORK, comms, wins
    TURNS = 40
    calls = {
        "Recv": lambda: comms[0].Recv(np.zeros(1), right),
        "Wait": lambda: comms[1].Irecv(np.zeros(1), right).Wait(),
        "Probe": lambda: comms[2].Probe(right),
        "Barrier": comms[3].Barrier,
        "Fence": wins[4].Fence,
        "Lock": lambda: wins[5].Lock(0),
    }
    waiting, told = list(calls), []

    def block(k):
        calls[waiting[k]]()
        told.append(waiting[k])

    if rank == 1:
        wins[5].Lock(0)
    world.Barrier()
    threads = [threading.Thread(target=block, args=(k,)) for k in range(6) if rank == 0]
    for t in threads:
        t.start()
    comms += [world.Dup() for _ in WORK]
    wins += [MPI.Win.Allocate(8 * (size + 1), 8, comm=world) for _ in WORK]
    for win in wins[8:]:
        np.frombuffer(win.tomemory())[:] = 0
    world.Barrier()
    WORK = [lambda k, comm, win, work=work: work(k, comms[8 + k], wins[8 + k]) for work in WORK]
    all_at_once()
    assert not told, told
    world.Barrier()
    if rank == 1:
        for k in range(3):
            comms[k].Send(np.ones(1), left)
        comms[3].Barrier()
        wins[4].Fence()
        wins[5].Unlock(0)
    for t in threads:
        t.join()
    if rank == 0:
        assert sorted(told) == sorted(waiting), told
        comms[2].Recv(np.zeros(1), right)
        wins[5].Unlock(0)
