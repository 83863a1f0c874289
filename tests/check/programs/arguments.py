"""Arguments: ranks, ranges, types, operations, overlap."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


# from: MPI-CorrBench ArgError-MPIPut-rank
def rank_beyond_the_last():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    try:
        win.Put(np.ones(1), size)  # 1: Put
    except MPI.Exception as error:
        print(error)
    win.Fence()
    win.Free()


def no_rank_at_all():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    win.Put(np.ones(1), rank + 1 if rank + 1 < size else MPI.PROC_NULL)
    win.Fence()
    win.Free()


def window_of_one_rank():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8)
    win.Fence()
    try:
        win.Put(np.ones(1), 1)  # 1: Put
    except MPI.Exception as error:
        print(error)
    win.Fence()
    win.Free()


# from: MPI-CorrBench ArgError-MPIPut-InvalidAccess
def beyond_the_end():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    try:
        win.Put(np.ones(2), 1 - rank, 7)  # 1: Put
    except MPI.Exception as error:
        print(error)
    win.Fence()
    win.Free()


def up_to_the_end():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    win.Put(np.ones(2), 1 - rank, 6)
    win.Put(np.ones(0), 1 - rank, 8)
    win.Fence()
    win.Free()


# from: MPI-CorrBench ArgError-MPIGet-invalidAccess
def get_beyond_the_end():  # check: bad-argument n=2 raises
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(9)
    win.Lock_all()
    win.Get(got, 1 - rank)  # 1: Get
    win.Unlock_all()
    win.Free()


def before_the_begin():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    try:
        win.Accumulate(np.ones(1), 1 - rank, -1)  # 1: Accumulate
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    win.Free()


def other_size_on_the_other_rank():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64 if rank == 0 else 8, 8, comm=world)
    win.Lock_all()
    if rank == 0:
        try:
            win.Put(np.ones(8), 1)  # 1: Put
        except MPI.Exception as error:
            print(error)
    win.Unlock_all()
    win.Free()


def unit_of_the_other_rank():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8 if rank == 0 else 1, comm=world)
    win.Fence()
    win.Put(np.ones(1), 1 - rank, 7 if rank == 1 else 56)
    win.Fence()
    assert np.frombuffer(win, "f8")[7] == 1.0
    win.Free()


# from: MPI-CorrBench ArgError-MPIPut-SizeNotMatching
def more_at_the_target_than_at_the_origin():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    try:
        win.Put([np.ones(2), 2, MPI.DOUBLE], 1 - rank, (0, 4, MPI.DOUBLE))  # 1: Put
    except MPI.Exception as error:
        print(error)
    win.Fence()
    win.Free()


# from: MPI-CorrBench ArgMismatch-MPIPut-type
def types_that_do_not_match():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    win.Put([np.ones(2), 2, MPI.DOUBLE], 1 - rank, (0, 4, MPI.INT))  # 1: Put
    win.Fence()
    win.Free()


def get_of_another_type():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    got = np.zeros(4, "i4")
    win.Fence()
    win.Get([got, 4, MPI.INT], 1 - rank, (0, 4, MPI.FLOAT))  # 1: Get
    win.Fence()
    win.Free()


def types_that_match_in_another_shape():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    pairs = MPI.DOUBLE.Create_vector(2, 2, 4).Commit()
    win.Fence()
    win.Put([np.ones(4), 4, MPI.DOUBLE], 1 - rank, (0, 1, pairs))
    win.Fence()
    pairs.Free()
    win.Free()


def target_blocks_that_overlap():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    blocks = MPI.DOUBLE.Create_indexed([2, 2], [0, 1]).Commit()
    win.Fence()
    win.Put([np.ones(4), 4, MPI.DOUBLE], 1 - rank, (0, 1, blocks))  # 1: Put
    win.Fence()
    blocks.Free()
    win.Free()


def columns_that_lie_between_each_other():  # check: clean n=2
    win = MPI.Win.Allocate(96, 8, comm=world)
    column = MPI.DOUBLE.Create_vector(4, 1, 3).Create_resized(0, 8).Commit()
    matrix, got = np.arange(12.0).reshape(4, 3), np.zeros((4, 3))
    win.Fence()
    win.Put([matrix.T.copy(), 12, MPI.DOUBLE], 1 - rank, (0, 3, column))
    win.Fence()
    win.Get([got, 3, column], 1 - rank, (0, 12, MPI.DOUBLE))
    win.Fence()
    win.Free()


def columns_that_meet():  # check: bad-argument n=2
    win = MPI.Win.Allocate(96, 8, comm=world)
    column = MPI.DOUBLE.Create_vector(3, 1, 3).Create_resized(0, 8).Commit()
    values = np.arange(12.0)
    win.Fence()
    win.Put([values, 12, MPI.DOUBLE], 1 - rank, (0, 4, column))  # 1: Put
    win.Fence()
    win.Free()


def origin_blocks_that_overlap():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    blocks = MPI.DOUBLE.Create_indexed([2, 2], [0, 1]).Commit()
    win.Fence()
    win.Put([np.ones(3), 1, blocks], 1 - rank, (0, 4, MPI.DOUBLE))
    win.Fence()
    blocks.Free()
    win.Free()


def result_blocks_that_overlap():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    blocks = MPI.DOUBLE.Create_indexed([2, 2], [0, 1]).Commit()
    win.Fence()
    win.Get([np.ones(3), 1, blocks], 1 - rank, (0, 4, MPI.DOUBLE))  # 1: Get
    win.Fence()
    blocks.Free()
    win.Free()


def result_in_the_origin():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    value = np.ones(1)
    win.Lock_all()
    win.Get_accumulate(value, value, 1 - rank)  # 1: Get_accumulate
    win.Unlock_all()
    win.Free()


def fetched_into_the_origin():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    value = np.ones(1, "i8")
    win.Lock_all()
    win.Fetch_and_op(value, value, 1 - rank)  # 1: Fetch_and_op
    win.Unlock_all()
    win.Free()


def fetched_beside_the_origin():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    values = np.ones(2, "i8")
    win.Lock_all()
    win.Fetch_and_op(values[:1], values[1:], 1 - rank)
    win.Unlock_all()
    win.Free()


def bits_of_doubles():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    try:
        win.Accumulate(np.ones(1), 1 - rank, op=MPI.BAND)  # 1: Accumulate
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    win.Free()


def operation_of_the_program():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    op = MPI.Op.Create(lambda a, b, t: None)
    win.Lock_all()
    try:
        win.Accumulate(np.ones(1), 1 - rank, op=op)  # 1: Accumulate
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    op.Free()
    win.Free()


def swapped_doubles():  # check: bad-argument n=2 raises caught
    win = MPI.Win.Allocate(64, 8, comm=world)
    new, expected, old = np.ones(1), np.zeros(1), np.zeros(1)
    win.Lock_all()
    try:
        win.Compare_and_swap(new, expected, old, 1 - rank)  # 1: Compare_and_swap
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    win.Free()


def minimum_of_places():  # check: clean n=2
    pair = np.dtype([("value", "f8"), ("place", "i4")], align=True)
    memory = np.zeros(1, pair)
    win = MPI.Win.Create(memory, pair.itemsize, comm=world)
    mine = np.array([(-1.0, rank)], pair)
    win.Fence()
    win.Accumulate([mine, 1, MPI.DOUBLE_INT], 0, (0, 1, MPI.DOUBLE_INT), op=MPI.MINLOC)
    win.Fence()
    assert rank > 0 or memory["place"][0] == 0
    win.Free()


def locked_rank_beyond_the_last():  # check: bad-argument n=2 raises
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock(size)  # 1: Lock
    win.Free()


# from: MPI-CorrBench ArgError-MPIWinCreate-dispUnit
def unit_of_no_bytes():  # check: bad-argument n=2 raises caught
    try:
        MPI.Win.Create(np.zeros(8), 0, comm=world)  # 1: Create
    except MPI.Exception as error:
        print(error)


def attached_twice():  # check: bad-argument n=2 raises caught
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)  # 2: Attach
    try:
        win.Attach(memory[4:])  # 1: Attach
    except MPI.Exception as error:
        print(error)
    win.Detach(memory)
    win.Free()


def attached_in_two_halves():  # check: clean n=2
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory[:4])
    win.Attach(memory[4:])
    win.Detach(memory[:4])
    win.Detach(memory[4:])
    win.Free()


def address_of_nothing_attached():  # check: bad-argument n=2 raises caught
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Lock_all()
    try:
        win.Put(np.ones(1), 1 - rank, addresses[1 - rank])  # 1: Put
        win.Flush(1 - rank)
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    win.Free()


def index_taken_for_an_address():  # check: bad-argument n=2 raises caught
    memory = np.zeros(8)
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    world.Barrier()
    win.Lock_all()
    try:
        win.Put(np.ones(1), 1 - rank, 3)  # 1: Put
        win.Flush(1 - rank)
    except MPI.Exception as error:
        print(error)
    win.Unlock_all()
    world.Barrier()
    win.Detach(memory)
    win.Free()


def one_window_put_into_another():  # check: clean n=2
    first, second = (MPI.Win.Allocate(64, 8, comm=world) for _ in range(2))
    first.Lock_all()
    first.Put(np.frombuffer(second, "f8"), 1 - rank)
    first.Unlock_all()
    world.Barrier()
    second.Free()
    first.Free()


def own_bytes_put_to_a_neighbour():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Fence()
    win.Put(part[:4], 1 - rank, 4)
    win.Fence()
    win.Free()


# from: MPI-CorrBench MissingCall-MPIWinCreate
def window_of_nothing():  # check: bad-argument n=2 raises caught
    win = MPI.Win(MPI.WIN_NULL)
    try:
        win.Fence()  # 1: Fence
    except MPI.Exception as error:
        print(error)


def no_operation():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Fence()
    try:
        win.Accumulate(np.ones(1), 0, 0, "sum")  # 1: Accumulate
    except TypeError as error:
        assert "expecting an operation" in str(error)
    win.Fence()
    win.Free()


def too_many_arguments():  # check: bad-argument n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    for _ in range(3 * (rank == 0)):
        try:
            win.Put(np.ones(1), 1, 0, "sum")  # 1: Put
        except TypeError as error:
            assert "positional arguments" in str(error)
    win.Unlock_all()
    win.Free()
