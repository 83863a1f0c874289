"""Order by atomics: locks, tickets, flags, counters, and what they publish."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


ZERO, ONE, TWO = np.zeros(1, "i8"), np.ones(1, "i8"), np.full(1, 2)


def _window(count):
    return MPI.Win.Create(np.zeros(count, "i8"), 8, comm=world)


def _read(win, target, disp):
    value = np.zeros(1, "i8")
    win.Fetch_and_op(ZERO, value, target, disp, MPI.NO_OP)
    win.Flush(target)
    return int(value[0])


def _swap(win, new, expected, target, disp):
    old = np.zeros(1, "i8")
    win.Compare_and_swap(new, expected, old, target, disp)
    win.Flush(target)
    return int(old[0])


def spin_lock():  # check: clean n=3
    win = _window(2)
    value = np.zeros(1, "i8")
    win.Lock_all()
    while _swap(win, ONE, ZERO, 0, 0) != 0:
        pass
    win.Get(value, 0, 1)
    win.Flush(0)
    value += 1
    win.Put(value, 0, 1)
    win.Flush(0)
    _swap(win, ZERO, ONE, 0, 0)
    win.Unlock_all()
    world.Barrier()
    win.Lock(0, MPI.LOCK_SHARED)
    win.Get(value, 0, 1)
    win.Unlock(0)
    assert value[0] == size
    win.Free()


def spin_lock_released_before_the_flush():  # check: flush-missing n=2
    win = _window(2)
    win.Lock_all()
    while _swap(win, ONE, ZERO, 0, 0) != 0:
        pass
    win.Put(np.full(1, rank), 0, 1)  # 1: Put, 2: Put
    old = np.zeros(1, "i8")
    win.Compare_and_swap(ZERO, ONE, old, 0, 0)
    win.Flush(0)
    win.Unlock_all()
    win.Free()


def spin_lock_that_nobody_takes():  # check: target-conflict n=2
    win = _window(2)
    win.Lock_all()
    _read(win, 0, 0)
    win.Put(np.full(1, rank), 0, 1)  # 1: Put, 2: Put
    win.Flush(0)
    win.Unlock_all()
    win.Free()


def ticket_lock():  # check: clean n=3
    win = _window(3)
    ticket, value = np.zeros(1, "i8"), np.zeros(1, "i8")
    win.Lock_all()
    win.Fetch_and_op(ONE, ticket, 0, 0)
    win.Flush(0)
    while _read(win, 0, 1) != ticket[0]:
        pass
    win.Get(value, 0, 2)
    win.Flush(0)
    win.Put(value + 1, 0, 2)
    win.Flush(0)
    win.Accumulate(ONE, 0, 1)
    win.Flush(0)
    win.Unlock_all()
    world.Barrier()
    win.Lock(0, MPI.LOCK_SHARED)
    win.Get(value, 0, 2)
    win.Unlock(0)
    assert value[0] == size
    win.Free()


def ticket_lock_that_does_not_wait():  # check: target-conflict n=2
    win = _window(3)
    ticket = np.zeros(1, "i8")
    win.Lock_all()
    win.Fetch_and_op(ONE, ticket, 0, 0)
    win.Flush(0)
    win.Put(ticket + 10, 0, 2)  # 1: Put, 2: Put
    win.Flush(0)
    win.Unlock_all()
    win.Free()


def put_flush_flag():  # check: clean n=2
    win = _window(4)
    part = np.frombuffer(win, "i8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.arange(3), 1, 1)
        win.Flush(1)
        win.Accumulate(ONE, 1, 0)
        win.Flush(1)
    else:
        while _read(win, 1, 0) == 0:
            pass
        win.Sync()
        assert part[1:].sum() == 3
    win.Unlock_all()
    win.Free()


def put_flag_without_flush():  # check: flush-missing n=2
    win = _window(4)
    part = np.frombuffer(win, "i8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.arange(3), 1, 1)  # 1: Put
        win.Accumulate(ONE, 1, 0)
        win.Flush(1)
    else:
        while _read(win, 1, 0) == 0:
            pass
        win.Sync()
        print(part[1:].sum())  # 2: load
    win.Unlock_all()
    win.Free()


def put_flag_with_local_flush():  # check: flush-missing n=3
    win = _window(4)
    got = np.zeros(3, "i8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.arange(3), 1, 1)  # 1: Put
        win.Flush_local(1)
        win.Accumulate(ONE, 1, 0, MPI.REPLACE)
        win.Flush(1)
    if rank == 2:
        while _read(win, 1, 0) == 0:
            pass
        win.Get(got, 1, 1)  # 2: Get
    win.Unlock_all()
    win.Free()


def flag_replaced_after_a_flush():  # check: clean n=3
    win = _window(4)
    got = np.zeros(3, "i8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.arange(3), 1, 1)
        win.Flush(1)
        win.Accumulate(ONE, 1, 0, MPI.REPLACE)
        win.Flush(1)
    if rank == 2:
        while _read(win, 1, 0) == 0:
            pass
        win.Get(got, 1, 1)
        win.Flush(1)
        assert got.tolist() == [0, 1, 2]
    win.Unlock_all()
    win.Free()


def flag_set_first():  # check: local-access n=2
    win = _window(4)
    part = np.frombuffer(win, "i8")
    win.Lock_all()
    if rank == 0:
        win.Accumulate(ONE, 1, 0)
        win.Flush(1)
        win.Put(np.arange(3), 1, 1)  # 1: Put
        win.Flush(1)
    else:
        while _read(win, 1, 0) == 0:
            pass
        win.Sync()
        print(part[1:].sum())  # 2: load
    win.Unlock_all()
    win.Free()


def flag_read_without_a_loop_of_atomics():  # check: contested local-access n=2
    win = _window(1)
    part = np.frombuffer(win, "i8")
    win.Lock_all()
    if rank == 0:
        win.Accumulate(ONE, 1, 0)  # 1: Accumulate
        win.Flush(1)
    else:
        while part[0] == 0:  # 2: load
            win.Sync()
    win.Unlock_all()
    win.Free()


def flag_put_and_read_atomically():  # check: target-conflict n=2
    win = _window(1)
    win.Lock_all()
    if rank == 0:
        win.Put(ONE, 1)  # 1: Put
        win.Flush(1)
    else:
        old = np.zeros(1, "i8")
        win.Fetch_and_op(ZERO, old, 1, 0, MPI.NO_OP)  # 2: Fetch_and_op
        win.Flush(1)
    win.Unlock_all()
    win.Free()


def work_by_a_counter():  # check: clean n=3
    win = _window(13)
    ticket = np.zeros(1, "i8")
    win.Lock_all()
    while True:
        win.Fetch_and_op(ONE, ticket, 0, 0)
        win.Flush(0)
        task = int(ticket[0])
        if task >= 12:
            break
        win.Put(np.array([task * task]), 0, 1 + task)
    win.Unlock_all()
    world.Barrier()
    assert rank > 0 or np.frombuffer(win, "i8")[1:].tolist() == [t * t for t in range(12)]
    win.Free()


def work_by_a_counter_got_and_put():  # check: target-conflict n=2
    win = _window(1)
    ticket = np.zeros(1, "i8")
    win.Lock_all()
    win.Get(ticket, 0)  # 1: Get
    win.Flush(0)
    ticket += 1
    win.Put(ticket, 0)  # 1: Put, 2: Put
    win.Unlock_all()
    win.Free()


def work_by_a_counter_in_overlapping_slots():  # check: target-conflict n=2
    win = _window(14)
    ticket = np.zeros(1, "i8")
    win.Lock_all()
    win.Fetch_and_op(ONE, ticket, 0, 0)
    win.Flush(0)
    task = int(ticket[0])
    win.Put(np.full(2, rank), 0, 1 + task)  # 1: Put, 2: Put
    win.Unlock_all()
    win.Free()


def tasks_claimed_by_swaps():  # check: clean n=3
    win = _window(8)
    win.Lock_all()
    for task in range(4):
        if _swap(win, ONE, ZERO, 0, task) == 0:
            win.Put(np.full(1, rank + 1), 0, 4 + task)
    win.Unlock_all()
    world.Barrier()
    assert rank > 0 or np.frombuffer(win, "i8")[4:].all()
    win.Free()


def flag_there_and_back():  # check: clean n=2
    win = _window(3)
    value = np.zeros(1, "i8")
    win.Lock_all()
    for turn in range(1, 4):
        if rank == 0:
            win.Put(np.full(1, turn), 1, 2)
            win.Flush(1)
            win.Accumulate(ONE, 1, 0)
            win.Flush(1)
            while _read(win, 1, 1) < turn:
                pass
        else:
            while _read(win, 1, 0) < turn:
                pass
            win.Get(value, 1, 2)
            win.Flush(1)
            assert value[0] == turn
            win.Accumulate(ONE, 1, 1)
            win.Flush(1)
    win.Unlock_all()
    win.Free()


def flag_there_and_not_back():  # check: target-conflict n=2
    win = _window(3)
    value = np.zeros(1, "i8")
    win.Lock_all()
    for turn in range(1, 3):
        if rank == 0:
            win.Put(np.full(1, turn), 1, 2)  # 1: Put
            win.Flush(1)
            win.Accumulate(ONE, 1, 0)
            win.Flush(1)
            world.recv(source=1)
        else:
            while _read(win, 1, 0) < turn:
                pass
            world.send("seen, not yet read", 0)
            win.Get(value, 1, 2)  # 2: Get
            win.Flush(1)
    win.Unlock_all()
    win.Free()


def flag_passed_on_by_a_third():  # check: clean n=3
    win = _window(3)
    got = np.zeros(1, "i8")
    win.Lock_all()
    if rank == 0:
        win.Put(TWO, 0, 2)
        win.Flush(0)
        win.Accumulate(ONE, 0, 0)
        win.Flush(0)
    if rank == 1:
        while _read(win, 0, 0) == 0:
            pass
        win.Accumulate(ONE, 0, 1)
        win.Flush(0)
    if rank == 2:
        while _read(win, 0, 1) == 0:
            pass
        win.Get(got, 0, 2)
        win.Flush(0)
        assert got[0] == 2
    win.Unlock_all()
    win.Free()


def flag_of_another_window():  # check: clean n=2
    data, flags = _window(4), _window(1)
    got = np.zeros(4, "i8")
    data.Lock_all()
    flags.Lock_all()
    if rank == 0:
        data.Put(np.arange(4), 0)
        data.Flush(0)
        flags.Accumulate(ONE, 0)
        flags.Flush(0)
    else:
        while _read(flags, 0, 0) == 0:
            pass
        data.Get(got, 0)
        data.Flush(0)
        assert got.sum() == 6
    flags.Unlock_all()
    data.Unlock_all()
    flags.Free()
    data.Free()


def flag_of_another_window_flushed_alone():  # check: flush-missing n=2
    data, flags = _window(4), _window(1)
    got = np.zeros(4, "i8")
    data.Lock_all()
    flags.Lock_all()
    if rank == 0:
        data.Put(np.arange(4), 0)  # 1: Put
        flags.Accumulate(ONE, 0)
        flags.Flush(0)
    else:
        while _read(flags, 0, 0) == 0:
            pass
        data.Get(got, 0)  # 2: Get
        data.Flush(0)
    flags.Unlock_all()
    data.Unlock_all()
    flags.Free()
    data.Free()
