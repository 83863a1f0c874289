"""Accumulates that are atomic to each other, and those that are not: type, place, operation."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: RMARaceBench atomic-001
def a_type_of_the_same_elements():  # check: clean n=3
    win = MPI.Win.Allocate(64, 4, comm=world)
    four = MPI.INT.Create_contiguous(4).Commit()
    values = np.arange(4, dtype="i4")
    win.Fence()
    if rank == 0:
        win.Accumulate([values, 4, MPI.INT], 1, (0, 4, MPI.INT))
    if rank == 2:
        win.Accumulate([values, 1, four], 1, (0, 1, four))
    win.Fence()
    four.Free()
    win.Free()


# from: RMARaceBench atomic-002
def a_type_of_other_elements():  # check: accumulate-mix n=3
    win = MPI.Win.Allocate(64, 4, comm=world)
    four = MPI.INT.Create_contiguous(4).Commit()
    shorts, ints = np.ones(4, "i2"), np.ones(4, "i4")
    win.Fence()
    if rank == 0:
        win.Accumulate([shorts, 4, MPI.SHORT], 1, (0, 4, MPI.SHORT))  # 1: Accumulate
    if rank == 2:
        win.Accumulate([ints, 1, four], 1, (0, 1, four))  # 2: Accumulate
    win.Fence()
    four.Free()
    win.Free()


# from: RMARaceBench atomic-003
def shifted_by_a_byte():  # check: accumulate-mix n=3
    win = MPI.Win.Allocate(64, 1, comm=world)
    values = np.ones(4, "i4")
    win.Fence()
    if rank == 0:
        win.Accumulate(values, 1, 0)  # 1: Accumulate
    if rank == 2:
        win.Accumulate(values, 1, 1)  # 2: Accumulate
    win.Fence()
    win.Free()


# from: RMARaceBench atomic-004
def shifted_by_an_element():  # check: clean n=3
    win = MPI.Win.Allocate(64, 1, comm=world)
    values = np.ones(4, "i4")
    win.Fence()
    if rank == 0:
        win.Accumulate(values, 1, 0)
    if rank == 2:
        win.Accumulate(values, 1, MPI.INT.size)
    win.Fence()
    win.Free()


# from: RMARaceBench atomic-005
def short_and_int():  # check: accumulate-mix n=3
    win = MPI.Win.Allocate(64, 1, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "i2"), 1)  # 1: Accumulate
    if rank == 2:
        win.Accumulate(np.ones(4, "i4"), 1)  # 2: Accumulate
    win.Fence()
    win.Free()


def short_beside_int():  # check: clean n=3
    win = MPI.Win.Allocate(64, 1, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "i2"), 1, 0)
    if rank == 2:
        win.Accumulate(np.ones(4, "i4"), 1, 8)
    win.Fence()
    win.Free()


# from: RMARaceBench atomic-006
def float_and_int():  # check: accumulate-mix n=3
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "f4"), 1)  # 1: Accumulate
    if rank == 2:
        win.Accumulate(np.ones(4, "i4"), 1)  # 2: Accumulate
    win.Fence()
    win.Free()


def float_then_int():  # check: clean n=3
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "f4"), 1)
    win.Fence()
    if rank == 2:
        win.Accumulate(np.ones(4, "i4"), 1)
    win.Fence()
    win.Free()


# from: RMARaceBench atomic-007
def float_and_int_of_one_origin():  # check: accumulate-mix|same-origin-order n=2
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "f4"), 1)  # 1: Accumulate
        win.Accumulate(np.ones(4, "i4"), 1)  # 2: Accumulate
    win.Fence()
    win.Free()


def float_flush_int_of_one_origin():  # check: clean n=2
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(4, "f4"), 1)
        win.Flush(1)
        win.Accumulate(np.ones(4, "i4"), 1)
    win.Unlock_all()
    win.Free()


# from: RMARaceBench atomic-008
def double_and_float():  # check: accumulate-mix n=3
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "f8"), 1)  # 1: Accumulate
    if rank == 2:
        win.Accumulate(np.ones(4, "f4"), 1)  # 2: Accumulate
    win.Fence()
    win.Free()


# from: RMARaceBench atomic-009
def int_and_int():  # check: clean n=3
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "i4"), 1)
    if rank == 2:
        win.Accumulate(np.ones(4, "i4"), 1)
    win.Fence()
    win.Free()


# from: RMARaceBench atomic-010
def int_and_int_of_one_origin():  # check: clean n=2
    win = MPI.Win.Allocate(64, 4, comm=world)
    win.Fence()
    if rank == 0:
        win.Accumulate(np.ones(4, "i4"), 1)
        win.Accumulate(np.arange(4, dtype="i4"), 1)
    win.Fence()
    win.Free()


def sum_and_product():  # check: accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1), 0, op=MPI.SUM)  # 1: Accumulate
    else:
        win.Accumulate(np.ones(1), 0, op=MPI.PROD)  # 2: Accumulate
    win.Unlock_all()
    win.Free()


def sum_then_product():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1), 0, op=MPI.SUM)
        win.Flush(0)
    world.Barrier()
    if rank == 1:
        win.Accumulate(np.ones(1), 0, op=MPI.PROD)
    win.Unlock_all()
    win.Free()


def sum_and_product_under_exclusive_locks():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock(0, MPI.LOCK_EXCLUSIVE)
    win.Accumulate(np.ones(1), 0, op=MPI.SUM if rank == 0 else MPI.PROD)
    win.Unlock(0)
    win.Free()


def sum_and_product_under_shared_locks():  # check: accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock(0, MPI.LOCK_SHARED)
    win.Accumulate(np.ones(1), 0, op=MPI.SUM if rank == 0 else MPI.PROD)  # 1: Accumulate, 2: Accumulate
    win.Unlock(0)
    win.Free()


def fetched_maximum_and_sum():  # check: accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    old = np.zeros(1, "i8")
    win.Lock_all()
    if rank == 0:
        win.Fetch_and_op(np.ones(1, "i8"), old, 1, 0, MPI.SUM)  # 1: Fetch_and_op
    else:
        win.Get_accumulate(np.ones(1, "i8"), old, 1, 0, MPI.MAX)  # 2: Get_accumulate
    win.Unlock_all()
    win.Free()


def fetched_and_added_sums():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    old = np.zeros(1, "i8")
    win.Lock_all()
    if rank == 0:
        win.Fetch_and_op(np.ones(1, "i8"), old, 1, 0, MPI.SUM)
    elif rank == 1:
        win.Get_accumulate(np.ones(1, "i8"), old, 1, 0, MPI.SUM)
    else:
        win.Accumulate(np.ones(1, "i8"), 1, 0, MPI.SUM)
    win.Unlock_all()
    win.Free()


def read_atomically_beside_sums():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    old = np.zeros(1, "i8")
    win.Lock_all()
    if rank == 0:
        win.Fetch_and_op(np.ones(1, "i8"), old, 1, 0, MPI.NO_OP)
    else:
        win.Accumulate(np.ones(1, "i8"), 1, 0, MPI.SUM)
    win.Unlock_all()
    win.Free()


def counters_of_two_widths():  # check: accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        old = np.zeros(1, "i8")
        win.Fetch_and_op(np.ones(1, "i8"), old, 1)  # 1: Fetch_and_op
    else:
        old = np.zeros(1, "i4")
        win.Fetch_and_op(np.ones(1, "i4"), old, 1)  # 2: Fetch_and_op
    win.Unlock_all()
    win.Free()


def swapped_and_added_in_two_types():  # check: accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        new, expected, old = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
        win.Compare_and_swap(new, expected, old, 1)  # 1: Compare_and_swap
    else:
        win.Accumulate(np.ones(2, "i4"), 1)  # 2: Accumulate
    win.Unlock_all()
    win.Free()


def replaced_and_added():  # check: contested accumulate-mix n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1), 0, op=MPI.REPLACE)  # 1: Accumulate
    else:
        win.Accumulate(np.ones(1), 0, op=MPI.SUM)  # 2: Accumulate
    win.Unlock_all()
    win.Free()


def replaced_by_both():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    win.Accumulate(np.full(1, float(rank)), 0, op=MPI.REPLACE)
    win.Unlock_all()
    win.Free()


def columns_of_two_types():  # check: clean n=2
    win = MPI.Win.Allocate(64, 4, comm=world)
    column = MPI.INT.Create_vector(4, 1, 2).Commit()
    other = MPI.FLOAT.Create_vector(4, 1, 2).Commit()
    win.Fence()
    if rank == 0:
        win.Accumulate([np.ones(4, "i4"), 4, MPI.INT], 1, (0, 1, column))
    else:
        win.Accumulate([np.ones(4, "f4"), 4, MPI.FLOAT], 1, (1, 1, other))
    win.Fence()
    column.Free()
    other.Free()
    win.Free()


def columns_of_two_types_that_meet():  # check: accumulate-mix n=2
    win = MPI.Win.Allocate(64, 4, comm=world)
    column = MPI.INT.Create_vector(4, 1, 2).Commit()
    other = MPI.FLOAT.Create_vector(2, 1, 3).Commit()
    win.Fence()
    if rank == 0:
        win.Accumulate([np.ones(4, "i4"), 4, MPI.INT], 1, (0, 1, column))  # 1: Accumulate
    else:
        win.Accumulate([np.ones(2, "f4"), 2, MPI.FLOAT], 1, (1, 1, other))  # 2: Accumulate
    win.Fence()
    column.Free()
    other.Free()
    win.Free()


def swapped_and_added():  # check: contested accumulate-mix n=2
    win = MPI.Win.Create(np.zeros(1, "i8"), 8, comm=world)
    win.Lock_all()
    if rank == 0:
        win.Accumulate(np.ones(1, "i8"), 0, op=MPI.SUM)  # 1: Accumulate
    else:
        old = np.zeros(1, "i8")
        win.Compare_and_swap(np.ones(1, "i8"), np.zeros(1, "i8"), old, 0)  # 2: Compare_and_swap
    win.Unlock_all()
    win.Free()
