"""Use MPI when the main program has ended: in threads, functions of atexit, and the __del__ of objects."""

import atexit
import builtins
import os
import sys
import threading
import time
import types

how = sys.argv[1]


def say(what, number):
    os.write(1, f"{world.rank} {what} {number}\n".encode())  # when the object goes, there may be no sys.stdout


def before():
    from gormapy import MPI

    say("before", MPI.COMM_WORLD.allreduce(1))


if how in ("atexit_before_the_import", "everything", "without_threads"):
    atexit.register(before)

import numpy as np  # noqa: E402

from gormapy import MPI  # noqa: E402

world = MPI.COMM_WORLD
theirs = world.Dup()


def in_thread():
    time.sleep(0.2)
    say("thread", theirs.allreduce(1))


class Owner:
    """An object with everything that a program has of MPI, and gives back when it goes."""

    def __init__(self):
        self.win = MPI.Win.Allocate(8, comm=world)
        self.comm = world.Dup()
        self.type = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
        self.persistent = self.comm.Send_init(np.zeros(1), self.comm.rank)
        self.use()

    def use(self):
        number = self.comm.allreduce(1)
        assert self.comm.sendrecv({"a": 1}, self.comm.rank) == {"a": 1}
        self.win.Fence()
        self.win.Put(memoryview(bytearray(8)), 0)
        self.win.Fence()
        received = self.comm.irecv()
        self.comm.send([1, None], self.comm.rank)
        assert received.wait() == [1, None]
        self.persistent.Start()
        self.comm.Recv(memoryview(bytearray(8)).cast("d"))
        self.persistent.Wait()
        assert MPI.COMM_WORLD.bcast("text") == "text"
        MPI.DOUBLE.Create_contiguous(2).Free()
        return number

    def __del__(self):
        number = self.use()
        self.win.Free()
        self.type.Free()
        self.persistent.Free()
        self.comm.Free()
        say("gone", number)


if how in ("thread", "everything"):
    threading.Thread(target=in_thread).start()
if how in ("atexit", "everything", "without_threads"):
    atexit.register(lambda: say("registered", world.allreduce(1)))
if how.startswith("object") or how in ("everything", "without_threads"):
    owner = Owner()
    if how == "object_in_a_cycle":
        owner.owner = owner
    if how == "object_in_builtins":
        builtins.kept = owner
    if how == "object_of_gormapy":
        MPI.kept = owner
    if how == "object_of_a_module":
        sys.modules["some_module"] = some_module = types.ModuleType("some_module")
        some_module.kept = owner
        some_module.cycle = some_module
if how == "daemon":
    threading.Thread(target=lambda: world.recv(source=world.rank, tag=99), daemon=True).start()
    time.sleep(0.1)
if how == "file":
    file = MPI.File.Open(world, "left-open", MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_ordered(b"1")
if sys.argv[2:] == ["exit"]:
    sys.exit(3)
if sys.argv[2:] == ["fail"] and world.rank == 1:
    raise ValueError("nothing")
