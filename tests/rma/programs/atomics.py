"""Accumulates: every op on every type, and updates of all ranks at once that lose nothing."""

from functools import reduce

import numpy as np
from onesided import MPI, Window, case, main, rank, same, size, world

SIGNED = ("SIGNED_CHAR", "SHORT", "INT", "LONG", "LONG_LONG", "INT8_T", "INT16_T", "INT32_T", "INT64_T")
UNSIGNED = (
    *("UNSIGNED_CHAR", "UNSIGNED_SHORT", "UNSIGNED", "UNSIGNED_LONG", "UNSIGNED_LONG_LONG"),
    *("UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T"),
)
ADDRESSES = ("AINT", "OFFSET", "COUNT")
FLOATS = ("FLOAT", "DOUBLE", "LONG_DOUBLE")
COMPLEX = ("C_FLOAT_COMPLEX", "C_DOUBLE_COMPLEX", "C_LONG_DOUBLE_COMPLEX")
BOOLS = ("C_BOOL", "CXX_BOOL")
FORTRAN = ("INTEGER", "REAL", "DOUBLE_PRECISION", "F_COMPLEX", "F_DOUBLE_COMPLEX")
ALIKE = {"INTEGER": "i4", "REAL": "f4", "DOUBLE_PRECISION": "f8", "F_COMPLEX": "c8", "F_DOUBLE_COMPLEX": "c16"}
PAIRS = {
    "FLOAT_INT": "f4",
    "DOUBLE_INT": "f8",
    "LONG_INT": "l",
    "TWOINT": "i4",
    "SHORT_INT": "i2",
    "LONG_DOUBLE_INT": "g",
}


def dtype_of(name):
    if name in PAIRS:
        return np.dtype([("value", PAIRS[name]), ("place", "i4")], align=True)
    if name in BOOLS:
        return np.dtype("?")
    if name == "BYTE":
        return np.dtype("u1")
    if name in ALIKE:
        return np.dtype(ALIKE[name])
    size = getattr(MPI, name).Get_size()
    kind = "i" if name in SIGNED + ADDRESSES else "u" if name in UNSIGNED else "f" if name in FLOATS else "c"
    return np.dtype({("f", 16): "g", ("c", 32): "G"}.get((kind, size), f"{kind}{size}"))


def logical(function):
    return lambda a, b: a.dtype.type(function(bool(a), bool(b)))


def located(better):
    def function(a, b):
        if a["value"] == b["value"]:
            return a if a["place"] <= b["place"] else b
        return a if better(a["value"], b["value"]) else b

    return function


ARITHMETIC = {"SUM": np.add, "PROD": np.multiply}
ORDER = {"MIN": np.minimum, "MAX": np.maximum}
LOGICAL = {
    "LAND": logical(lambda a, b: a and b),
    "LOR": logical(lambda a, b: a or b),
    "LXOR": logical(lambda a, b: a != b),
}
BITS = {"BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}
LOCATED = {"MINLOC": located(lambda a, b: a < b), "MAXLOC": located(lambda a, b: a > b)}
ANY = {"REPLACE": lambda old, new: new}


def operations_on(name):
    """Return the ops that MPI defines for a type (MPI-4.1 6.9.2 and 12.3.4)."""
    if name in PAIRS:
        return LOCATED | ANY
    if name in BOOLS:
        return LOGICAL | ANY
    if name == "BYTE":
        return BITS | ANY
    if name in COMPLEX or name in ("F_COMPLEX", "F_DOUBLE_COMPLEX"):
        return ARITHMETIC | ANY
    if name in FLOATS or name in ("REAL", "DOUBLE_PRECISION"):
        return ARITHMETIC | ORDER | ANY
    return ARITHMETIC | ORDER | LOGICAL | BITS | ANY


def value(dtype, seed):
    """Return a small value, such that sums and products of a few are exact, as an array of one."""
    if dtype.fields:
        one = np.zeros(1, dtype)
        one["value"], one["place"] = seed * 5 % 3, seed
        return one
    if dtype.kind == "c":
        return np.array([complex(1 + seed % 2, 1 - seed % 3)], dtype)
    if dtype.kind == "b":
        return np.array([seed * 5 % 3 > 0])
    return np.array([(seed * 7 + 2) % 4], dtype)


def plain(element):
    """Return a value that can be compared and counted, without padding."""
    return tuple(x.item() for x in (element["value"], element["place"])) if element.dtype.fields else element + 0


def counted(elements):
    return sorted(map(str, map(plain, elements)))


TYPES = (*SIGNED, *UNSIGNED, *ADDRESSES, *FLOATS, *COMPLEX, *BOOLS, "BYTE", *FORTRAN, *PAIRS)


@case
def every_op_on_every_type(flavour):
    for name in TYPES:
        datatype, dtype = getattr(MPI, name), dtype_of(name)
        assert datatype.Get_extent() == (0, dtype.itemsize), (name, datatype.Get_extent(), dtype)
        ops = operations_on(name)
        calls = ("Accumulate", "Get_accumulate", "Fetch_and_op")
        slots = [(op, call) for op in ops for call in calls]
        with Window(flavour, 2 * len(slots), dtype) as w:
            first = value(dtype, 11)
            w.mine[:] = first
            world.Barrier()
            mine, target = value(dtype, rank), size // 2
            two = np.repeat(mine, 2)
            seen = {}
            w.win.Lock_all()
            for i, (op, call) in enumerate(slots):
                op_handle, disp = getattr(MPI, op), w.at(target, 2 * i)
                old = np.repeat(value(dtype, 3), 2)
                if call == "Accumulate":
                    w.win.Accumulate([two, 2, datatype], target, (disp, 2, datatype), op_handle)
                    continue
                if call == "Get_accumulate":
                    w.win.Get_accumulate([two, 2, datatype], [old, 2, datatype], target, (disp, 2, datatype), op_handle)
                else:
                    w.win.Fetch_and_op([mine, datatype], [old[:1], datatype], target, disp, op_handle)
                w.win.Flush(target)
                seen[op, call] = old[0].copy()
            w.win.Unlock_all()
            w.settle()
            olds = world.gather(seen, target)
            if rank == target:
                every = [value(dtype, r)[0] for r in range(size)]
                for i, (op, call) in enumerate(slots):
                    with np.errstate(over="ignore"):
                        folded = reduce(ops[op], every, first[0])
                        news = [ops[op](o[op, call], m) for o, m in zip(olds, every)] if call != "Accumulate" else []
                    one, other = w.mine[2 * i], w.mine[2 * i + 1]
                    if op == "REPLACE":
                        assert plain(one) in list(map(plain, every)), (name, op, call, one, every)
                    else:
                        assert plain(one) == plain(folded), (name, op, call, one, folded)
                    second = first[0] if call == "Fetch_and_op" else one
                    if op != "REPLACE":
                        assert plain(other) == plain(second), (name, op, call, other, second)
                    if news:
                        # What they fetched and what they made of it is one chain from the first to the last value.
                        fetched = [o[op, call] for o in olds]
                        assert counted([*fetched, one]) == counted([first[0], *news]), (name, op, call, fetched)


@case
def no_op_reads_every_type(flavour):
    for name in (
        "INT8_T",
        "UINT16_T",
        "FLOAT",
        "LONG",
        "LONG_DOUBLE",
        "C_DOUBLE_COMPLEX",
        "C_BOOL",
        "BYTE",
        "DOUBLE_INT",
    ):
        datatype, dtype = getattr(MPI, name), dtype_of(name)
        with Window(flavour, 4, dtype) as w:
            w.mine[:] = value(dtype, rank)
            world.Barrier()
            target = (rank + 1) % size
            many, one = np.zeros(4, dtype), np.zeros(1, dtype)
            w.win.Lock(target, MPI.LOCK_SHARED)
            ignored = np.repeat(value(dtype, 5), 4)
            w.win.Get_accumulate(
                [ignored, 4, datatype], [many, 4, datatype], target, (w.at(target), 4, datatype), MPI.NO_OP
            )
            w.win.Fetch_and_op([ignored[:1], datatype], [one, datatype], target, w.at(target, 3), MPI.NO_OP)
            w.win.Unlock(target)
            expected = value(dtype, target)[0]
            assert all(plain(x) == plain(expected) for x in [*many, *one]), (name, many, one, expected)
            w.settle()
            assert all(plain(x) == plain(value(dtype, rank)[0]) for x in w.mine)


@case
def compare_and_swap_on_all_it_takes(flavour):
    for name in (*SIGNED, *UNSIGNED, *ADDRESSES, *BOOLS, "BYTE", "INTEGER"):
        datatype, dtype = getattr(MPI, name), dtype_of(name)
        with Window(flavour, 3, dtype) as w:
            top = 1 if dtype.kind == "b" else 100
            w.mine[:] = [top, 0, top]
            world.Barrier()
            old = np.zeros(1, dtype)
            target = size - 1
            w.win.Lock(target, MPI.LOCK_SHARED)
            # one of all wins
            new = np.array([1 if dtype.kind == "b" else rank + 1], dtype)
            zero = np.zeros(1, dtype)
            w.win.Compare_and_swap([new, datatype], [zero, datatype], [old, datatype], target, w.at(target, 1))
            w.win.Flush(target)
            won = old[0] == 0
            # a loser changes nothing
            again, zero, other = np.zeros(1, dtype), np.zeros(1, dtype), np.array([top], dtype)
            w.win.Compare_and_swap([other, datatype], [zero, datatype], [again, datatype], target, w.at(target, 1))
            w.win.Unlock(target)
            assert again[0] != 0
            winners = [r for r, w_ in enumerate(world.allgather(bool(won))) if w_]
            assert len(winners) == 1, (name, winners)
            w.settle()
            if rank == target:
                same(w.mine, np.array([top, 1 if dtype.kind == "b" else winners[0] + 1, top], dtype), name)


def increment(w, target, disp, datatype, dtype, how):
    """Add one to an integer, in one of four ways."""
    one, old = np.ones(1, dtype), np.zeros(1, dtype)
    if how == 0:
        w.win.Accumulate([one, datatype], target, (disp, 1, datatype))
        w.win.Flush_local(target)
    elif how == 1:
        w.win.Fetch_and_op([one, datatype], [old, datatype], target, disp)
        w.win.Flush_local(target)
    elif how == 2:
        w.win.Get_accumulate([one, datatype], [old, datatype], target, (disp, 1, datatype))
        w.win.Flush_local(target)
    else:
        w.win.Fetch_and_op([one, datatype], [old, datatype], target, disp, MPI.NO_OP)
        w.win.Flush(target)
        while True:
            expected = old.copy()
            with np.errstate(over="ignore"):
                new = expected + one
            w.win.Compare_and_swap([new, datatype], [expected, datatype], [old, datatype], target, disp)
            w.win.Flush(target)
            if old[0] == expected[0]:
                break


@case
def concurrent_updates_lose_nothing(flavour):
    """Counters of every size, aligned, misaligned, over lines and pages, in one window of bytes."""
    rounds, target = 40, 0
    places = [
        *((1, offset) for offset in (0, 1, 2, 3)),
        *((2, offset) for offset in (4, 7, 9, 63)),
        *((4, offset) for offset in (12, 17, 21, 126)),
        *((8, offset) for offset in (32, 41, 49, 189, 4092)),
    ]
    with Window(flavour, 8192, "u1", disp_unit=1) as w:
        draw = np.random.default_rng(rank)
        w.win.Lock_all()
        for _ in range(rounds):
            for nbytes, offset in places:
                datatype = getattr(MPI, f"UINT{8 * nbytes}_T")
                increment(w, target, w.byte(target, offset), datatype, f"u{nbytes}", draw.integers(4))
        w.win.Unlock_all()
        w.settle()
        if rank == target:
            touched = np.zeros(8192, bool)
            for nbytes, offset in places:
                found = w.mine[offset : offset + nbytes].view(f"u{nbytes}")[0]
                expected = rounds * size % 2 ** (8 * nbytes)
                assert found == expected, f"{nbytes} bytes at {offset}: {found}, not {expected}"
                touched[offset : offset + nbytes] = True
            assert not w.mine[~touched].any(), "bytes beside the counters changed"


@case
def concurrent_updates_of_long_elements(flavour):
    """16 and 32 bytes: long doubles and complex ones, also misaligned; both parts change together."""
    rounds, target = 40, size - 1
    places = [("C_DOUBLE_COMPLEX", "c16", 0), ("C_DOUBLE_COMPLEX", "c16", 24), ("C_DOUBLE_COMPLEX", "c16", 57),
              ("C_FLOAT_COMPLEX", "c8", 80), ("C_FLOAT_COMPLEX", "c8", 91), ("LONG_DOUBLE", "g", 112), ("LONG_DOUBLE", "g", 4091),
              ("C_DOUBLE_COMPLEX", "c16", 8185)]  # fmt: skip
    with Window(flavour, 3 * 4096, "u1", disp_unit=1) as w:
        draw = np.random.default_rng(rank)
        w.win.Lock_all()
        for _ in range(rounds):
            for name, dtype, offset in places:
                datatype, disp = getattr(MPI, name), w.byte(target, offset)
                one = np.array([1 if dtype == "g" else 1 + 1j], dtype)
                old = np.zeros(1, dtype)
                how = draw.integers(3)
                if how == 0:
                    w.win.Accumulate([one, datatype], target, (disp, 1, datatype))
                    w.win.Flush_local(target)
                    continue
                if how == 1:
                    w.win.Fetch_and_op([one, datatype], [old, datatype], target, disp)
                else:
                    w.win.Get_accumulate([one, datatype], [old, datatype], target, (disp, 1, datatype))
                w.win.Flush(target)
                assert dtype == "g" or old[0].real == old[0].imag, (name, offset, old)
        w.win.Unlock_all()
        w.settle()
        if rank == target:
            for name, dtype, offset in places:
                nbytes = np.dtype(dtype).itemsize
                found = w.mine[offset : offset + nbytes].copy().view(dtype)[0]
                total = rounds * size
                assert found == (total if dtype == "g" else complex(total, total)), (name, offset, found, total)


@case
def derived_and_plain_updates_meet(flavour):
    """The same elements by a vector, by an indexed type and one by one."""
    rounds, target, count = 30, 0, 8
    column = MPI.INT32_T.Create_vector(count // 2, 1, 2).Commit()
    picked = MPI.INT32_T.Create_indexed([1, 2, 1], [0, 3, 7]).Commit()
    with Window(flavour, count, "i4") as w:
        old = np.zeros(count, "i4")
        ones = np.ones(count, "i4")
        w.win.Lock_all()
        for _ in range(rounds):
            w.win.Accumulate([ones, 4, MPI.INT32_T], target, (w.at(target), 1, column))
            w.win.Accumulate([ones, 4, MPI.INT32_T], target, (w.at(target), 1, picked))
            w.win.Get_accumulate([ones, 4, MPI.INT32_T], [old, 4, MPI.INT32_T], target, (w.at(target), 1, column))
            for element in range(count):
                w.win.Fetch_and_op([ones[:1], MPI.INT32_T], [old[:1], MPI.INT32_T], target, w.at(target, element))
            w.win.Accumulate([ones, count, MPI.INT32_T], target, (w.at(target), count, MPI.INT32_T))
        w.win.Unlock_all()
        w.settle()
        if rank == target:
            expected = np.full(count, 2)
            expected[::2] += 2
            expected[[0, 3, 4, 7]] += 1
            same(w.mine, expected * rounds * size)
    column.Free()
    picked.Free()


@case
def program_order_of_an_origin(flavour):
    """Accumulates of one origin on one element happen in their order, without a flush between them."""
    with Window(flavour, size * 2, "i8") as w:
        slot = 2 * rank
        for target in range(size):
            steps = 50
            seen = np.full(steps, -1, "i8")
            after = np.full(steps, -1, "i8")
            news = np.arange(steps, dtype="i8") * 10
            one = np.ones(1, "i8")
            none = np.zeros(1, "i8")
            disp = w.at(target, slot)
            w.win.Lock(target, MPI.LOCK_SHARED)
            for i in range(steps):
                w.win.Accumulate(news[i : i + 1], target, disp, MPI.REPLACE)
                w.win.Accumulate(one, target, disp, MPI.SUM)
                w.win.Fetch_and_op(one, seen[i : i + 1], target, disp, MPI.SUM)
                w.win.Get_accumulate(none, after[i : i + 1], target, disp, MPI.NO_OP)
            w.win.Unlock(target)
            same(seen, news + 1)
            same(after, news + 2)


@case
def a_put_under_an_exclusive_lock_is_seen_whole(flavour):
    """Non-atomic read, compute and write, by all ranks, under the lock."""
    count, rounds = 300, 15
    with Window(flavour, count, "i8") as w:
        values = np.zeros(count, "i8")
        for _ in range(rounds):
            w.win.Lock(0)
            w.win.Get(values, 0, w.at(0))
            w.win.Flush(0)
            assert (values == values[0]).all()
            values += 1
            w.win.Put(values, 0, w.at(0))
            w.win.Unlock(0)
        w.settle()
        if rank == 0:
            same(w.mine, np.full(count, rounds * size))


main()
