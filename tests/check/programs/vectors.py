"""Instructions that access several elements at once: gathers, compressed stores, repeated moves; many small mappings."""

import ctypes
import mmap

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank


def _window(n=1024):
    win = MPI.Win.Allocate(8 * n, 8, comm=world)
    mem = np.frombuffer(win, "f8")
    mem[:100] = 2
    world.Barrier()
    win.Lock_all()
    return win, mem


def _close(win):
    win.Unlock_all()
    win.Free()


def functions_of_every_other_element():  # check: clean n=2
    win, mem = _window()
    odd = MPI.DOUBLE.Create_vector(50, 1, 2).Commit()
    win.Put([np.ones(50), 50, MPI.DOUBLE], other, (1, 1, odd))
    for function in (np.sqrt, np.abs, np.exp, np.sin, np.log, np.square, np.floor):
        function(mem[0:100:2])
        function(mem[98::-2])
    _close(win)


def functions_of_every_fourth_element():  # check: local-access n=2
    win, mem = _window()
    every = MPI.DOUBLE.Create_vector(25, 1, 4).Commit()
    if rank == 0:
        win.Put([np.ones(25), 25, MPI.DOUBLE], 1, (0, 1, every))  # 1: Put
    else:
        np.sqrt(mem[0:100:4])  # 2: load
    _close(win)


def sorted_beside_a_put():  # check: clean n=2
    win, mem = _window()
    win.Put(np.ones(100), other, 101)
    mem[:101].sort()
    np.frombuffer(win, "i4")[:202].sort()
    np.compress(mem[:101] > 1, mem[:101])
    _close(win)


def long_double_beside_a_put():  # check: clean n=2
    win, _ = _window()
    numbers = np.frombuffer(win, "g")
    win.Put(np.ones(1), other, 4)
    print(numbers[1] + numbers[3])
    _close(win)


def copied_and_stored():  # check: origin-reuse n=2
    win, _ = _window(1 << 16)
    mine = np.zeros(1 << 16)
    win.Put(mine, other)  # 1: Put
    mine.copy()
    bytes(mine[:40_000])
    mine[7] = 3  # 2: store
    _close(win)


def filled_twice():  # check: result-early n=2
    win, _ = _window(1 << 16)
    got = np.zeros(1 << 16)
    win.Get(got[-1:], other)  # 1: Get
    memoryview(got[:-1]).cast("B")[:] = bytes(got.nbytes - 8)
    got[-1] = 3  # 2: store
    _close(win)


def one_place_updated_many_times():  # check: clean n=2
    win, mem = _window()
    one = np.ones(1)
    for _ in range(10_000):
        win.Accumulate(one, 0, 200)
    win.Flush(0)
    world.Barrier()
    if rank == 0:
        assert mem[200] == 10_000 * size
    _close(win)


def updated_many_times_and_loaded():  # check: local-access n=2
    win, mem = _window()
    one = np.ones(1)
    if rank == 1:
        for _ in range(10):
            win.Accumulate(one, 0, 200)  # 1: Accumulate
    else:
        print(mem[200])  # 2: load
    _close(win)


def every_second_page():  # check: clean n=1
    win, mem = _window(70_000 * 2 * 512)
    for _ in range(51_000):  # more accesses than are looked at one by one
        mem[0]
    print(mem[::1024].sum())
    _close(win)


# push %rbx; xor %eax, %eax; xor %edx, %edx; mov $5, %ebx; mov $6, %ecx; lock cmpxchg16b (%rdi); pop %rbx; ret
# which sets two elements to 5 and 6, if they are 0
SWAP = bytes.fromhex("5331c031d2bb05000000b906000000f0480fc70f5bc3")


def two_elements_swapped():  # check: local-access n=2
    win, _ = _window()
    mem = np.frombuffer(win, "i8")
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(SWAP)
        place = ctypes.c_char.from_buffer(code)
        swap = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(place))
        if rank == 0:
            win.Put(np.zeros(1), 1, 201)  # 1: Put
        else:
            swap(mem.ctypes.data + 8 * 200)  # 2: store
        del place
    _close(win)
