"""Watched memory in files and sockets, and signals that come while an access is told of."""

import ctypes
import errno
import mmap
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


def buffers_in_one_call_behind_flushes():  # check: clean n=2
    win, _ = _window()
    end, start = os.pipe()
    one, two = socket.socketpair()
    win.Lock_all()
    with tempfile.TemporaryFile(buffering=0) as file:
        for call in (
            lambda *buffers: os.writev(start, buffers),
            lambda *buffers: os.readv(end, buffers),
            lambda *buffers: one.sendmsg(buffers),
            lambda *buffers: two.recvmsg_into(buffers)[0],
            lambda *buffers: os.pwritev(file.fileno(), buffers, 8),
            lambda *buffers: os.preadv(file.fileno(), buffers, 8),
        ):
            mine, more = np.arange(4.0), np.arange(4.0)
            for _ in range(4):
                win.Put(mine, other)
                win.Put(more, other, 4)
                win.Flush(other)
            assert call(mine, more) == 64
            assert mine[3] == more[3] == 3
    win.Unlock_all()
    for file in (one, two):
        file.close()
    os.close(start)
    os.close(end)
    win.Free()


def buffers_in_one_call_before_a_flush():  # check: origin-reuse n=2
    win, _ = _window()
    mine, more = np.ones(4), np.ones(4)
    end, start = os.pipe()
    os.write(start, bytes(64))
    win.Lock_all()
    win.Put(mine, other)  # 1: Put
    os.readv(end, [more, mine])  # 2: store
    win.Unlock_all()
    os.close(start)
    os.close(end)
    win.Free()


def store_in_a_handler():  # check: origin-reuse n=2
    win, _ = _window()
    mine, calls = np.ones(64), []

    def handle(*_):
        mine[0] = 7.0  # 2: store
        calls.append(1)

    signal.signal(signal.SIGALRM, handle)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        while not calls:
            mine.sum()
    win.Unlock_all()
    win.Free()


def store_behind_handlers_that_load():  # check: origin-reuse n=2
    win, _ = _window()
    mine, calls = np.ones(64), []
    signal.signal(signal.SIGALRM, lambda *_: calls.append(mine[3]))
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        while len(calls) < 50:
            mine.sum()
        signal.setitimer(signal.ITIMER_REAL, 0)
        mine[0] = 7.0  # 2: store
    win.Unlock_all()
    win.Free()


def store_behind_a_fork():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(4)
    win.Lock_all()
    if rank == 0:
        win.Put(mine, 1)  # 1: Put
        child = os.fork()
        if child == 0:
            mine[0] = 5.0  # of the child's own copy
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        mine[1] = 5.0  # 2: store
    win.Unlock_all()
    win.Free()


# push %rdi; mov $186, %eax; syscall; mov %eax, %esi; mov $39, %eax; syscall; mov %eax, %edi; mov $14, %edx;
# mov $234, %eax; syscall; pop %rdi; movabs $5.0, %rax; mov %rax, (%rdi); ret
# which sends the thread SIGALRM, by tgkill, and stores
RAISE_AND_STORE = bytes.fromhex(
    "57b8ba0000000f0589c6b8270000000f0589c7ba0e000000b8ea0000000f055f48b80000000000001440488907c3"
)


def store_while_an_exception_waits():  # check: origin-reuse n=2
    win, _ = _window()
    mine, came = np.ones(4), 0

    def late(*_):
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    win.Lock_all()
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(RAISE_AND_STORE)
        place = ctypes.c_char.from_buffer(code)
        store = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(place))
        win.Put(mine, other)  # 1: Put
        try:
            store(mine.ctypes.data)  # 2: store
        except _Late:
            came += 1
        del place
    assert came == 1
    assert mine[0] == 5
    win.Unlock_all()
    signal.signal(signal.SIGALRM, before)
    win.Free()
