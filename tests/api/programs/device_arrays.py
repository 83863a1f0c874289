"""The programs of test_device_arrays.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import ctypes
import mmap
import os

import numpy as np
from rankside import await_watchers, rank, world

from gormapy import MPI


def reachable_memory_is_used():
    class Managed:
        "What CuPy gives for managed memory: no buffer protocol."

        def __init__(self, array, readonly=False):
            self.array = array
            self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}
            self.__cuda_array_interface__["data"] = (array.ctypes.data, readonly)

    data, into = Managed(np.arange(1000.0) + rank), Managed(np.zeros(1000))
    world.Sendrecv(data, 1 - rank, 0, into, 1 - rank, 0)
    assert (into.array == np.arange(1000.0) + 1 - rank).all()
    world.Allreduce([data, MPI.DOUBLE], into)
    assert (into.array == 2 * np.arange(1000.0) + 1).all()
    try:
        world.Sendrecv(data, 1 - rank, 0, Managed(np.zeros(1000), readonly=True), 1 - rank, 0)
    except BufferError as error:
        assert "read-only" in str(error)
    else:
        raise AssertionError("no error")


def unreachable_memory_is_refused():
    page = mmap.PAGESIZE

    class Array:
        def __init__(self, address, nbytes):
            self.__cuda_array_interface__ = {"data": (address, False), "typestr": "|u1", "shape": (nbytes,)}

    region = mmap.mmap(-1, 2 * page, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    address = np.frombuffer(region, "u1").ctypes.data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 0) == 0
    world.Isend(Array(address, page), 0).Free()
    await_watchers()  # they take descriptors
    open_files = len(os.listdir("/proc/self/fd"))
    for hidden in (Array(address + page, page), Array(address, page + 1), Array(0, 1), Array(1 << 62, 8)):
        for call in (lambda: world.Send(hidden, 0), lambda: world.Bcast(hidden), lambda: MPI.Win.Create(hidden)):
            try:
                call()
            except BufferError as error:
                assert "memory of a GPU" in str(error), error
            else:
                raise AssertionError("no error")
    world.Recv(bytearray(page))
    assert len(os.listdir("/proc/self/fd")) == open_files
