"""The programs of test_file_errors.py."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
from rankside import fails, interrupted, rank, refused, reset, size, world

from gormapy import MPI


def descriptors():
    # only what belongs to files: the core opens others when it likes
    links = [
        os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")
    ]
    with open("/proc/self/maps") as maps:
        mapped = [line for line in maps if "file pointer" in line]
    return sorted(link for link in links if link.startswith(os.getcwd()) or "file pointer" in link) + mapped


RW = MPI.MODE_RDWR | MPI.MODE_CREATE


def opening():
    MPI.File.Open(world, "there", RW).Close()
    if rank == 0:
        os.mkdir("folder")
        os.mkfifo("pipe")
    world.Barrier()
    before = descriptors()
    for name, amode, error, words in [
        ("missing", MPI.MODE_RDONLY, MPI.ERR_NO_SUCH_FILE, "missing"),
        ("missing/x", RW, MPI.ERR_NO_SUCH_FILE, "missing"),
        ("there", RW | MPI.MODE_EXCL, MPI.ERR_FILE_EXISTS, "there"),
        ("there/x", RW, MPI.ERR_BAD_FILE, "there"),
        ("x" * 300, RW, MPI.ERR_BAD_FILE, "xxx"),
        ("folder", MPI.MODE_RDONLY, MPI.ERR_BAD_FILE, "folder"),
        ("folder", MPI.MODE_RDWR, MPI.ERR_BAD_FILE, "folder"),
        ("pipe", MPI.MODE_RDWR, MPI.ERR_BAD_FILE, "pipe"),
        ("pipe", MPI.MODE_RDONLY, MPI.ERR_BAD_FILE, "pipe"),
        ("there", 0, MPI.ERR_AMODE, "MODE_RDONLY"),
        ("there", MPI.MODE_RDONLY | MPI.MODE_WRONLY, MPI.ERR_AMODE, "MODE_RDWR alone"),
        ("new", MPI.MODE_RDONLY | MPI.MODE_CREATE, MPI.ERR_AMODE, "MODE_CREATE"),
        ("there", MPI.MODE_RDWR | MPI.MODE_SEQUENTIAL, MPI.ERR_AMODE, "MODE_SEQUENTIAL"),
        ("there", 1 << 20, MPI.ERR_AMODE, "bits"),
    ]:
        with fails(error, words if error != MPI.ERR_AMODE or rank == 0 else None):
            MPI.File.Open(world, name, amode)
    if size > 1:
        with fails(MPI.ERR_NOT_SAME, "access mode"):
            MPI.File.Open(world, "there", MPI.MODE_RDONLY if rank else MPI.MODE_RDWR)
        # one rank can't: all fail, and what was made for it is gone
        with fails(MPI.ERR_NO_SUCH_FILE):
            MPI.File.Open(world, "half" if rank == 0 else "missing/half", RW)
        world.Barrier()
        assert not os.path.exists("half")
    with fails(MPI.ERR_NO_SUCH_FILE, "missing"):
        MPI.File.Delete("missing")
    for bad in (3.5, None):
        try:
            MPI.File.Open(world, bad)
        except TypeError:
            pass
        else:
            raise AssertionError(bad)
    assert descriptors() == before
    assert not os.path.exists("new")


def access():
    b = np.zeros(10, "u1")
    f = MPI.File.Open(world, "a", MPI.MODE_WRONLY | MPI.MODE_CREATE)
    for call in (f.Read, f.Read_all, f.Iread, f.Read_shared, f.Read_ordered):
        with fails(MPI.ERR_ACCESS, "MODE_WRONLY"):
            r = call(b)
            if r is not None:
                r.Wait()
    f.Write_at(0, b)
    f.Close()
    f = MPI.File.Open(world, "a")
    for call in (f.Write, f.Write_all, f.Iwrite, f.Write_shared, f.Write_ordered):
        with fails(MPI.ERR_READ_ONLY, "MODE_RDONLY"):
            r = call(b)
            if r is not None:
                r.Wait()
    for call in (f.Set_size, f.Preallocate):
        with fails(MPI.ERR_READ_ONLY):
            call(3)
    with fails(MPI.ERR_ARG, "negative"):
        f.Read_at(-1, b)
    with fails(MPI.ERR_ARG):
        f.Read_at(1 << 62, b)
    with fails(MPI.ERR_ARG, "beginning"):
        f.Seek(-1)
    with fails(MPI.ERR_ARG, "whence"):
        f.Seek(0, 7)
    with fails(MPI.ERR_UNSUPPORTED_DATAREP, "native"):
        f.Set_view(0, MPI.INT, MPI.INT, "external64")
    with fails(MPI.ERR_ARG, "negative"):
        f.Set_view(-1)
    with fails(MPI.ERR_TYPE, "multiple"):
        f.Set_view(0, MPI.INT, MPI.BYTE)
    down = MPI.INT.Create_indexed([1, 1], [2, 0]).Commit()
    with fails(MPI.ERR_TYPE, "ascend"):
        f.Set_view(0, MPI.INT, down)
    early = MPI.INT.Create_indexed([1], [-2]).Commit()
    with fails(MPI.ERR_TYPE, "before its place"):
        f.Set_view(0, MPI.INT, early)
    tight = MPI.INT.Create_vector(3, 1, 4).Create_resized(0, 4).Commit()
    with fails(MPI.ERR_TYPE, "overlap"):
        f.Set_view(0, MPI.INT, tight)
    f.Set_view(0, MPI.INT)
    with fails(MPI.ERR_IO, "etype"):
        f.Read_at(0, b)
    twice = MPI.INT.Create_hindexed([1, 1], [0, 2]).Create_resized(0, 8).Commit()
    f.Set_view(0, MPI.INT, twice)  # for reading that is allowed
    f.Read_at_all(0, np.zeros(2, "i"))
    f.Close()
    with fails(MPI.ERR_FILE, "FILE_NULL"):
        f.Get_size()
    with fails(MPI.ERR_FILE):
        MPI.File.Close(f)
    w = MPI.File.Open(world, "a", RW)
    with fails(MPI.ERR_TYPE, "twice"):
        w.Set_view(0, MPI.INT, twice)
    with fails(MPI.ERR_ARG, "negative"):
        w.Set_size(-1)
    if size > 1:
        with fails(MPI.ERR_NOT_SAME, "the size"):
            w.Set_size(rank)
        # wrong on one rank is wrong on all, and the next call works
        with fails(MPI.ERR_ARG):
            w.Write_at_all(-1 if rank else 0, b)
        last = size - 1
        for error, arguments in (
            (MPI.ERR_ARG, [-1]),
            (MPI.ERR_TYPE, [0, MPI.INT.Create_contiguous(2)]),
            (MPI.ERR_TYPE, [0, MPI.INT, MPI.INT.Create_contiguous(2)]),
            (MPI.ERR_TYPE, [0, MPI.INT, MPI.DATATYPE_NULL]),
            (MPI.ERR_ARG, [0, MPI.INT, 5]),
            (MPI.ERR_ARG, ["a", MPI.INT]),
            (MPI.ERR_UNSUPPORTED_DATAREP, [0, MPI.INT, None, "foreign"]),
            (MPI.ERR_INFO_VALUE, [0, MPI.INT, None, "native", MPI.Info.Create({"cb_nodes": "few"})]),
        ):
            if rank == last:
                refused((MPI.Exception, TypeError), lambda arguments=arguments: w.Set_view(*arguments))
            else:
                with fails(error, f"the arguments of rank {last} of"):
                    w.Set_view(0, MPI.INT)
        with fails(MPI.ERR_INFO_VALUE):
            w.Set_info(MPI.Info.Create({"cb_nodes": "few" if rank == last else "1"}))
        assert w.Get_view()[:2] == (0, MPI.BYTE)
        # different calls are noticed
        with fails(MPI.ERR_NOT_SAME, "do not call the same"):
            w.Write_at_all(0, b) if rank else w.Read_at_all(0, b)
        with fails(MPI.ERR_NOT_SAME, "do not call the same"):
            w.Sync() if rank else w.Close()
        assert w
    w.Write_at_all(10 * rank, b)
    with fails(MPI.ERR_FILE, "begun"):
        w.Write_all_end(b)
    w.Write_at_all_begin(0, b)
    with fails(MPI.ERR_FILE, "one at a time"):
        w.Read_all_begin(b)
    w.Write_at_all_end(b)
    w.Close()
    s = MPI.File.Open(world, "a", MPI.MODE_RDONLY | MPI.MODE_SEQUENTIAL)
    with fails(MPI.ERR_UNSUPPORTED_OPERATION, "MODE_SEQUENTIAL"):
        s.Read_at(0, b)
    s.Read_ordered(np.zeros(2, "u1"))
    s.Set_view(MPI.DISPLACEMENT_CURRENT)
    assert s.Get_view()[0] == 2 * size, s.Get_view()
    s.Close()


def no_space():
    f = MPI.File.Open(world, "/dev/full", MPI.MODE_WRONLY)
    b = np.zeros(1000, "u1")
    with fails(MPI.ERR_NO_SPACE, "/dev/full"):
        f.Write_at(0, b)
    with fails(MPI.ERR_NO_SPACE):
        f.Iwrite_at(0, b).Wait()
    # Only rank 1 writes, and both are told; two phases and one.
    with fails(MPI.ERR_NO_SPACE, "/dev/full"):
        f.Write_at_all(0, b[: 1000 * rank])
    f.Set_view(rank, MPI.BYTE, MPI.BYTE.Create_vector(500, 1, 2).Commit())
    with fails(MPI.ERR_NO_SPACE, "/dev/full"):
        f.Write_all(b[:500])
    f.Close()


def error_handlers():
    seen = []
    handler = MPI.File.Create_errhandler(lambda f, code: seen.append((bool(f), MPI.Get_error_class(code))))
    MPI.FILE_NULL.Set_errhandler(handler)
    with fails(MPI.ERR_NO_SUCH_FILE):
        MPI.File.Open(world, "missing")
    f = MPI.File.Open(world, "a", RW)
    assert f.Get_errhandler() == handler
    with fails(MPI.ERR_ARG):
        f.Write_at(-1, np.zeros(3))
    with fails(MPI.ERR_NO_SPACE):
        g = MPI.File.Open(world, "/dev/full", MPI.MODE_WRONLY)
        g.Iwrite_at(0, np.zeros(3)).Wait()
    assert seen == [(False, MPI.ERR_NO_SUCH_FILE), (True, MPI.ERR_ARG), (True, MPI.ERR_NO_SPACE)], seen
    f.Set_errhandler(MPI.ERRORS_RETURN)
    with fails(MPI.ERR_ARG):
        f.Write_at(-1, np.zeros(3))
    assert len(seen) == 3
    f.Close()


def error_handlers_2():
    f = MPI.File.Open(world, "a", RW)
    f.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    f.Write_at(-1, np.zeros(3))


def descriptors_left():
    MPI.File.Open(world, "a", RW).Close()  # what the core opens once and keeps
    before = descriptors()
    for _turn in range(50):
        f = MPI.File.Open(world, "a", RW)
        g = MPI.File(f)
        assert g == f and g.Get_amode() == RW
        del f
        gc.collect()
        g.Write_at(0, np.arange(3))  # another object still has it
        del g
    f = MPI.File.Open(world, "a", RW | MPI.MODE_DELETE_ON_CLOSE)
    again = MPI.File.fromhandle(f.handle)
    f.Close()
    with fails(MPI.ERR_FILE, "closed"):
        again.Get_size()
    del again
    gc.collect()
    assert descriptors() == before, (descriptors(), before)
    world.Barrier()
    assert not os.path.exists("a")
    for mode in (MPI.MODE_APPEND, 0):
        f = MPI.File.Open(world, "b", RW | mode)
        assert f.Get_position() == f.Get_position_shared() == 0
        f.Write_ordered(np.full(4, rank, "u1"))
        f.Close()
    f = MPI.File.Open(world, "b", RW | MPI.MODE_APPEND)
    assert f.Get_position() == f.Get_position_shared() == 4 * size
    f.Write_ordered(np.full(4, 9, "u1"))
    f.Close()
    assert Path("b").read_bytes() == bytes([0] * 4 + [1] * 4 + [9] * 8)


def interrupts_and_deaths():
    f = MPI.File.Open(world, "a", RW)
    b = np.zeros(10, "u1")
    if rank == 0:
        with interrupted():
            f.Write_at_all(0, b)
        with interrupted():
            f.Close()
        assert f
    reset()
    f.Write_at_all(10 * rank, b)
    assert f.Get_size() == 30
    f.Iwrite_at_all(10 * rank, b).Wait()
    world.Barrier()
    if rank == 2:
        os._exit(0)
    with fails(MPI.ERR_PROC_FAILED, within=10):
        f.Write_at_all(0, b)
    with fails(MPI.ERR_PROC_FAILED, within=10):
        f.Close()


# Holds a lock on the first ten bytes of the file a.
HOLDER = """
import fcntl, os, sys
fcntl.lockf(os.open("a", os.O_RDWR), fcntl.LOCK_EX, 10)
print("held", flush=True)
sys.stdin.read()
"""


def given_up():
    """A rank gives up a collective access: the others, who come later, are told, and the next one is whole."""
    f = MPI.File.Open(world, "a", RW)
    b, into = np.full(10, rank, "u1"), np.zeros(10 * size, "u1")
    for call in (f.Write_at_all, f.Read_at_all):
        if rank == 0:
            with interrupted():
                call(10 * rank, b)
            world.Barrier()
        else:
            world.Barrier()
            with fails(MPI.ERR_OTHER, "given it up"):
                call(10 * rank, b)
        b[:] = rank
        f.Write_at_all(10 * rank, b)
        f.Read_at_all(0, into)
        assert into.tolist() == [r for r in range(size) for _ in range(10)]
    f.Iwrite_at_all(10 * rank, b).Wait()
    f.Set_atomicity(True)
    if rank == 0:
        holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdout.readline() == b"held\n"
        world.Barrier()
        with interrupted():  # between the exchanges
            f.Write_at_all(10 * rank, b)
        holder.stdin.close()
        holder.stdout.close()
        holder.wait()
    else:
        world.Barrier()
        with fails(MPI.ERR_OTHER, "given it up"):
            f.Write_at_all(10 * rank, b)
    f.Write_at_all(10 * rank, b)
    f.Close()


def end_in_the_middle():
    f = MPI.File.Open(world, "a", RW)
    f.Set_view(8 * rank, MPI.LONG, MPI.LONG.Create_vector(200000, 1, size).Commit())
    b = np.zeros(200000, "l")
    f.Write_at_all(0, b)
    if rank == 1:
        threading.Timer(0.4, lambda: os._exit(0)).start()
    with fails(MPI.ERR_PROC_FAILED, "rank 1", within=20):
        while True:
            f.Write_at_all(0, b)
    with fails(MPI.ERR_PROC_FAILED, within=20):
        MPI.File.Open(world, "b", RW)
    world.sendrecv(None, 2 - rank, source=2 - rank)  # neither ends before the other one knows of rank 1
    del f
    gc.collect()
    assert not descriptors(), descriptors()


def interrupted_open():
    if rank == 0:
        with interrupted():
            MPI.File.Open(world, "a", RW | MPI.MODE_EXCL)
        assert not os.path.exists("a") and not descriptors()
    reset()
    f = MPI.File.Open(world, "a", RW | MPI.MODE_EXCL | MPI.MODE_DELETE_ON_CLOSE)
    f.Close()


def permissions(secret, new):
    os.seteuid(65534)
    try:
        with fails(MPI.ERR_ACCESS, "permissions"):
            MPI.File.Open(MPI.COMM_SELF, secret)
        with fails(MPI.ERR_ACCESS, "permissions"):
            MPI.File.Open(MPI.COMM_SELF, new, RW)
        with fails(MPI.ERR_ACCESS):
            MPI.File.Delete(secret)
    finally:
        os.seteuid(0)


def file_system_that_fills_up(folder):
    f = MPI.File.Open(world, os.path.join(folder, "x"), RW | MPI.MODE_DELETE_ON_CLOSE)
    b = np.ones(1 << 20, "u1")
    f.Set_view(rank, MPI.BYTE, MPI.BYTE.Create_vector(1 << 20, 1, 2).Commit())
    with fails(MPI.ERR_NO_SPACE, "space"):
        f.Write_all(b)
    with fails(MPI.ERR_NO_SPACE):
        f.Preallocate(4 << 20)
    f.Set_size(0)
    f.Set_view()
    f.Write_at_all(rank << 10, b[: 1 << 10])  # works again
    assert f.Get_size() == 2 << 10
    f.Close()
    assert not os.listdir(folder)
