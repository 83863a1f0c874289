"""Watched memory in files and sockets, and signals that come while an access is told of."""

import errno
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


def window_in_vectors_of_a_file():  # check: clean n=2
    win, mem = _window(2000)
    with tempfile.TemporaryFile(buffering=0) as file:
        fd, head = file.fileno(), bytearray(8)
        whole = mem.nbytes + len(head)
        assert os.writev(fd, [head, mem[:5], mem[5:]]) == whole
        assert os.pwritev(fd, [head, mem], whole) == whole
        os.lseek(fd, 0, os.SEEK_SET)
        mem[:10] = -1
        assert os.readv(fd, [head, mem[:5], mem[5:1000], mem[1000:]]) == whole
        assert (mem[:10] == rank).all()
        mem[:10] = -1
        assert os.preadv(fd, [head, mem], whole) == whole
        assert (mem[:10] == rank).all()
        assert os.preadv(fd, [mem[1500:]], 2 * whole - 8) == 8
        try:
            os.readv(fd, [mem[k : k + 1] for k in range(1025)])
        except OSError as error:
            assert error.errno == errno.EINVAL
        try:
            os.writev(-1, [mem])
        except OSError as error:
            assert error.errno == errno.EBADF
    win.Fence()
    win.Free()


def window_in_messages_of_a_socket():  # check: clean n=2
    win, mem = _window(2000)
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    assert one.sendmsg([b"12345678", mem[:5], mem[5:10]]) == 88
    assert two.recvmsg_into([bytearray(8), mem[1000:1007], mem[1007:1100]])[0] == 88
    assert (mem[1000:1010] == rank).all()
    one.close()
    two.close()
    one, two = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    two.bind(("127.0.0.1", 0))
    assert one.sendto(mem[:10], two.getsockname()) == 80
    two.settimeout(10)
    assert two.recvfrom_into(mem[1500:])[0] == 80
    assert (mem[1500:1510] == rank).all()
    one.close()
    two.close()
    win.Fence()
    win.Free()


def vectors_read_into_an_origin():  # check: origin-reuse n=2
    win, _ = _window()
    mine, other_array = np.ones(4), np.ones(4)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(64))
        win.Put(mine, other)  # 1: Put
        os.preadv(file.fileno(), [other_array, mine], 0)  # 2: store
    win.Fence()
    win.Free()


def vectors_read_before_an_origin():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(4)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(24))
        win.Put(mine[2:], other)
        os.preadv(file.fileno(), [mine[:1], mine[1:2]], 0)
    win.Fence()
    win.Free()


def second_vector_of_a_page_read_into_an_origin():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(4)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(24))
        win.Put(mine[2:], other)  # 1: Put
        os.preadv(file.fileno(), [mine[:1], mine[1:3]], 0)  # 2: store
    win.Fence()
    win.Free()


def vectors_written_from_a_result():  # check: result-early n=2
    win, _ = _window()
    got = np.zeros(4)
    with tempfile.TemporaryFile(buffering=0) as file:
        win.Get(got, other)  # 1: Get
        os.writev(file.fileno(), [b"head", got])  # 2: load
    win.Fence()
    win.Free()


def datagram_received_into_an_origin():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(4)
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.send(bytes(32))
    win.Put(mine, other)  # 1: Put
    two.recvmsg_into([mine])  # 2: store
    one.close()
    two.close()
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
