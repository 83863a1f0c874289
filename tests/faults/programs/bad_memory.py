"""The programs of test_bad_memory.py."""

import threading

import numpy as np
from badmemory import PAGE, faults, protected, truncated
from rankside import fails, rank, world

from gormapy import MPI
from gormapy._ext import fast


def what_is_applied_is_not_applied_again():
    one, other = np.ones(1, "i8"), np.zeros(1, "i8")
    win = MPI.Win.Allocate(8, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        faults(win.Fetch_and_op, one, protected()[:1], 1)
        win.Get(other, 1)
        win.Flush(1)
        assert other[0] in (0, 1), other
    win.Unlock_all()
    win.Free()


def threads_fault_at_once():
    one = np.ones(1, "i8")
    win = MPI.Win.Allocate(1 << 20, 8, comm=world)
    win.Lock_all()
    bad, good = protected(), np.ones(1 << 16, "i8")

    def work():
        for _ in range(300):
            faults(win.Put, bad, 0)
            win.Put(good, 0)
            faults(win.Fetch_and_op, one, bad[:1], 0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    win.Unlock_all()
    win.Free()


def tokens_of_channels():
    one = np.ones(1, "i8")
    win = MPI.Win.Allocate(2 * PAGE, 8, comm=world)
    at = MPI.Get_address(win.tomemory())
    word = fast.Word(win._h, -1, at, win, "word")
    bad = truncated()
    there = MPI.Get_address(bad)
    faults(word.put, at + 8, bad[:1], 8, 1)
    faults(word.copy_in, at + 8, bad[:1])
    faults(word.move, at + 8, there, 8, 1)
    faults(word.take, there, 8, 1)
    faults(word.take_into, at + 8, bad[:1], 1)
    assert word.load() == 0  # nothing was announced
    word.put(at + 8, one, 8, 1)
    assert word.load() == 1 and word.take(at + 8, 8, 2) == one.tobytes()
    win.Free()


def calls_that_only_copy():
    vector = MPI.INT64_T.Create_vector(2, 1, 2).Commit()
    for bad in truncated(), protected():
        good = np.zeros(PAGE // 8, "i8")
        faults(MPI.INT64_T.Pack, bad, good, 0, world)
        faults(MPI.INT64_T.Unpack, bad, 0, good, world)
        faults(MPI.INT64_T.Unpack, good, 0, bad, world)
        faults(vector.Pack, bad[:4], good, 0, world)
        faults(MPI.SUM.Reduce_local, bad, good)
        faults(MPI.SUM.Reduce_local, good, bad)
        assert not good.any()


def addresses_where_no_memory_lies():
    low, good = MPI.memory.fromaddress(8, 64), np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    for call in (
        lambda: MPI.DOUBLE.Pack(low, good, 0, world),
        lambda: MPI.DOUBLE.Pack(good, low, 0, world),
        lambda: MPI.DOUBLE.Unpack(low, 0, good, world),
        lambda: MPI.DOUBLE.Unpack(good, 0, low, world),
        lambda: MPI.SUM.Reduce_local([low, MPI.DOUBLE], good),
        lambda: MPI.SUM.Reduce_local(good, [low, MPI.DOUBLE]),
        lambda: MPI.Win.Create(low, comm=world),
        lambda: win.Attach(low),
        lambda: world.Send([low, MPI.DOUBLE], 0),
    ):
        with fails(MPI.ERR_BUFFER):
            call()
    for position in (-1, 65, 2**63 - 8):
        with fails(MPI.ERR_ARG):
            MPI.DOUBLE.Pack(good, np.zeros(64, "u1"), position, world)
        with fails(MPI.ERR_ARG):
            MPI.DOUBLE.Unpack(np.zeros(64, "u1"), position, good, world)
    nothing = MPI.memory.fromaddress(8, 0)
    assert MPI.DOUBLE.Pack(nothing, nothing, 0, world) == 0
    MPI.Win.Create(nothing, comm=world).Free()
    win.Free()
