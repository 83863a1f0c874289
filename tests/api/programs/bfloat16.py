"""The programs of test_bfloat16.py."""

import ctypes

import numpy as np
import pytest
from ml_dtypes import bfloat16
from rankside import fails, rank, world

from gormapy import MPI


def arrays_of_ml_dtypes():
    assert MPI.BFLOAT16_T and MPI.BFLOAT16_T.name == "MPI_BFLOAT16_T"
    assert (MPI.BFLOAT16_T.size, MPI.BFLOAT16_T.extent, MPI.BFLOAT16_T.typestr) == (2, 2, "V2")
    data, into = np.arange(100).astype(bfloat16) + bfloat16(rank), np.zeros(100, bfloat16)
    world.Sendrecv(data, 1 - rank, 0, into, 1 - rank, 0)
    assert (into == np.arange(100) + 1 - rank).all()
    world.Sendrecv([data, 10, MPI.BFLOAT16_T], 1 - rank, 0, [into, MPI.BFLOAT16_T], 1 - rank, 0)
    everything = np.zeros((2, 100), bfloat16)
    world.Allgather(data, everything)
    assert (everything == np.add.outer([0, 1], np.arange(100))).all()
    data.flags.writeable = False
    world.Bcast(everything)
    with pytest.raises(BufferError, match="is read-only"):
        MPI.COMM_SELF.Recv(data)
    with pytest.raises(BufferError, match="is not contiguous"):
        MPI.COMM_SELF.Send(everything[:, ::2], 0)


def reductions_round_to_nearest_even():
    # 1 + 2**-7 is the next after 1; 2**-8 lies halfway.
    mine = np.array([[1, 1 + 2**-7, 1, 3, -2], [2**-8, 2**-8, 3 * 2**-8, -5, 7]][rank], bfloat16)
    for length in (1, 3, 1000):  # some are computed as vectors
        data, into = np.tile(mine, length), np.zeros(5 * length, bfloat16)
        for op, expected in (
            (MPI.SUM, [1, 1 + 2**-6, 1 + 2**-6, -2, 5]),
            (MPI.PROD, [2**-8, (1 + 2**-7) * 2**-8, 3 * 2**-8, -15, -14]),
            (MPI.MAX, [1, 1 + 2**-7, 1, 3, 7]),
            (MPI.MIN, [2**-8, 2**-8, 3 * 2**-8, -5, -2]),
        ):
            world.Allreduce(data, into, op)
            assert (into.astype("f8") == np.tile(expected, length)).all(), (op.name, length, into[:5])
    with fails(MPI.ERR_OP, "BAND"):
        MPI.COMM_SELF.Allreduce(data, into, MPI.BAND)


def what_is_not_finite():
    largest = float(np.uint16(0x7F7F).view(bfloat16))
    mine = np.array([[np.nan, 1, np.inf, largest, np.inf], [1, np.nan, 1, largest, -np.inf]][rank], bfloat16)
    for length in (1, 1000):
        into = np.zeros(5 * length, bfloat16)
        world.Allreduce(np.tile(mine, length), into)
        result = into.reshape(length, 5).astype("f4")
        assert np.isnan(result[:, [0, 1, 4]]).all() and (result[:, [2, 3]] == np.inf).all(), result
        # quiet ones
        assert (into.view("u2").reshape(length, 5)[:, [0, 1, 4]] & 0x7FC0 == 0x7FC0).all()


def accumulates():
    memory = np.zeros(100, bfloat16)
    win = MPI.Win.Create(memory, 2, comm=world)
    win.Fence()
    for _ in range(3):
        win.Accumulate(np.full(100, 2, bfloat16), 0, op=MPI.SUM)
    win.Fence()
    assert rank or (memory == 12).all(), memory
    world.Barrier()
    fetched = np.zeros(1, bfloat16)
    win.Lock(0)
    win.Fetch_and_op([np.full(1, 100, bfloat16), MPI.BFLOAT16_T], fetched, 0, 7, MPI.MAX)
    win.Unlock(0)
    assert fetched[0] in (12, 100)
    world.Barrier()
    win.Free()
    assert rank or memory[7] == 100


def arrays_by_dlpack():
    class Device(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]

    class DataType(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]

    class Managed(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", Device),
            ("ndim", ctypes.c_int32),
            ("dtype", DataType),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("byte_offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )

    class Tensor:
        "An array that only DLPack shows, as those of PyTorch."

        def __init__(self, array):
            self.array = array
            shape = (ctypes.c_int64 * 1)(array.size)
            kept = Managed(array.ctypes.data, Device(1, 0), 1, DataType(4, 16, 1), shape, None, 0, None, None)
            self.kept = kept

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self):
            return new(ctypes.addressof(self.kept), b"dltensor", None)

    data, into = Tensor(np.arange(50).astype(bfloat16)), Tensor(np.zeros(50, bfloat16))
    world.Allreduce(data, into)
    assert (into.array == 2 * np.arange(50)).all()
    world.Allreduce(data, [into, MPI.BFLOAT16_T], MPI.MAX)
    assert (into.array == np.arange(50)).all()


def errors_name_the_datatype():
    array = np.zeros(3, bfloat16)
    for spec in (bfloat16, array.dtype):
        with pytest.raises(KeyError, match=r"MPI\.BFLOAT16_T is meant"):
            world.Bcast([array, 3, spec])
