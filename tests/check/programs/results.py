"""NumPy computes the same on memory that is watched, whatever instructions it uses."""

import ctypes
import decimal
import random
import warnings

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
warnings.simplefilter("ignore")

INTEGERS, REALS, COMPLEX = "bBhHiIqQ", "efdg", "FD"
ONE_OPERAND = (np.negative, np.absolute, np.sqrt, np.square, np.exp, np.log, np.sin, np.floor, np.rint, np.sign)
TWO_OPERANDS = (
    np.add,
    np.subtract,
    np.multiply,
    np.divide,
    np.floor_divide,
    np.remainder,
    np.maximum,
    np.less,
    np.power,
)
BITS = (np.bitwise_and, np.bitwise_xor, np.left_shift, np.right_shift, np.invert)
STEPS = slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, 2)


def _close(win):
    win.Lock(rank)
    win.Unlock(rank)
    win.Free()


def _same(a, b):
    assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"), (a, b)


def _compared(types, functions):
    win = MPI.Win.Allocate(1024, 1, comm=world)
    for code in types:
        plain = np.arange(1, 12).astype(code)
        watched = np.frombuffer(win.tomemory(), code)[: len(plain)]
        for function in functions:
            for step in STEPS:
                watched[:] = plain
                operands = (plain[step], plain[step][::-1])[: function.nin]
                seen = (watched[step], watched[step][::-1])[: function.nin]
                try:
                    wanted = function(*operands)
                except TypeError:  # not of this type
                    break
                _same(function(*seen), wanted)
                if wanted.dtype.itemsize <= 16:
                    out = np.frombuffer(win.tomemory()[512:], wanted.dtype)[: len(wanted)]
                    function(*operands, out=out)
                    _same(out, wanted)
    _close(win)


def functions_of_integers():  # check: clean n=1
    _compared(INTEGERS, (*ONE_OPERAND, *TWO_OPERANDS, *BITS))


def functions_of_real_numbers():  # check: clean n=1
    _compared(REALS, (*ONE_OPERAND, *TWO_OPERANDS, np.arctan2, np.signbit, np.isnan))


def functions_of_complex_numbers():  # check: clean n=1
    _compared(COMPLEX, (*ONE_OPERAND, np.add, np.multiply, np.divide, np.conjugate))


def conversions():  # check: clean n=1
    win = MPI.Win.Allocate(1024, 1, comm=world)
    codes = "?" + INTEGERS + REALS + COMPLEX
    for code in codes:
        plain = np.arange(9).astype(code)
        watched = np.frombuffer(win.tomemory(), code)[:9]
        watched[:] = plain
        for other in codes:
            _same(watched.astype(other), plain.astype(other))
            _same(watched[::2].astype(other), plain[::2].astype(other))
    _close(win)


def reductions_and_orders():  # check: clean n=1
    win = MPI.Win.Allocate(1024, 1, comm=world)
    for code in INTEGERS + REALS:
        plain = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2]).astype(code)
        watched = np.frombuffer(win.tomemory(), code)[: len(plain)]
        for function in (
            np.sum,
            np.prod,
            np.max,
            np.argmin,
            np.cumsum,
            np.sort,
            np.argsort,
            np.unique,
            np.diff,
            np.mean,
        ):
            watched[:] = plain
            _same(np.asarray(function(watched)), np.asarray(function(plain)))
        watched[:] = plain
        watched.sort()
        _same(watched, np.sort(plain))
        watched[[1, 5, 3]] = watched[[2, 0, 9]]
        _same(np.dot(watched[:9], watched[:9]), np.dot(watched[:9].copy(), watched[:9].copy()))
        _same(np.where(watched > 3, watched, 0), np.where(watched.copy() > 3, watched.copy(), 0))
    _close(win)


def products_of_matrices():  # check: clean n=1
    win = MPI.Win.Allocate(4096, 1, comm=world)
    for code in "fdFD":
        plain = (np.arange(49) % 11).astype(code).reshape(7, 7)
        watched = np.frombuffer(win.tomemory(), code)[:49].reshape(7, 7)
        watched[:] = plain
        _same(watched @ plain, plain @ plain)
        _same(plain @ watched[:, :3], plain @ plain[:, :3])
        np.matmul(plain, plain, out=watched)
        _same(watched, plain @ plain)
    _close(win)


def python_and_c():  # check: clean n=1
    win = MPI.Win.Allocate(256, 1, comm=world)
    buffer = win.tomemory()
    memory = memoryview(buffer)
    text = bytes(random.Random(1).randrange(256) for _ in range(200))
    memory[:200] = text
    assert bytes(memory[:200]) == text and memory[3:99] == text[3:99] and memory.tolist()[:200] == list(text)
    assert int.from_bytes(memory[:200], "little") == int.from_bytes(text, "little")
    assert ctypes.string_at(buffer.address + 7, 90) == text[7:97]
    ctypes.memset(buffer.address, 65, 33)
    ctypes.memmove(buffer.address + 33, text, 100)
    assert bytes(memory[:134]) == b"A" * 33 + text[:100] + text[133:134]
    memory[:5] = b"3.125"
    assert (
        decimal.Decimal(str(memory[:5].tobytes(), "ascii")) == decimal.Decimal("3.125") and float(memory[:5]) == 3.125
    )
    _close(win)
