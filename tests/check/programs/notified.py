"""Notified puts of gormapy: the wait for a notification orders what was complete when it was sent."""

import numpy as np

from gormapy import MPI, notify

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def put_notify_load():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        notify.put_notify(win, np.ones(4), 1)
    else:
        notify.win_notified(win, 0)
        assert part[:4].sum() == 4.0
    win.Unlock_all()
    win.Free()


def put_notify_load_without_wait():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        notify.put_notify(win, np.ones(4), 1)  # 1: put_notify
    else:
        print(part[0])  # 2: load
    win.Unlock_all()
    world.Barrier()
    win.Free()


def put_notify_store_of_the_origin():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, mine = np.frombuffer(win, "f8"), np.ones(4)
    win.Lock_all()
    if rank == 0:
        notify.put_notify(win, mine, 1)
        mine[:] = 7.0
    else:
        notify.win_notified(win, 0)
        assert part[3] == 1.0
    win.Unlock_all()
    win.Free()


def another_put_before_the_notification():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(4), 1, 4)  # 1: Put
        notify.put_notify(win, np.ones(1), 1, 0)
    else:
        notify.win_notified(win, 0)
        print(part[4:].sum())  # 2: load
    win.Unlock_all()
    win.Free()


def another_flushed_put_before_the_notification():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(4), 1, 4)
        win.Flush(1)
        notify.put_notify(win, np.ones(1), 1, 0)
    else:
        notify.win_notified(win, 0)
        assert part[4:].sum() == 4.0
    win.Unlock_all()
    win.Free()


def wait_for_the_other_slot():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 1:
        notify.put_notify(win, np.ones(1), 0, 1, slot=1)
    elif rank == 2:
        notify.put_notify(win, np.ones(1), 0, 2, slot=2)  # 1: put_notify
    else:
        notify.win_notified(win, 1)
        print(part[2])  # 2: load
        notify.win_notified(win, 2)
    win.Unlock_all()
    win.Free()


def wait_for_both_slots():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank > 0:
        notify.put_notify(win, np.ones(1), 0, rank, slot=rank)
    else:
        notify.win_notified(win, 1)
        notify.win_notified(win, 2)
        assert part[1:3].sum() == 2.0
    win.Unlock_all()
    win.Free()


def next_turn_without_an_answer():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    for step in range(2):
        if rank == 0:
            notify.put_notify(win, np.full(1, float(step)), 1)  # 1: put_notify
            world.recv(source=1)
        else:
            notify.win_notified(win, 0)
            world.send("it has come, and is not yet read", 0)
            print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def next_turn_after_an_answer():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    for step in range(4):
        if rank == 0:
            notify.put_notify(win, np.full(1, float(step)), 1)
            notify.win_notified(win, 1)
        else:
            notify.win_notified(win, 0)
            assert part[0] == step
            notify.put_notify(win, np.ones(1), 0, 0, slot=1)
    win.Unlock_all()
    win.Free()
