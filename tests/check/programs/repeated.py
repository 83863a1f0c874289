"""Calls that are made again and again at one line: the checker has a shorter way for them, but for the first time."""

import os
import threading
import time

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size

TURNS, WRONG = 12, 9


def store_in_one_turn():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)  # 1: Put
        if turn == WRONG:
            mine[0] = 5.0  # 2: store
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def store_in_all_turns():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)
        win.Flush(1)
        mine[0] = turn
    win.Unlock_all()
    win.Free()


def store_behind_the_loop():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for _ in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)
        win.Flush(1)
    mine += 1
    assert mine.sum() == 8
    win.Unlock_all()
    win.Free()


def store_behind_the_last_flush():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)  # 1: Put
        if turn < TURNS - 1:
            win.Flush_all()
    if rank == 0:
        mine.fill(3)  # 2: store
    win.Unlock_all()
    win.Free()


def load_in_one_turn():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, total = np.zeros(4), 0.0
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Get(mine, 1)  # 1: Get
        if turn == WRONG:
            total += mine[0]  # 2: load
        win.Flush(1)
        total += mine[1]
    win.Unlock_all()
    win.Free()


def load_in_all_turns():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, total = np.zeros(4), 0.0
    win.Lock_all()
    for _ in range(TURNS if rank == 0 else 0):
        win.Get(mine, 1)
        win.Flush_local(1)
        total += mine.sum()
    win.Unlock_all()
    win.Free()


def two_lines_one_flush():  # check: same-origin-order n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    ones, twos = np.ones(2), np.full(2, 2.0)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(ones, 1)  # 1: Put
        if turn != WRONG:
            win.Flush(1)
        win.Put(twos, 1, 1)  # 2: Put
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def neighbours_one_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    ones, twos = np.ones(2), np.full(2, 2.0)
    win.Lock_all()
    for _ in range(TURNS if rank == 0 else 0):
        win.Put(ones, 1)
        win.Put(twos, 1, 2)
        win.Flush_local_all()
        win.Flush_all()
    win.Unlock_all()
    win.Free()


def get_into_what_a_put_sends():  # check: origin-reuse|result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(2)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)  # 1: Put
        if turn != WRONG:
            win.Flush(1)
        win.Get(mine, 1, 4)  # 2: Get
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def flush_of_another_target():  # check: origin-reuse n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(2)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)  # 1: Put
        win.Flush(2 if turn == WRONG else 1)
        mine[1] = turn  # 2: store
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def flush_of_each_target():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(2)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        for target in 1, 2:
            win.Put(mine, target, turn % 4)
        for target in 1, 2:
            win.Flush(target)
        mine[1] = turn
    win.Unlock_all()
    win.Free()


def two_ranks_in_one_turn():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Lock_all()
    for turn in range(TURNS if rank else 0):
        win.Put(mine, 0, 0 if turn == WRONG else rank)  # 1: Put, 2: Put
        win.Flush(0)
    win.Unlock_all()
    win.Free()


def own_places():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1)
    win.Lock_all()
    for _ in range(TURNS if rank else 0):
        win.Put(mine, 0, rank)
        win.Flush(0)
    win.Unlock_all()
    win.Free()


def other_buffers_at_one_line():  # check: clean n=2
    win = MPI.Win.Allocate(1 << 16, 8, comm=world)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        mine = np.full(8 << turn % 10, turn, "i8" if turn % 2 else "f8")
        win.Put(mine, 1)
        win.Flush(1)
        mine += 1
    win.Unlock_all()
    win.Free()


def long_buffer_in_one_turn():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(1 << 16, 8, comm=world)
    mine = np.ones(1 << 13)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        part = mine if turn == WRONG else mine[:4]
        win.Put(part, 1)  # 1: Put
        if turn == WRONG:
            mine[5000] = 0.0  # 2: store
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def freed_between_put_and_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(np.full(1, float(turn)), 1)
        win.Flush(1)
    world.Barrier()
    win.Unlock_all()
    win.Free()


def resized_in_one_turn():  # check: memory-gone n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)  # 2: Put
        if turn == WRONG:
            mine.resize(1 << 16, refcheck=False)  # 1: resize
        win.Flush(1)
        mine = np.ones(4)
    win.Unlock_all()
    win.Free()


def resized_behind_the_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(1 << 10)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine[-4:], 1)
        win.Flush(1)
        mine.resize(len(mine) * 2 if turn < 5 else len(mine) // 2, refcheck=False)
    assert mine[: 1 << 8].all()
    win.Unlock_all()
    win.Free()


def system_calls_behind_the_flush():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    with open(os.devnull, "wb", buffering=0) as null, open("/dev/zero", "rb", buffering=0) as zero:
        for _ in range(TURNS if rank == 0 else 0):
            win.Put(mine, 1)
            null.write(mine)
            win.Flush(1)
            assert null.write(mine) == 32
            assert zero.readinto(mine) == 32
    win.Unlock_all()
    win.Free()


def read_into_in_one_turn():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    with open("/dev/zero", "rb", buffering=0) as zero:
        for turn in range(TURNS if rank == 0 else 0):
            win.Put(mine, 1)  # 1: Put
            if turn == WRONG:
                zero.readinto(mine)  # 2: store
            win.Flush(1)
    win.Unlock_all()
    win.Free()


def in_a_forked_child():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for _ in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)
        win.Flush(1)
    child = os.fork()
    if child == 0:
        mine += 1
        os._exit(int(mine.sum() != 8))
    assert os.waitpid(child, 0)[1] == 0
    assert mine.sum() == 4
    win.Unlock_all()
    win.Free()


def other_calls_beside():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, old = np.ones(1), np.zeros(1)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)
        win.Accumulate(mine, 1, 1)
        win.Fetch_and_op(mine, old, 1, 2)
        win.Flush(1)
        assert old[0] == turn
        win.Get(old, 1, 2)
        win.Flush(1)
        assert old[0] == turn + 1
    win.Unlock_all()
    win.Free()


def fetched_in_one_turn():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, old = np.ones(1), np.zeros(1)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        win.Fetch_and_op(mine, old, 1, 2)  # 1: Fetch_and_op
        if turn == WRONG:
            print(old)  # 2: load
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def request_behind_flushes():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine, other = np.ones(1), np.ones(1)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        request = win.Rput(other, 1, 3)
        win.Put(mine, 1)
        win.Flush(1)
        mine[0] = turn
        request.Wait()
        other[0] = turn
    win.Unlock_all()
    win.Free()


def thread_in_one_turn():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()

    def change():
        time.sleep(0.05)  # so that the memory is watched when this runs
        mine[0] = 5.0  # 2: store

    for turn in range(TURNS if rank == 0 else 0):
        thread = threading.Thread(target=change)
        if turn == WRONG:
            thread.start()
        win.Put(mine, 1)  # 1: Put
        win.Flush(1)
        if turn == WRONG:
            thread.join()
    win.Unlock_all()
    win.Free()


def threads_before_and_behind():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()

    def change():
        mine[0] = 5.0

    for turn in range(TURNS if rank == 0 else 0):
        win.Put(mine, 1)
        win.Flush(1)
        if turn % 4 == 0:
            thread = threading.Thread(target=change)
            thread.start()
            thread.join()
    win.Unlock_all()
    win.Free()


def outside_of_the_epoch_in_the_end():  # check: epoch-missing n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        try:
            win.Put(mine, 1)  # 1: Put
        except MPI.Exception as error:
            print(error)
        if turn == TURNS - 2:
            win.Unlock_all()
        elif turn < TURNS - 1:
            win.Flush(1)
    if rank:
        win.Unlock_all()
    win.Free()


def beyond_the_end_in_one_turn():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    mine = np.ones(4)
    win.Lock_all()
    for turn in range(TURNS if rank == 0 else 0):
        try:
            win.Get(mine, 1, 6 if turn == WRONG else 0)  # 1: Get
        except MPI.Exception as error:
            print(error)
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def new_windows_at_one_line():  # check: origin-reuse n=2
    mine = np.ones(1)
    for turn in range(4):
        win = MPI.Win.Allocate(64, 8, comm=world)
        win.Lock_all()
        for _ in range(3):
            win.Put(mine, (rank + 1) % size, rank)  # 1: Put
            if turn == 3 and rank == 0:
                mine[0] = 2.0  # 2: store
            win.Flush((rank + 1) % size)
        win.Unlock_all()
        win.Free()
