"""How the extension reads arrays of NumPy: as NumPy's own answer to the buffer protocol has them (pybind/shim/ndarray.c)."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from support.programs import beside

from gormapy._ext import fast

program = beside(__file__)

NUMBERS = "?bBhHiIlLqQfdgFDGe"


def of_numpy(array):
    """What NumPy says of an array, as fast.buffer_info returns it."""
    view = memoryview(array)
    return array.ctypes.data, view.nbytes, view.format, view.itemsize, view.readonly


def read_only(array):
    array.flags.writeable = False
    return array


def misaligned(kind):
    return np.frombuffer(bytearray(4 * np.dtype(kind).itemsize + 1), kind, 4, 1)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_read_here(kind):
    whole = np.zeros((4, 3), kind)
    for array in (
        whole,
        np.asfortranarray(whole),
        whole[1:3],
        whole.T,
        whole[2:2],
        np.zeros((), kind),
        np.zeros((2, 0, 3), kind),
        np.zeros((2, 3, 4, 5), kind),
        read_only(np.ones(7, kind)),
    ):
        assert fast.is_read_here(array)
        assert fast.buffer_info(array, False)[:5] == of_numpy(array)
        if array.flags.writeable:
            assert fast.buffer_info(array, True)[:5] == of_numpy(array)


OTHERS = {
    "big-endian integers": np.zeros(4, ">i4"),
    "big-endian numbers": np.zeros(4, ">f8"),
    "big-endian complex numbers": np.zeros(4, ">c16"),
    "bytes": np.zeros(4, "S3"),
    "strings": np.zeros(4, "U2"),
    "memory": np.zeros(4, "V5"),
    "records": np.zeros(4, "i4,f8"),
    "records with an array": np.zeros(4, [("x", "i1"), ("y", "f8", 2)]),
    "a recarray": np.zeros(4).view(np.recarray),
    "a masked array": np.ma.zeros(4),
    "integers with fields": np.zeros(
        4, np.dtype((np.int32, {"names": ["a", "b"], "formats": ["i2", "i2"], "offsets": [0, 2]}))
    ),
    "numbers with metadata": np.zeros(4, np.dtype("d", metadata={"unit": "m"})),
    "an unpickled array": pickle.loads(pickle.dumps(np.arange(4))),
    "misaligned integers": misaligned("i4"),
    "misaligned numbers": misaligned("f8"),
    "a scalar": np.float64(3),
    "a bytearray": bytearray(8),
    "immutable bytes": b"12345678",
    "a memoryview": memoryview(np.zeros(3)),
}


@pytest.mark.parametrize("array", OTHERS.values(), ids=OTHERS)
def test_others_are_left_to_their_class(array):
    assert not fast.is_read_here(array)
    view = memoryview(array)
    assert fast.buffer_info(array, False)[1:5] == (view.nbytes, view.format, view.itemsize, view.readonly)


REFUSED = {
    "every second item": np.zeros(8)[::2],
    "some columns": np.zeros((4, 4))[:, 1:3],
    "times": np.zeros(4, "M8[s]"),
}


@pytest.mark.parametrize("array", REFUSED.values(), ids=REFUSED)
def test_arrays_that_no_call_takes(array):
    assert not fast.is_read_here(array)
    with pytest.raises((BufferError, ValueError)):
        fast.buffer_info(array, False)


def test_an_array_of_objects_is_left_to_numpy():
    array = np.zeros(4, object)
    assert not fast.is_read_here(array)
    assert fast.buffer_info(array, False)[2] == "O"


def test_an_array_that_is_read_only_is_not_received_into():
    array = read_only(np.zeros(4))
    with pytest.raises((BufferError, ValueError), match=r"read.?only"):
        fast.buffer_info(array, True)


def test_writing_to_a_broadcast_array_warns():
    array, _ = np.broadcast_arrays(np.zeros(1), np.zeros((1, 1)))
    assert not fast.is_read_here(array)
    assert fast.buffer_info(array, False)[4]
    with pytest.warns(DeprecationWarning, match="broadcast_arrays"):
        fast.buffer_info(array, True)


def test_the_array_lives_as_long_as_its_buffer():
    array = np.arange(5.0)
    count = sys.getrefcount(array)
    info = fast.buffer_info(array, True)
    assert sys.getrefcount(array) == count + 1
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize(10_000)
    del info
    assert sys.getrefcount(array) == count


STRANGE = """
import sys, types
from gormapy._ext import fast

class ndarray(bytearray):
    pass

strange = types.ModuleType("numpy")
strange.ndarray = ndarray
for numpy in (strange, types.SimpleNamespace(ndarray=ndarray), types.ModuleType("numpy"), None):
    sys.modules["numpy"] = numpy
    for memory in (ndarray(b"12345"), bytearray(5), ndarray(5), b"12345"):
        assert not fast.is_read_here(memory)
        assert fast.buffer_info(memory, False)[1:3] == (5, "B")
"""

LATE = """
import sys
from gormapy._ext import fast
assert "numpy" not in sys.modules
assert not fast.is_read_here(bytearray(5))
import numpy as np
assert not fast.is_read_here(bytearray(5))
assert fast.is_read_here(np.zeros(3)) and not fast.is_read_here(bytearray(5)) and fast.is_read_here(np.zeros(3))
"""

# What the program puts in place of NumPy's functions returns no arrays, and runs signal handlers.
REPLACED = """
import numpy as np
from gormapy._ext import fast
a = np.zeros(3)

def zeros(*args):
    raise KeyboardInterrupt

np.zeros = np.frombuffer = zeros
assert not fast.is_read_here(a) and fast.buffer_info(a, False)[1:3] == (24, "d")
np.zeros = int
assert not fast.is_read_here(a) and fast.buffer_info(a, False)[1:3] == (24, "d")
"""

# No line of Python runs while the layout is looked at: a handler that raised there would be lost.
QUIET = """
import sys
import numpy as np
from gormapy._ext import fast
a = np.zeros(3)
lines = []
sys.setprofile(lambda frame, event, arg: lines.append(event))
read = fast.is_read_here(a)
sys.setprofile(None)
assert read and "call" not in lines, lines
"""


@pytest.mark.parametrize("source", [STRANGE, LATE, REPLACED, QUIET], ids=["strange", "late", "replaced", "quiet"])
def test_how_the_class_of_arrays_is_found(source):
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)


def test_messages_of_every_kind_of_number(ranks):
    ranks(2, program.messages_of_every_kind_of_number)
