"""Watched memory in files and sockets, and signals that come while an access is told of."""

import os
import signal
import socket
import sys
import tempfile
import threading
import time

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank


def _window(n=100_000):
    win = MPI.Win.Allocate(8 * n, 8, comm=world)
    mem = np.frombuffer(win, "f8")
    mem[:10] = rank
    win.Fence()
    return win, mem


def window_in_a_file():  # check: clean n=2
    win, mem = _window()
    with tempfile.TemporaryFile() as file:
        np.save(file, mem)
        file.write(mem)
        mem.tofile(file)
        file.seek(-mem.nbytes, os.SEEK_END)
        assert file.readinto(mem) == mem.nbytes
        assert mem[9] == rank
        win.Fence()
    win.Free()


def window_in_a_socket():  # check: clean n=2
    win, mem = _window(1000)
    one, two = socket.socketpair()
    one.sendall(mem[:10])
    assert two.recv_into(mem[10:]) == 80
    assert mem[19] == rank
    one.close()
    two.close()
    win.Fence()
    win.Free()


def window_in_a_file_of_mpi():  # check: clean n=2
    win, mem = _window()
    path = world.bcast(tempfile.mktemp() if rank == 0 else None)
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    file.Write_at_all(rank * mem.nbytes, mem)
    file.Sync()
    world.Barrier()
    file.Read_at_all(other * mem.nbytes, mem)
    assert mem[9] == other
    file.Close()
    win.Fence()
    win.Free()


def file_read_into_an_origin():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(10_000)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(80_000))
        file.seek(0)
        win.Put(mine, other)  # 1: Put
        file.readinto(mine)  # 2: store
    win.Fence()
    win.Free()


def file_of_mpi_read_into_an_origin():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(10)
    path = world.bcast(tempfile.mktemp() if rank == 0 else None)
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    file.Write_at_all(80 * rank, mine)
    win.Put(mine, other)  # 1: Put
    file.Read_at(0, mine)  # 2: Read_at|store
    file.Close()
    win.Fence()
    win.Free()


def file_read_behind_an_origin():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(10_000)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(8_000))
        file.seek(0)
        win.Put(mine[:10], other)
        file.readinto(mine[10:])
    win.Fence()
    win.Free()


def signals_blocked_in_a_thread():  # check: clean n=2
    win, mem = _window()

    def work():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        mem[:10] += 1

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    win.Fence()
    win.Free()


def access_without_room_for_frames():  # check: clean n=2
    win, mem = _window()

    def deep(n):
        return mem[0] if n == 0 else deep(n - 1)

    before, got = sys.getrecursionlimit(), 0
    sys.setrecursionlimit(300)
    for n in range(200, 300):
        try:
            got += deep(n) == rank
        except RecursionError:
            break
    time.sleep(0)
    sys.setrecursionlimit(before)
    assert got > 30
    win.Fence()
    win.Free()


class _Late(Exception):
    pass


def exception_of_a_signal_handler():  # check: clean n=2
    win, mem = _window()

    def late(*_):
        raise _Late

    before, came = signal.signal(signal.SIGALRM, late), 0
    for _ in range(5):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            end = time.monotonic() + 10
            while time.monotonic() < end:
                mem[3] += 1
        except _Late:
            came += 1
    signal.signal(signal.SIGALRM, before)
    assert came == 5
    win.Fence()
    win.Free()
