"""The programs of test_external32_files.py."""

from functools import partial

import numpy as np
from badmemory import protect, protected
from external32_elsewhere import work
from rankside import MPI, fails, rank, refused, size, world

EXT = "external32"
RW = MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE


def opened(name="data"):
    return MPI.File.Open(world, name, RW)


def contents(file, dtype, name="data"):
    """Return what is in the file, after all ranks have written."""
    file.Sync()
    world.Barrier()
    found = np.fromfile(name, dtype)
    world.Barrier()
    return found


def exchange(direction, folder):
    work(MPI, direction, folder)


# name: (is it collective, does it share the pointer, the call with an offset)
CALLS = {
    "at": (False, False, lambda f, io, at, b: getattr(f, f"{io}_at")(at, b)),
    "at_all": (True, False, lambda f, io, at, b: getattr(f, f"{io}_at_all")(at, b)),
    "iat": (False, False, lambda f, io, at, b: getattr(f, f"I{io.lower()}_at")(at, b).Wait()),
    "iat_all": (True, False, lambda f, io, at, b: getattr(f, f"I{io.lower()}_at_all")(at, b).Wait()),
    "own": (False, False, lambda f, io, at, b: (f.Seek(at), getattr(f, io)(b))),
    "own_all": (True, False, lambda f, io, at, b: (f.Seek(at), getattr(f, f"{io}_all")(b))),
    "iown": (False, False, lambda f, io, at, b: (f.Seek(at), getattr(f, f"I{io.lower()}")(b).Wait())),
    "iown_all": (True, False, lambda f, io, at, b: (f.Seek(at), getattr(f, f"I{io.lower()}_all")(b).Wait())),
    "split_at": (
        True,
        False,
        lambda f, io, at, b: (getattr(f, f"{io}_at_all_begin")(at, b), getattr(f, f"{io}_at_all_end")(b)),
    ),
    "split": (
        True,
        False,
        lambda f, io, at, b: (f.Seek(at), getattr(f, f"{io}_all_begin")(b), getattr(f, f"{io}_all_end")(b)),
    ),
    "shared": (False, True, lambda f, io, at, b: getattr(f, f"{io}_shared")(b)),
    "ishared": (False, True, lambda f, io, at, b: getattr(f, f"I{io.lower()}_shared")(b).Wait()),
    "ordered": (True, True, lambda f, io, at, b: getattr(f, f"{io}_ordered")(b)),
    "split_ordered": (
        True,
        True,
        lambda f, io, at, b: (getattr(f, f"{io}_ordered_begin")(b), getattr(f, f"{io}_ordered_end")(b)),
    ),
}


def in_turn(shared, together, call):
    """Let ranks share the pointer one after the other, so that it is known where each writes."""
    if together or not shared:
        call()
    else:
        for turn in range(size):
            if turn == rank:
                call()
            world.Barrier()


def every_call_converts():
    n = 700
    for datatype, inner, outer in [(MPI.INT, "i4", ">i4"), (MPI.LONG, "i8", ">i4"), (MPI.DOUBLE, "f8", ">f8")]:
        values = (np.arange(n) - 5 + rank * n).astype(inner)
        everything = np.arange(n * size) - 5
        for name, (together, shared, call) in CALLS.items():
            file = opened()
            file.Set_view(0, datatype, datatype, EXT)
            in_turn(shared, together, partial(call, file, "Write", rank * n, values))
            if name.startswith("own"):
                assert file.Get_position() == (rank + 1) * n
            if shared:
                world.Barrier()
                assert file.Get_position_shared() == n * size
                world.Barrier()
                file.Seek_shared(0)
            assert (contents(file, outer) == everything).all(), (name, outer)
            got = np.zeros_like(values)
            in_turn(shared, together, partial(call, file, "Read", rank * n, got))
            assert (got == values).all(), (name, outer)
            file.Close()
            world.Barrier()


def bytes_by_hand():
    file = opened()
    for datatype, dtype, values, text in [
        (MPI.SHORT, "i2", [1, -2], "0001fffe"),
        (MPI.LONG, "i8", [1, -2, 2**31 - 1], "00000001fffffffe7fffffff"),
        (MPI.AINT, "i8", [-2], "fffffffffffffffe"),
        (MPI.FLOAT, "f4", [1, -2], "3f800000c0000000"),
        (MPI.C_DOUBLE_COMPLEX, "D", [1 - 2j], "3ff0000000000000c000000000000000"),
        (MPI.WCHAR, "u4", [0x41, 0x20AC], "004120ac"),
        (MPI.LONG_DOUBLE, "g", [-2], "c0000000000000000000000000000000"),
        (MPI.BYTE, "u1", [1, 2], "0102"),
        (MPI.C_BOOL, "?", [1, 0], "0100"),
    ]:
        file.Set_view(0)
        file.Set_size(0)
        file.Set_view(3, datatype, datatype, EXT)
        data = np.array(values, dtype)
        status = MPI.Status()
        file.Write_at(0, [data, datatype], status)
        assert status.Get_count(datatype) == len(values)
        assert contents(file, "u1").tobytes().hex() == "000000" + text
        assert file.Get_size() == 3 + len(text) // 2
        assert file.Get_byte_offset(1) == 3 + len(text) // 2 // len(values)
        assert file.Get_type_extent(datatype) == len(text) // 2 // len(values)
        back = np.zeros_like(data)
        file.Read_at(0, [back, datatype], status)
        assert (back == data).all() and status.Get_count(datatype) == len(values)
        disp, etype, filetype, datarep = file.Get_view()
        assert (disp, etype, filetype, datarep) == (3, datatype, datatype, EXT)
    pair = np.zeros(2, np.dtype("i8,i4", align=True))
    pair["f0"], pair["f1"] = [1, -2], [3, 4]
    file.Set_view(0, MPI.LONG_INT, MPI.LONG_INT, EXT)
    file.Set_size(0)
    file.Write_at(0, [pair, 2, MPI.LONG_INT])
    assert contents(file, "u1").tobytes().hex() == "0000000100000003fffffffe00000004"
    back = np.zeros_like(pair)
    file.Read_at(0, [back, 2, MPI.LONG_INT])
    assert (back == pair).all()
    file.Close()


def types_of_several_sizes():
    """Structs with padding and long scalars, in pieces of collective accesses that cut through them."""
    record = np.dtype("i2,i8,g,u4", align=True)
    kind = MPI.Datatype.Create_struct(
        [1] * 4, [record.fields[f"f{i}"][1] for i in range(4)], [MPI.SHORT, MPI.LONG, MPI.LONG_DOUBLE, MPI.WCHAR]
    )
    kind = kind.Create_resized(0, record.itemsize).Commit()
    outside = np.dtype(">i2,>i4,V16,>u2")
    n = 30000
    data = np.zeros(n, record)
    data["f0"], data["f1"] = np.arange(n) % 1000, -np.arange(n) - rank
    data["f2"], data["f3"] = rank + 0.5, 0x20AC
    for collective in ("true", "false", "automatic"):
        file = opened()
        info = MPI.Info.Create({"collective_buffering": collective, "cb_buffer_size": "4096"})
        # every rank has every size-th struct; in the file they have 24 bytes
        flat = MPI.BYTE.Create_contiguous(outside.itemsize).Commit()
        every = MPI.BYTE.Create_contiguous(outside.itemsize).Create_resized(0, outside.itemsize * size).Commit()
        file.Set_view(5 + rank * outside.itemsize, flat, every, EXT, info)
        status = MPI.Status()
        file.Write_at_all(0, [data, n, kind], status)
        assert status.Get_count(kind) == n
        written = contents(file, "u1")[5:].view(outside).reshape(n, size)
        for other in range(size):
            assert (written["f0"][:, other] == data["f0"]).all()
            assert (written["f1"][:, other] == -np.arange(n) - other).all()
            assert (written["f3"][:, other] == 0x20AC).all()
        back = np.zeros_like(data)
        file.Read_at_all(0, [back, n, kind], status)
        assert status.Get_count(kind) == n
        assert all((back[name] == data[name]).all() for name in record.names)
        # pieces of 4 MiB end within a scalar
        long = np.arange(600_000, dtype="g") + rank
        file.Set_view(rank * 16 * len(long) + 3, MPI.LONG_DOUBLE, MPI.LONG_DOUBLE, EXT, info)
        file.Write_at(0, [long, MPI.LONG_DOUBLE])
        file.Sync()
        world.Barrier()
        got = np.zeros_like(long)
        file.Iread_at(0, [got, MPI.LONG_DOUBLE]).Wait()
        assert (got == long).all()
        file.Close()
        world.Barrier()


def layout_of_the_view():
    """Displacements in elements shrink with the elements, those in bytes stay."""
    file = opened()
    for make, extent, places in [
        (lambda: MPI.LONG.Create_vector(2, 1, 3), 16, [0, 12, 16, 28]),
        (lambda: MPI.LONG.Create_hvector(2, 1, 24), 28, [0, 24, 28, 52]),
        (lambda: MPI.LONG.Create_resized(0, 32), 32, [0, 32, 64, 96]),
        (lambda: MPI.LONG.Create_subarray([2, 4], [2, 1], [0, 2]), 32, [8, 24, 40, 56]),
        (lambda: MPI.LONG.Create_indexed_block(1, [1, 4]).Dup(), 16, [4, 16, 20, 32]),
    ]:
        filetype = make().Commit()
        file.Set_view(0)
        file.Set_size(0)
        file.Set_view(0, MPI.LONG, filetype, EXT)
        assert file.Get_type_extent(filetype) == extent
        assert file.Get_type_extent(MPI.LONG) == 4 and MPI.LONG.extent == 8
        assert [file.Get_byte_offset(i) for i in range(4)] == places
        file.Write_at(0, np.arange(1, 5))
        expected = np.zeros(places[-1] + 4, "u1")
        for i, place in enumerate(places):
            expected[place + 3] = i + 1
        assert (contents(file, "u1") == expected).all()
        file.Set_view(0, MPI.LONG, filetype, "native")
        assert file.Get_type_extent(filetype) == filetype.extent and file.Get_view()[3] == "native"
    # what is not aligned in memory is not aligned in the file either
    mixed = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.SHORT]).Commit()
    file.Set_view(0, mixed, mixed, EXT)
    assert file.Get_type_extent(mixed) == 10 and mixed.extent == 16
    file.Set_view(0, MPI.INT, MPI.INT, "EXTERNAL32")  # as MPICH and Open MPI take it
    assert file.Get_view()[3] == EXT
    with fails(MPI.ERR_IO, "etypes"):
        file.Write_at(0, np.zeros(3, "i2"))
    file.Close()


def values_that_do_not_fit():
    file = opened()
    file.Set_view(0, MPI.LONG, MPI.LONG, EXT)
    good = np.full(1 << 20, 7)
    bad = good.copy()
    bad[-3] = 2**31
    for name, (together, shared, call) in CALLS.items():
        where = rank * len(bad)
        if together:  # it fails on all ranks when one can't
            with fails(MPI.ERR_CONVERSION, "item 1048573" if rank == 0 else None):
                call(file, "Write", where, bad if rank == 0 else good)
        else:
            with fails(MPI.ERR_CONVERSION, "the value 2147483648 of item 1048573"):
                call(file, "Write", where, bad)
        world.Barrier()
        assert file.Get_size() == 0, name  # nothing half done
        if shared:
            assert file.Get_position_shared() == 0, name
        elif not together:  # nonblocking collectives move it when they begin
            assert file.Get_position() in (0, where), name
        world.Barrier()
        if name.startswith("split"):
            file.Close()  # the split call is over
            file = opened()
            file.Set_view(0, MPI.LONG, MPI.LONG, EXT)
    file.Write_at_all(rank, good[:1])
    assert (contents(file, ">i4") == 7).all()
    file.Close()


def file_that_ends_within_an_element():
    file = opened()
    if rank == 0:
        file.Write_at(0, bytes.fromhex("00000001 00000002 0000"))
    file.Sync()
    world.Barrier()
    file.Set_view(0, MPI.LONG, MPI.LONG, EXT)
    for name in ("Read_at", "Read_at_all", "Read", "Read_all"):
        file.Seek(0)
        back, status = np.full(5, -1), MPI.Status()
        getattr(file, name)(*([0] if "_at" in name else []), back, status)
        assert back.tolist() == [1, 2, -1, -1, -1], name
        assert status.Get_count(MPI.LONG) == 2 and status.Get_elements(MPI.LONG) == 2
    file.Close()


def memory_that_faults():
    file = opened()
    n = 64 * 512  # longs of 64 pages
    file.Set_size(8 * n * size)
    pages = protected(64)
    half = pages[n // 2 :]
    protect(pages, False)
    for datatype in (MPI.INT64_T, MPI.LONG):
        file.Set_view(0, datatype, datatype, EXT)
        for io in ("Write", "Read"):
            for name, (_, shared, call) in CALLS.items():
                if shared:
                    continue
                pages[:] = 1
                good = np.ones(n, "i8")
                protect(half, rank == 0)
                try:
                    call(file, io, 0, [pages if rank == 0 else good, datatype])
                except MPI.Exception as error:
                    assert error.Get_error_class() == MPI.ERR_BUFFER, error
                    assert rank != 0 or "can't be read or written" in str(error), error
                else:
                    assert rank != 0, (io, name)
                finally:
                    protect(half, False)
                world.Barrier()
                if name.startswith("split"):
                    file.Close()
                    file = opened()
                    file.Set_size(8 * n * size)
                    file.Set_view(0, datatype, datatype, EXT)
                    world.Barrier()
    # the file works, on all ranks
    back = np.zeros(3, "i8")
    file.Set_view(0, MPI.LONG, MPI.LONG, EXT)
    file.Write_at_all(rank * 3, np.arange(3) + rank)
    file.Read_at_all(rank * 3, back)
    assert back.tolist() == [rank, rank + 1, rank + 2]
    file.Close()


def representations_that_differ():
    file = opened()
    MPI.Register_datarep("mine", None, None, lambda datatype: datatype.extent)
    MPI.Register_datarep("yours", None, None, lambda datatype: datatype.extent)
    for pair in [("native", EXT), ("native", "mine"), ("yours", "mine"), (EXT, "internal")]:
        with fails(MPI.ERR_NOT_SAME, "data representation"):
            file.Set_view(0, MPI.INT, MPI.INT, pair[rank == size - 1])
        assert file.Get_view()[3] == "native"
    file.Close()


def extent_functions_that_fail_on_one_rank():
    last = size - 1

    def refuse(datatype):
        raise ZeroDivisionError("one")

    def free(datatype):
        return MPI.Datatype().Get_extent()

    file = opened()
    for name, wrong, its, theirs in (
        ("raises", refuse, ZeroDivisionError, MPI.ERR_ARG),
        ("raises one of MPI", free, MPI.Exception, MPI.ERR_TYPE),
        ("differs", lambda _: 3, MPI.Exception, MPI.ERR_CONVERSION),
        ("is no number", lambda _: "a", MPI.Exception, MPI.ERR_CONVERSION),
    ):
        MPI.Register_datarep(name, None, None, wrong if rank == last else MPI.Datatype.Get_size)
        if rank == last:
            refused(its, lambda name=name: file.Set_view(0, MPI.INT, None, name))
        else:
            with fails(theirs, f"the arguments of rank {last} of"):
                file.Set_view(0, MPI.INT, None, name)
    file.Set_view(0, MPI.INT)
    file.Close()


def registered_names():
    def extent(datatype):
        return datatype.Get_extent()[1]

    def convert(*_):
        raise AssertionError("never called")

    MPI.Register_datarep("mine", None, None, extent)
    for name in ("mine", "native", "internal", EXT, "External32"):
        with fails(MPI.ERR_DUP_DATAREP, repr(name)):
            MPI.Register_datarep(name, None, None, extent)
    for functions in [(convert, convert), (convert, None), (None, convert)]:
        with fails(MPI.ERR_UNSUPPORTED_DATAREP, "read_fn and write_fn can be None"):
            MPI.Register_datarep("other", *functions, extent)
    for name in ("", "x" * (MPI.MAX_DATAREP_STRING + 1)):
        with fails(MPI.ERR_ARG, "characters"):
            MPI.Register_datarep(name, None, None, extent)
    for arguments in [(b"other", None, None, extent), ("other", 1, None, extent), ("other", None, None, None)]:
        try:
            MPI.Register_datarep(*arguments)
        except TypeError as error:
            assert "expecting" in str(error)
        else:
            raise AssertionError(arguments)
    file = opened()
    with fails(MPI.ERR_UNSUPPORTED_DATAREP, "registered are 'mine'"):
        file.Set_view(0, MPI.INT, MPI.INT, "other")
    vector = MPI.INT.Create_vector(2, 1, 2 * size).Create_resized(0, 16 * size).Commit()
    for datarep in ("mine", "internal"):
        file.Set_view(4 * rank, MPI.INT, vector, datarep)
        assert file.Get_view()[3] == datarep
        file.Write_all(np.full(4, rank + 1, "i4"))
        assert (contents(file, "i4").reshape(-1)[rank :: 2 * size] == rank + 1).all()
        world.Barrier()
    MPI.Register_datarep("wider", None, None, lambda datatype: 8)
    with fails(MPI.ERR_CONVERSION, "returned 8 for a datatype of 4 bytes"):
        file.Set_view(0, MPI.INT, vector, "wider")
    file.Close()
