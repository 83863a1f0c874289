"""The programs of test_external32.py."""

import itertools
import pickle
import sys
import threading
import time

import numpy as np
from badmemory import faults, protect, protected, truncated
from rankside import fails, rank, size, world

from gormapy import MPI

EXT = "external32"
X87 = np.finfo(np.longdouble).nmant == 63

# What the table of the standard says of a value of each type, written by hand.
ONE, MINUS_TWO = "3fff0000000000000000000000000000", "c0000000000000000000000000000000"
TABLE = [
    ("PACKED", "u1", [0x12, 0xFE], "12 fe"),
    ("BYTE", "u1", [0x12, 0xFE], "12 fe"),
    ("CHAR", "S1", [b"A", b"\xe9"], "41 e9"),
    ("SIGNED_CHAR", "i1", [1, -2], "01 fe"),
    ("UNSIGNED_CHAR", "u1", [1, 254], "01 fe"),
    ("WCHAR", "u4", [0x41, 0x20AC, 0xFFFF], "0041 20ac ffff"),
    ("SHORT", "i2", [1, -2, 0x1234], "0001 fffe 1234"),
    ("UNSIGNED_SHORT", "u2", [1, 0xFEDC], "0001 fedc"),
    ("INT", "i4", [1, -2, 0x12345678], "00000001 fffffffe 12345678"),
    ("UNSIGNED", "u4", [1, 0xFEDCBA98], "00000001 fedcba98"),
    ("LONG", "i8", [1, -2, 2**31 - 1, -(2**31)], "00000001 fffffffe 7fffffff 80000000"),
    ("UNSIGNED_LONG", "u8", [1, 2**32 - 1], "00000001 ffffffff"),
    ("LONG_LONG", "i8", [1, -2], "0000000000000001 fffffffffffffffe"),
    ("UNSIGNED_LONG_LONG", "u8", [1, 2**64 - 2], "0000000000000001 fffffffffffffffe"),
    ("FLOAT", "f4", [1, -2, np.inf], "3f800000 c0000000 7f800000"),
    ("DOUBLE", "f8", [1, -2, np.inf], "3ff0000000000000 c000000000000000 7ff0000000000000"),
    ("LONG_DOUBLE", "g", [1, -2], f"{ONE} {MINUS_TWO}"),
    ("C_BOOL", "?", [True, False], "01 00"),
    ("INT8_T", "i1", [-2], "fe"),
    ("INT16_T", "i2", [-2], "fffe"),
    ("INT32_T", "i4", [-2], "fffffffe"),
    ("INT64_T", "i8", [-2, 2**40], "fffffffffffffffe 0000010000000000"),
    ("UINT8_T", "u1", [2], "02"),
    ("UINT16_T", "u2", [2], "0002"),
    ("UINT32_T", "u4", [2], "00000002"),
    ("UINT64_T", "u8", [2], "0000000000000002"),
    ("AINT", "i8", [-2], "fffffffffffffffe"),
    ("COUNT", "i8", [2**40], "0000010000000000"),
    ("OFFSET", "i8", [2**40], "0000010000000000"),
    ("C_COMPLEX", "F", [1 - 2j], "3f800000 c0000000"),
    ("C_DOUBLE_COMPLEX", "D", [1 - 2j], "3ff0000000000000 c000000000000000"),
    ("C_LONG_DOUBLE_COMPLEX", "G", [1 - 2j], f"{ONE} {MINUS_TWO}"),
    ("CXX_BOOL", "?", [True], "01"),
    ("CXX_FLOAT_COMPLEX", "F", [1 - 2j], "3f800000 c0000000"),
    ("CXX_DOUBLE_COMPLEX", "D", [1 - 2j], "3ff0000000000000 c000000000000000"),
    ("CXX_LONG_DOUBLE_COMPLEX", "G", [1 - 2j], f"{ONE} {MINUS_TWO}"),
    ("CHARACTER", "S1", [b"A"], "41"),
    ("LOGICAL", "i4", [1, 0], "00000001 00000000"),
    ("INTEGER", "i4", [-2], "fffffffe"),
    ("REAL", "f4", [-2], "c0000000"),
    ("DOUBLE_PRECISION", "f8", [-2], "c000000000000000"),
    ("COMPLEX", "F", [1 - 2j], "3f800000 c0000000"),
    ("DOUBLE_COMPLEX", "D", [1 - 2j], "3ff0000000000000 c000000000000000"),
    ("LOGICAL1", "i1", [1], "01"),
    ("LOGICAL2", "i2", [1], "0001"),
    ("LOGICAL4", "i4", [1], "00000001"),
    ("LOGICAL8", "i8", [1], "0000000000000001"),
    ("INTEGER1", "i1", [-2], "fe"),
    ("INTEGER2", "i2", [-2], "fffe"),
    ("INTEGER4", "i4", [-2], "fffffffe"),
    ("INTEGER8", "i8", [-2], "fffffffffffffffe"),
    ("REAL2", "f2", [1, -2], "3c00 c000"),
    ("REAL4", "f4", [-2], "c0000000"),
    ("REAL8", "f8", [-2], "c000000000000000"),
    ("REAL16", "g", [-2], MINUS_TWO),
    ("FLOAT16_T", "f2", [-2], "c000"),
    ("BFLOAT16_T", "u2", [0xC000], "c000"),  # -2: NumPy has no such type
    ("COMPLEX4", "2f2", [[1, -2]], "3c00 c000"),
    ("COMPLEX8", "F", [1 - 2j], "3f800000 c0000000"),
    ("COMPLEX16", "D", [1 - 2j], "3ff0000000000000 c000000000000000"),
    ("COMPLEX32", "G", [1 - 2j], f"{ONE} {MINUS_TWO}"),
    # The table has no pairs: they are structs of a value and an int.
    ("FLOAT_INT", "f4,i4", [(-2, 3)], "c0000000 00000003"),
    ("DOUBLE_INT", "f8,i4", [(-2, 3)], "c000000000000000 00000003"),
    ("LONG_INT", "i8,i4", [(-2, 3)], "fffffffe 00000003"),
    ("TWOINT", "i4,i4", [(-2, 3)], "fffffffe 00000003"),
    ("SHORT_INT", "i2,i4", [(-2, 3)], "fffe 00000003"),
    ("LONG_DOUBLE_INT", "g,i4", [(-2, 3)], f"{MINUS_TWO} 00000003"),
]


def pack(datatype, data):
    out = bytearray(b"\xee" * (datatype.Pack_external_size(EXT, data.nbytes // datatype.extent) + 3))
    end = datatype.Pack_external(EXT, data, out, 2)
    assert end == len(out) - 1 and out[:2] == b"\xee\xee" and out[-1] == 0xEE
    return bytes(out[2:end])


def every_type_by_hand():
    there = {d._h: d for d in vars(MPI).values() if isinstance(d, MPI.Datatype) and d != MPI.DATATYPE_NULL}
    for name, dtype, values, text in TABLE:
        datatype = getattr(MPI, name)
        there.pop(datatype._h, None)
        data = np.zeros(len(values), np.dtype(dtype, align=True) if "," in dtype else dtype)
        data[...] = values
        assert data.nbytes == len(values) * datatype.extent, name
        external = bytes.fromhex(text)
        assert pack(datatype, data) == external, (name, pack(datatype, data).hex())
        assert datatype.Pack_external_size(EXT, len(values)) == len(external), name
        back = np.zeros_like(data)
        assert datatype.Unpack_external(EXT, b"xy" + external, 2, back) == 2 + len(external)
        assert (back == data).all(), (name, back)
    assert not there, [d.name for d in there.values()]
    if X87:
        # a third: 64 bits of the significand, and zeros
        third = np.array([1], "g") / 3
        assert pack(MPI.LONG_DOUBLE, third).hex() == "3ffd5555555555555556000000000000"
        # what memory has no bits for is rounded
        for text, value in [("3fff0000000000000001000000000001", 1 + np.finfo("g").eps), (ONE[:-1] + "1", 1)]:
            MPI.LONG_DOUBLE.Unpack_external(EXT, bytes.fromhex(text), 0, third)
            assert third[0] == value


# NumPy's types in memory and in external32
LEAVES = [
    (MPI.INT, "i4", ">i4"),
    (MPI.SHORT, "i2", ">i2"),
    (MPI.BYTE, "u1", "u1"),
    (MPI.DOUBLE, "f8", ">f8"),
    (MPI.LONG, "i8", ">i4"),
    (MPI.UNSIGNED_LONG, "u8", ">u4"),
    (MPI.WCHAR, "u4", ">u2"),
    (MPI.FLOAT, "f4", ">f4"),
]


def random_type(rng, depth):
    """Return a datatype and the elements of one item: (displacement, dtype in memory, dtype outside)."""
    if depth == 0:
        datatype, inner, outer = LEAVES[rng.integers(len(LEAVES))]
        return datatype, [(0, inner, outer)]
    old, leaves = random_type(rng, depth - 1)
    extent = old.extent

    def at(places):
        return [(place + where, *rest) for place in places for where, *rest in leaves]

    how = rng.integers(6)
    if how == 0:
        n = int(rng.integers(1, 5))
        return old.Create_contiguous(n), at(i * extent for i in range(n))
    if how == 1:
        n, length = (int(k) for k in rng.integers(1, 4, 2))
        stride = length + int(rng.integers(0, 3))
        places = [(i * stride + j) * extent for i in range(n) for j in range(length)]
        return old.Create_vector(n, length, stride), at(places)
    if how == 2:
        lengths = rng.integers(0, 3, 4).tolist()
        starts = [3 * int(k) for k in rng.permutation(4)]
        places = [(s + j) * extent for s, n in zip(starts, lengths, strict=True) for j in range(n)]
        return old.Create_indexed(lengths, starts), at(places)
    if how == 3:
        old.Commit()
        return old.Create_resized(0, extent + 8 * int(rng.integers(0, 3))), leaves
    if how == 4:
        shape, sub, start = [3, 4], [2, 2], [int(rng.integers(2)), int(rng.integers(3))]
        cells = np.arange(12).reshape(shape)[start[0] : start[0] + 2, start[1] : start[1] + 2]
        return old.Create_subarray(shape, sub, start), at(int(c) * extent for c in cells.ravel())
    other, more = random_type(rng, depth - 1)
    behind = extent + old.true_ub + 8
    made = MPI.Datatype.Create_struct([2, 1], [0, behind], [old, other])
    return made, at([0, extent]) + [(behind + where, *rest) for where, *rest in more]


def random_types_against_numpy(seed):
    rng = np.random.default_rng(seed)
    tried = 0
    for _ in range(150):
        datatype, leaves = random_type(rng, int(rng.integers(0, 4)))
        datatype.Commit() if not datatype.is_predefined else None
        count = int(rng.integers(1, 5))
        places = [
            item * datatype.extent + where + byte
            for item in range(count)
            for where, inner, _ in leaves
            for byte in range(np.dtype(inner).itemsize)
        ]
        if datatype.extent <= 0 or len(set(places)) < len(places):
            continue  # explicit bounds may leave less than the data takes
        tried += 1
        memory = np.full(datatype.extent * count + datatype.true_ub, 0xAA, "u1")  # data may begin behind the address
        expected = b""
        for item, (where, inner, outer) in itertools.product(range(count), leaves):
            outside = rng.integers(0, 256, np.dtype(outer).itemsize, "u1").view(outer)
            expected += outside.tobytes()
            place = item * datatype.extent + where
            value = outside.astype(inner)
            memory[place : place + value.nbytes] = value.view("u1")
        assert datatype.Pack_external_size(EXT, count) == len(expected)
        span = datatype.extent * count
        out = bytearray(len(expected))
        assert datatype.Pack_external(EXT, memory[:span], out, 0) == len(out)
        assert bytes(out) == expected
        back = np.full_like(memory, 0xAA)
        assert datatype.Unpack_external(EXT, out, 0, back[:span]) == len(out)
        assert (back == memory).all()
    assert tried > 75


def values_that_do_not_fit():
    for datatype, code, good, bad, words in [
        (MPI.LONG, "i8", 2**31 - 1, 2**31, "the value 2147483648 of item 700"),
        (MPI.LONG, "i8", -(2**31), -(2**31) - 1, "use MPI_INT64_T"),
        (MPI.UNSIGNED_LONG, "u8", 2**32 - 1, 2**32, "use MPI_UINT64_T"),
        (MPI.WCHAR, "u4", 0xFFFF, 0x1F600, "U+1F600"),
    ]:
        data = np.full(1000, good, code)
        size = datatype.Pack_external_size(EXT, 1000)
        out = bytearray(size)
        assert datatype.Pack_external(EXT, data, out, 0) == size
        data[700] = bad
        out = bytearray(b"\xee" * size)
        with fails(MPI.ERR_CONVERSION, words):
            datatype.Pack_external(EXT, data, out, 0)
        assert out == b"\xee" * size  # nothing half done
        assert world.allreduce(1) == 1
    if X87:
        back = np.full(2, 7, "g")
        with fails(MPI.ERR_CONVERSION, "larger than the largest"):
            MPI.LONG_DOUBLE.Unpack_external(EXT, bytes.fromhex(ONE + "7ffe" + "ff" * 14), 0, back)
        assert (back == 7).all()


def wrong_arguments():
    data, out = np.arange(4, dtype="i4"), bytearray(16)
    for datarep in ("native", "internal", "external64", ""):
        for call in (
            lambda datarep=datarep: MPI.INT.Pack_external(datarep, data, out, 0),
            lambda datarep=datarep: MPI.INT.Unpack_external(datarep, out, 0, data),
            lambda datarep=datarep: MPI.INT.Pack_external_size(datarep, 1),
        ):
            with fails(MPI.ERR_UNSUPPORTED_DATAREP, '"external32" is'):
                call()
    for position in (-1, 1, 17, 2**40):
        with fails(MPI.ERR_ARG, "do not fit an output of 16 bytes"):
            MPI.INT.Pack_external(EXT, data, out, position)
    with fails(MPI.ERR_COUNT, "-1"):
        MPI.INT.Pack_external_size(EXT, -1)
    with fails(MPI.ERR_TYPE, "DATATYPE_NULL"):
        MPI.DATATYPE_NULL.Pack_external_size(EXT, 1)
    with fails(MPI.ERR_TYPE, "not committed"):
        MPI.INT.Create_contiguous(2).Pack_external(EXT, data, out, 0)
    try:
        MPI.INT.Pack_external(b"external32", data, out, 0)
    except TypeError as error:
        assert "datarep" in str(error)
    # as many whole elements as there are, as Unpack does
    back = np.full(4, -1, "i4")
    MPI.INT.Pack_external(EXT, data, out, 0)
    assert MPI.INT.Unpack_external(EXT, out[:10], 0, back) == 8 and back.tolist() == [0, 1, -1, -1]
    nothing = np.zeros(0, "i4")
    assert MPI.INT.Pack_external(EXT, nothing, out, 5) == 5
    assert MPI.INT.Unpack_external(EXT, out, 16, nothing) == 16


def memory_that_faults():
    vector = MPI.INT64_T.Create_vector(2, 1, 2).Commit()
    good = np.zeros(1 << 16, "i8")
    for bad in truncated(), protected(), protected(64):
        for datatype in (MPI.INT64_T, MPI.LONG, MPI.BYTE):
            faults(datatype.Pack_external, EXT, bad, good, 0)
            faults(datatype.Unpack_external, EXT, bad, 0, good)
            faults(datatype.Unpack_external, EXT, good, 0, bad)
        faults(vector.Pack_external, EXT, bad[:4], good, 0)
        assert not good.any()
    # from a page in the middle on
    pages = protected(64)
    protect(pages, False)
    pages[:] = 1
    half = pages[pages.size // 2 :]
    protect(half)
    try:
        for datatype in (MPI.INT64_T, MPI.LONG, MPI.DOUBLE_COMPLEX, MPI.SHORT):
            faults(datatype.Pack_external, EXT, pages, good, 0)
            faults(datatype.Unpack_external, EXT, good, 0, pages)
    finally:
        protect(half, False)
    low = MPI.memory.fromaddress(8, 64)
    for call in (
        lambda: MPI.DOUBLE.Pack_external(EXT, low, good, 0),
        lambda: MPI.DOUBLE.Pack_external(EXT, good[:8], low, 0),
        lambda: MPI.DOUBLE.Unpack_external(EXT, low, 0, good),
        lambda: MPI.DOUBLE.Unpack_external(EXT, good, 0, low),
    ):
        with fails(MPI.ERR_BUFFER):
            call()
    assert pack(MPI.LONG, np.arange(3)).hex() == "000000000000000100000002"


def other_threads_run():
    """A long conversion leaves the interpreter to other threads."""
    data = np.ones(1 << 24, "f8")
    out = np.empty_like(data)
    seen, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            seen[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(10)  # only who gives up the interpreter lets others run
    thread = threading.Thread(target=count)
    thread.start()
    try:
        stop.wait(0.01)
        before = seen[0]
        end = time.monotonic() + 20
        while seen[0] == before and time.monotonic() < end:
            MPI.DOUBLE.Pack_external(EXT, data, out, 0)
        assert seen[0] > before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert (out.view(">f8") == 1).all()


def packed_data_travels():
    struct_type = MPI.Datatype.Create_struct([1, 2], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    data = np.zeros(3, np.dtype("i4,2f8", align=True))
    data["f0"], data["f1"] = rank, [[rank, 0.5]] * 3
    packed = bytearray(struct_type.Pack_external_size(EXT, 3))
    assert struct_type.Pack_external(EXT, data, packed, 0) == len(packed) == 3 * 20
    got = bytearray(len(packed))
    world.Sendrecv(packed, (rank + 1) % size, 0, got, (rank - 1) % size, 0)
    back = np.zeros_like(data)
    assert struct_type.Unpack_external(EXT, got, 0, back) == len(got)
    before = (rank - 1) % size
    assert (back["f0"] == before).all() and (back["f1"] == [before, 0.5]).all()
    assert (np.frombuffer(got, ">i4,(2,)>f8")["f0"] == before).all()


def fortran_types():
    classes = [
        (MPI.Datatype.Create_f90_integer, MPI.COMBINER_F90_INTEGER, [(2,), (4,), (9,), (18,)], "i1 i2 i4 i8", 1),
        (MPI.Datatype.Create_f90_real, MPI.COMBINER_F90_REAL, [(6, 37), (15, 307), (16, 400)], "f4 f8 g", 1),
        (MPI.Datatype.Create_f90_complex, MPI.COMBINER_F90_COMPLEX, [(6, 37), (15, 307), (16, 400)], "c8 c16 G", 2),
    ]
    for create, combiner, arguments, codes, parts in classes:
        for args, code in zip(arguments, codes.split(), strict=True):
            datatype = create(*args)
            dtype = np.dtype(code)
            assert datatype.size == datatype.extent == dtype.itemsize
            assert datatype == create(*args) and datatype != create(*[a - 1 for a in args])
            assert datatype.is_predefined and not datatype.is_named
            assert datatype.Get_envelope() == (len(args), 0, 0, 0, combiner)
            assert datatype.Get_contents() == (list(args), [], [], [])
            base, name, params = datatype.decode()
            assert base == MPI.DATATYPE_NULL and tuple(params.values()) == args
            assert getattr(MPI.Datatype, f"Create_{name.lower()}")(**params) == datatype
            assert np.dtype(datatype.typechar) == dtype and pickle.loads(pickle.dumps(datatype)) == datatype
            assert datatype.Pack_external_size(EXT, 1) == dtype.itemsize
            same = MPI.Datatype.fromhandle(datatype.handle)
            assert same == datatype and same.Get_envelope() == datatype.Get_envelope() and same.is_predefined
            with fails(MPI.ERR_TYPE):
                datatype.Free()
            # no commit is needed, and reductions take it
            data, total = np.full(2, rank + 1, dtype), np.zeros(2, dtype)
            world.Allreduce([data, datatype], [total, datatype], MPI.SUM)
            assert (total == size * (size + 1) // 2).all()
            win = MPI.Win.Allocate(data.nbytes, dtype.itemsize, comm=world)
            part = win.tomemory()
            np.frombuffer(part, dtype)[:] = 0
            win.Fence()
            win.Accumulate([data, datatype], 0, [0, 2, datatype], MPI.SUM)
            win.Fence()
            assert rank != 0 or (np.frombuffer(part, dtype) == size * (size + 1) // 2).all()
            win.Free()
            external = pack(datatype, data)
            if code == "i8":  # not a long, which has 4 bytes there
                assert external == np.full(2, rank + 1, ">i8").tobytes()
            assert len(external) == 2 * dtype.itemsize and dtype.itemsize % parts == 0
            derived = datatype.Create_vector(2, 1, 2).Commit()
            assert derived.size == 2 * dtype.itemsize
            assert derived.Get_contents()[3][0] == datatype
            derived.Free()
            duplicate = datatype.Dup()
            assert not duplicate.is_predefined and duplicate.Get_contents()[3] == [datatype]
            duplicate.Free()
    undefined = MPI.UNDEFINED
    assert MPI.Datatype.Create_f90_real(undefined, 300).size == 8
    assert MPI.Datatype.Create_f90_real(6, undefined).size == 4
    assert MPI.Datatype.Create_f90_integer(0).size == 1


def fortran_types_that_do_not_exist():
    for call, words in [
        (lambda: MPI.Datatype.Create_f90_integer(19), "18 decimal digits"),
        (lambda: MPI.Datatype.Create_f90_real(34, 10), "precision of"),
        (lambda: MPI.Datatype.Create_f90_real(6, 4932), "exponent range of 4931"),
        (lambda: MPI.Datatype.Create_f90_complex(6, 4932), "Create_f90_complex"),
        (lambda: MPI.Datatype.Create_f90_real(MPI.UNDEFINED, MPI.UNDEFINED), "both UNDEFINED"),
    ]:
        with fails(MPI.ERR_ARG, words):
            call()
