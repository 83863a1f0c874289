"""What is so long that several threads copy it: the ends of copies that faults, signals and deaths break off."""

import mmap
import os
import signal
import sys
import threading
import time

import numpy as np
from badmemory import PAGE, protect
from rankside import MPI, fails, rank, size, world

MIB = 1 << 20
LONG = 8 * MIB


def region(n):
    """Return n bytes of memory that begins with a page."""
    array = np.frombuffer(mmap.mmap(-1, n), "B")
    array[:] = rank + 1
    return array


def page(array, at):
    """Return the page of an array in which a byte lies."""
    return array[at // PAGE * PAGE :][:PAGE]


PLACES = (0, LONG // 3, LONG - 1)


def faults_of_messages():
    for bad in PLACES:
        for whose in range(2):
            array = region(LONG)
            protect(page(array, bad), rank == whose)
            if rank == 0:
                try:
                    world.Send(array, 1)
                except MPI.Exception:
                    assert whose == 0
            elif whose == 1:
                with fails(MPI.ERR_BUFFER):
                    world.Recv(array, 0)
            else:
                try:
                    world.Recv(array, 0)
                except MPI.Exception as error:
                    assert error.Get_error_class() in (MPI.ERR_BUFFER, MPI.ERR_OTHER), error
            world.Barrier()
            protect(page(array, bad), False)
            array[:] = rank + 1
            if rank == 0:
                world.Send(array, 1)
            else:
                world.Recv(array, 0)
                assert (array == 1).all()
            world.Barrier()


def faults_of_gather():
    whole, part = region(LONG * size), region(LONG)
    for bad in PLACES:
        for whose in range(size):
            array = region(LONG * size if rank == 0 else LONG)
            protect(page(array, bad), rank == whose)
            if rank == 0:
                with fails(MPI.ERR_BUFFER):
                    world.Gather(part, array if whose == 0 else whole, 0)
            else:
                try:
                    world.Gather(array, None, 0)
                except MPI.Exception as error:
                    assert error.Get_error_class() in (MPI.ERR_BUFFER, MPI.ERR_OTHER), error
            world.Barrier()
            world.Gather(part, whole if rank == 0 else None, 0)
            if rank == 0:
                assert (whole.reshape(size, LONG) == np.arange(1, size + 1).reshape(size, 1)).all()
                whole[:] = 0


def faults_of_reduce():
    """Rank 0 folds all, by several threads if that is faster. Its operand, its result or the other one's operand faults."""
    good, result = region(LONG), region(LONG)
    for bad in PLACES:
        for what in "operand", "result", "other":
            array = region(LONG)
            protect(page(array, bad), what != "other" if rank == 0 else what == "other")
            error = None
            try:
                if rank == 0:
                    world.Reduce(array if what == "operand" else good, array if what == "result" else result, MPI.BXOR)
                else:
                    world.Reduce(array if what == "other" else good, None, MPI.BXOR)
            except MPI.Exception as e:
                error = e.Get_error_class()
            if rank == (what == "other"):
                assert error == MPI.ERR_BUFFER, (what, error)
            else:  # rank 1 may have sent all that it had
                assert error in (MPI.ERR_BUFFER, MPI.ERR_OTHER) or (rank and error is None), (what, error)
            world.Barrier()
            result[:] = 0
            world.Reduce(good, result if rank == 0 else None, MPI.BXOR)
            assert rank or (result == 1 ^ 2).all()


def faults_of_windows():
    for bad in PLACES:
        array, mine = region(LONG), region(LONG)
        win = MPI.Win.Create(array, 1, comm=world)
        win.Lock_all()
        for faulting, error in (array, MPI.ERR_WIN), (mine, MPI.ERR_BUFFER):
            protect(page(faulting, bad), rank == (1 if faulting is array else 0))
            world.Barrier()
            if rank == 0:
                for call in win.Put, win.Get:
                    with fails(error):
                        call(mine, 1)
            world.Barrier()
            protect(page(faulting, bad), False)
        world.Barrier()
        if rank == 0:
            mine[:] = 7
            win.Put(mine, 1)
            mine[:] = 0
            win.Get(mine, 1)
            win.Flush(1)
            assert (mine == 7).all()
        win.Unlock_all()
        world.Barrier()
        win.Free()


class _Interrupt(Exception):
    pass


def interrupted():
    """What a call copies that a signal's handler has ended does not come later."""
    array = region(64 * MIB)
    win = MPI.Win.Create(array, 1, comm=world)
    win.Lock_all()
    world.Barrier()
    if rank == 0:
        armed, caught = False, 0
        mine = np.empty(64 * MIB, "B")

        def interrupt(*_):
            if armed:
                raise _Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.003, 0.0041)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                armed = True
                while True:
                    win.Get(mine, 1)
            except _Interrupt:
                armed = False
                caught += 1
                mine[:] = 99
                time.sleep(0.002)
                assert (mine == 99).all()
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert caught > 5
    world.Barrier()
    win.Unlock_all()
    win.Free()


def threads():
    """Several threads copy at the same time, and share the workers."""
    array = region(LONG)
    win = MPI.Win.Create(array, 1, comm=world)
    win.Lock_all()
    world.Barrier()
    wrong = []

    def work(target):
        got = np.zeros(LONG, "B")
        for _ in range(20):
            got[:] = 0
            win.Get(got, target)
            win.Flush(target)
            if not (got == target + 1).all():
                wrong.append(target)

    workers = [threading.Thread(target=work, args=(k % size,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong, wrong
    world.Barrier()
    win.Unlock_all()
    win.Free()


def killed():
    """A copy from a rank that is killed meanwhile ends with the error of that."""
    array = region(64 * MIB)
    pids = world.allgather(os.getpid())
    if rank == 1:
        while True:
            world.Send(array, 0)
    killer = threading.Timer(0.3, os.kill, (pids[1], signal.SIGKILL))
    killer.start()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            world.Recv(array, 1)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            print("told")
            sys.stdout.flush()
            os._exit(0)
    raise AssertionError("no error")
