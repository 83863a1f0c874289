"""The programs of test_dtlib.py."""

import numpy as np
from rankside import error_of

from gormapy import MPI
from gormapy.util.dtlib import from_numpy_dtype, to_numpy_dtype

KINDS = "? c b i8 u2 f4 f8 g F D (3,)i4 (2,3)f8".split()


def there_and_back():
    for align in (False, True):
        for first in KINDS:
            for second in KINDS:
                pair = np.dtype(f"{first},{second}", align=align)
                for kind in (pair, np.dtype((pair, (2, 3))), np.dtype([("", pair), ("", "i2")], align=align)):
                    datatype = from_numpy_dtype(kind)
                    assert datatype.extent == kind.itemsize
                    assert to_numpy_dtype(datatype) == kind, kind
                    datatype.Free()


def records():
    """Values of a record arrive where NumPy has them."""
    kind = np.dtype([("f0", "i2"), ("f1", "f8", (2,)), ("f2", "u1")], align=True)
    sent, received = np.zeros(5, kind), np.zeros(5, kind)
    sent["f0"], sent["f1"], sent["f2"] = np.arange(5), np.arange(10.0).reshape(5, 2), 7
    datatype = from_numpy_dtype(kind).Commit()
    MPI.COMM_SELF.Sendrecv([sent, 5, datatype], 0, 0, [received, 5, datatype], 0, 0)
    assert (sent == received).all()
    datatype.Free()


def layouts():
    vector = MPI.INT.Create_vector(3, 2, 4)
    kind = to_numpy_dtype(vector)
    assert kind.itemsize == vector.extent and [kind.fields[n][1] for n in kind.names] == [0, 16, 32]
    indexed = MPI.DOUBLE.Create_indexed([1, 2], [1, 4])
    assert [to_numpy_dtype(indexed).fields[n][1] for n in ("f0", "f1")] == [8, 32]
    pair = to_numpy_dtype(MPI.DOUBLE_INT)
    assert pair == np.dtype("d,i", align=True) and pair.isalignedstruct


def refusals():
    part = MPI.INT.Create_subarray([4], [2], [1])
    for datatype in (MPI.DATATYPE_NULL, part, MPI.INT.Create_resized(0, 32)):
        assert isinstance(error_of(lambda d=datatype: to_numpy_dtype(d)), ValueError)
    for kind in ("O", "V", ">i4", "i4,O"):
        assert isinstance(error_of(lambda k=kind: from_numpy_dtype(k)), ValueError)
