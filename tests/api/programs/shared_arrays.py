"""The programs of test_shared_arrays.py: NumPy's own arrays in the arena. Those with ranks import rankside."""

import asyncio
import gc
import multiprocessing as mp
import os
import random
import resource
import subprocess
import sys
import threading
import time

import numpy as np

import gormapy
from gormapy._ext import fast

LEAST = 32768  # bytes: the default of GORMAPY_SHARED_ARRAYS_FROM
MIB = 1 << 20


def address(array):
    return array.__array_interface__["data"][0]


def is_shared(array):
    """Report whether the array's memory is in this process's arena."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if low <= address(array) < high:
                return "gormapy-arena" in line
    raise AssertionError("the array's memory is not mapped")


def address_space():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def mapped():
    with open("/proc/self/maps") as maps:
        return sum(1 for line in maps)


def used():
    """Return how many bytes of memory the arena has."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "gormapy-arena" in os.readlink(f"/proc/self/fd/{fd}"):
                return os.stat(int(fd)).st_blocks * 512
        except OSError:  # the folder's own
            pass
    return 0


def handler(array=None):
    multiarray = sys.modules.get("numpy._core.multiarray") or sys.modules["numpy.core.multiarray"]
    return multiarray.get_handler_name() if array is None else multiarray.get_handler_name(array)


def more_than_there_is():
    for make in (np.empty, np.zeros, np.ones):
        with gormapy.shared_arrays():
            try:
                make(1 << 44, "u1")
            except MemoryError:
                continue
            raise AssertionError("16 TiB were allocated")


def block_has_its_larger_arrays_in_the_arena():
    before = np.ones(MIB)
    with gormapy.shared_arrays():
        small, large = np.empty(LEAST - 1, "u1"), np.empty(LEAST, "u1")
        made = {
            "zeros": np.zeros(MIB),
            "ones": np.ones((100, 100), order="F"),
            "arange": np.arange(100_000),
            "sum": before + 1,
            "copy": before.copy(),
            "astype": before.astype("i4"),
            "like": np.empty_like(before),
            "records": np.zeros(5000, [("a", "i4"), ("b", "f8")]),
            "objects": np.full(10_000, None),
            "text": np.array(["some text"] * 5000),
            "joined": np.concatenate([before, before]),
            "random": np.random.default_rng(1).random(50_000),
            "sorted": np.sort(before),
        }
        view = made["arange"][1000:]
        with gormapy.shared_arrays(False):
            ordinary = np.ones(MIB)
            with gormapy.shared_arrays():
                inner = np.ones(MIB)
        again = np.ones(MIB)
    after = np.ones(MIB)
    assert not is_shared(before) and not is_shared(after) and not is_shared(ordinary)
    assert not is_shared(small) and is_shared(large) and is_shared(inner) and is_shared(again) and is_shared(view)
    for name, array in made.items():
        assert is_shared(array), name
        assert address(array) % 64 == 0, name
    assert (made["sum"] == 2).all() and not made["zeros"].any() and view[0] == 1000 and made["objects"][9999] is None
    assert handler() == "default_allocator" and handler(large) == "gormapy"

    @gormapy.shared_arrays()
    def decorated():
        return np.ones(MIB)

    assert is_shared(decorated()) and is_shared(decorated()) and not is_shared(np.ones(MIB))
    try:
        with gormapy.shared_arrays():
            raise LookupError
    except LookupError:
        assert not is_shared(np.ones(MIB)), "an exception ends the block"


def zeros_are_zero_and_lazy():
    with gormapy.shared_arrays():
        for nbytes in (LEAST, 100_000, MIB, 5 * MIB, 40 * MIB, 70 * MIB):
            np.empty(nbytes, "u1").fill(255)  # its memory is free, and full of ones
            zeros = np.zeros(nbytes, "u1")
            assert not zeros.any(), nbytes
            del zeros
        before = used()
        huge = np.zeros(4 << 30, "u1")
        huge[1 << 31] = 1
        assert used() <= before + 4 * MIB, (before, used())
        assert huge[(1 << 31) - 5000 : (1 << 31) + 5000].sum() == 1


def resized_arrays_keep_their_elements():
    with gormapy.shared_arrays():
        array = np.arange(10_000)
        for n in (20_000, 5 * MIB, 15_000, 10_000, 9_000, 10, 1, 30_000, 0, 8_000):
            old = array.copy()
            array.resize(n, refcheck=False)
            kept = min(n, old.size)
            assert (array[:kept] == old[:kept]).all() and not array[kept:].any(), n
        small = np.arange(10)
        small.resize(100_000, refcheck=False)
        assert (small[:10] == np.arange(10)).all() and not small[10:].any()
        joined = np.append(np.arange(50_000), np.arange(50_000))
        assert is_shared(joined) and joined.sum() == 2 * np.arange(50_000).sum()
        assert is_shared(np.resize(np.arange(1000), 100_000))
        assert (np.fromiter(range(200_000), "i8") == np.arange(200_000)).all()
        whole = np.arange(100_000)
    whole.resize(200_000, refcheck=False)  # after the block, too
    assert is_shared(whole) and whole[99_999] == 99_999 and whole[100_000:].sum() == 0


def threads_and_tasks_of_a_block():
    seen = {}

    def look(name):
        seen[name] = is_shared(np.ones(MIB))

    async def task(name):
        await asyncio.sleep(0)
        look(name)

    async def block(name):
        with gormapy.shared_arrays():
            await asyncio.gather(task(name), asyncio.sleep(0.01))
            look(name + " itself")

    async def both():
        await asyncio.gather(block("inside"), task("beside"))

    begun, done = threading.Event(), threading.Event()
    earlier = threading.Thread(target=lambda: (begun.wait(), look("earlier thread"), done.set()))
    earlier.start()
    with gormapy.shared_arrays():
        begun.set()
        done.wait()
    earlier.join()
    asyncio.run(both())
    assert seen == {"earlier thread": False, "inside": True, "inside itself": True, "beside": False}, seen


def everywhere():
    early = np.ones(MIB)
    numbers = threading.Event()
    seen = []
    earlier = threading.Thread(target=lambda: (numbers.wait(), seen.append(is_shared(np.ones(MIB)))))
    earlier.start()
    from rankside import rank, size, world

    numbers.set()
    earlier.join()
    later = threading.Thread(target=lambda: seen.append(is_shared(np.ones(MIB))))
    later.start()
    later.join()
    assert seen == [True, True], seen

    async def task():
        return is_shared(np.ones(MIB))

    assert asyncio.run(task()) and is_shared(np.zeros(MIB)) and not is_shared(np.zeros(100)) and not is_shared(early)
    with gormapy.shared_arrays(False):
        assert not is_shared(np.ones(MIB))
        with gormapy.shared_arrays():
            assert is_shared(np.ones(MIB))
    assert is_shared(np.ones(MIB))
    early.resize(2 * MIB, refcheck=False)  # by the handler that made it
    assert early[:MIB].all() and not early[MIB:].any()
    del early
    total = np.empty(MIB)
    world.Allreduce(np.full(MIB, rank + 1.0), total)
    assert (total == size * (size + 1) / 2).all()


def nothing_changes_without_the_option():
    from rankside import world

    assert handler() == "default_allocator" and not is_shared(np.ones(MIB)) and world.size >= 1


def another_size(least):
    with gormapy.shared_arrays():
        assert is_shared(np.empty(least, "u1"))
        if least:
            assert not is_shared(np.empty(least - 1, "u1"))


# Handlers of other libraries. This one is made with ctypes, and counts.


class Counting:
    def __init__(self):
        import ctypes as c

        libc = c.CDLL(None)
        libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = c.c_void_p
        libc.malloc.argtypes, libc.calloc.argtypes = [c.c_size_t], [c.c_size_t, c.c_size_t]
        libc.realloc.argtypes, libc.free.argtypes = [c.c_void_p, c.c_size_t], [c.c_void_p]
        self.live, self.made = {}, 0

        def malloc(ctx, n):
            return self.note(libc.malloc(max(n, 1)), n)

        def calloc(ctx, count, size):
            return self.note(libc.calloc(max(count, 1), max(size, 1)), count * size)

        def realloc(ctx, p, n):
            assert self.live.pop(p, None) is not None, "memory of somebody else is resized"
            return self.note(libc.realloc(p, max(n, 1)), n)

        def free(ctx, p, n):
            if self.live.pop(p, None) is None:
                self.strange = p
            libc.free(p)

        pointer = c.c_void_p
        kinds = [
            c.PYFUNCTYPE(pointer, pointer, c.c_size_t),
            c.PYFUNCTYPE(pointer, pointer, c.c_size_t, c.c_size_t),
            c.PYFUNCTYPE(pointer, pointer, pointer, c.c_size_t),
            c.PYFUNCTYPE(None, pointer, pointer, c.c_size_t),
        ]

        class Handler(c.Structure):
            _fields_ = [
                ("name", c.c_char * 127),
                ("version", c.c_uint8),
                ("ctx", pointer),
                *((f"f{i}", kind) for i, kind in enumerate(kinds)),
            ]

        self.strange = None
        self.table = Handler(
            b"counting", 1, None, *(kind(f) for kind, f in zip(kinds, (malloc, calloc, realloc, free), strict=True))
        )
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [pointer, c.c_char_p, pointer]
        self.capsule = new(c.addressof(self.table), b"mem_handler", None)
        umath = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
        get = c.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = pointer, [c.py_object, c.c_char_p]
        api = c.cast(get(umath._ARRAY_API, None), c.POINTER(pointer))
        self.set = c.PYFUNCTYPE(c.py_object, c.py_object)(api[304])

    def note(self, p, n):
        self.live[p] = n
        self.made += 1
        return p


def other_handlers_keep_theirs():
    other = Counting()
    default = other.set(other.capsule)
    theirs = np.ones(MIB)
    assert not is_shared(theirs) and address(theirs) in other.live
    with gormapy.shared_arrays():  # stands in front of it
        large, small = np.ones(MIB), np.ones(100)
        assert is_shared(large) and address(small) in other.live and address(large) not in other.live
        grown = np.ones(100)
        grown.resize(MIB, refcheck=False)
        assert address(grown) in other.live and grown.sum() == 100
        other.set(default)  # ours is replaced meanwhile
        plain = np.ones(MIB)
        assert not is_shared(plain) and address(plain) not in other.live
        with gormapy.shared_arrays():
            inner = np.ones(MIB)
            assert is_shared(inner)
    made = np.ones(MIB)  # the block's end has restored the handler that was there before it
    assert address(made) in other.live
    fast.arrays_everywhere()  # a handler that a program has set holds
    assert not is_shared(np.ones(MIB))
    other.set(default)
    assert is_shared(np.ones(MIB))
    pages = used()
    assert large.sum() == inner.sum() == MIB and small.sum() == 100
    del theirs, large, small, grown, plain, inner, made
    gc.collect()
    assert not other.live and other.made >= 5 and other.strange is None, (other.live, other.strange)
    assert used() <= pages
    assert (np.zeros(MIB) == 0).all()


# Children.


def child(check):
    """Run a function in a forked child, and return its process."""
    pid = os.fork()
    if pid == 0:
        try:
            check()
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid


def ended_well(pid):
    assert os.waitpid(pid, 0)[1] == 0


def forked_children_have_copies():
    with gormapy.shared_arrays():
        arrays = [np.full(n, k, "i4") for k, n in enumerate((10_000, 100_000, MIB, 20 * MIB))]
        sparse = np.zeros(1 << 30, "u1")
        sparse[12345] = 7
    told, written = os.pipe(), os.pipe()

    def check():
        for k, array in enumerate(arrays):
            assert (array == k).all()
            array[:] = 100 + k
        os.write(told[1], b"x")
        assert os.read(written[0], 1) == b"y"  # now the parent has written to all of them
        for k, array in enumerate(arrays):
            assert (array == 100 + k).all(), "the parent's writing shows"
        assert sparse[12345] == 7 and not sparse[: 1 << 20].sum() - 7 and sparse[-1] == 0, "the parent's writing shows"
        sparse[0] = 1
        arrays[0].resize(50_000, refcheck=False)
        assert (arrays[0][:10_000] == 100).all() and not arrays[0][10_000:].any()
        arrays[1].resize(10, refcheck=False)
        assert (arrays[1] == 101).all()
        del arrays[2:]
        gc.collect()
        with gormapy.shared_arrays():
            own = np.ones(4 * MIB)
        assert own.sum() == 4 * MIB and not is_shared(own)

        def grandchild():
            assert sparse[0] == 1 and (arrays[0][:10_000] == 100).all() and own[-1] == 1
            arrays[0][:] = 55
            own[:] = 3
            arrays.clear()

        ended_well(child(grandchild))
        assert (arrays[0][:10_000] == 100).all() and own.sum() == 4 * MIB

    before = used()
    pid = child(check)
    assert used() == before, "the fork itself takes no memory of the arena"
    assert os.read(told[0], 1) == b"x"
    for k, array in enumerate(arrays):
        assert (array == k).all(), "the child's writing shows"
        array[:] = 200 + k
    sparse[-1] = 9
    os.write(written[1], b"y")
    ended_well(pid)
    for k, array in enumerate(arrays):
        assert (array == 200 + k).all(), "the child's writing shows"
    assert sparse[12345] == 7 and sparse[0] == 0
    with gormapy.shared_arrays():
        assert not np.zeros(20 * MIB).any()


def forked_children_end_as_any_program():
    """The child ends with the program, and frees its arrays when Python ends."""
    global KEPT
    from rankside import rank, size, world

    KEPT = [np.full(MIB, rank), np.full(MIB, rank)]
    KEPT.append(KEPT)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        KEPT[0][:] = 100
        KEPT[1].resize(2 * MIB, refcheck=False)
        os.write(write, b"x")
        return
    ended_well(pid)
    assert os.read(read, 1) == b"x"
    total = np.empty(MIB, KEPT[0].dtype)
    world.Allreduce(KEPT[0], total)
    assert (total == size * (size - 1) // 2).all()


def double(k):
    return float(INHERITED[k].sum()) * 2


INHERITED = []


def multiprocessing_by_fork():
    with gormapy.shared_arrays():
        INHERITED.extend(np.full(MIB, float(k)) for k in range(4))
        with mp.get_context("fork").Pool(2) as pool:
            assert pool.map(double, range(4)) == [2.0 * k * MIB for k in range(4)]
    assert [array[0] for array in INHERITED] == [0, 1, 2, 3]


def subprocesses_copy_nothing():
    with gormapy.shared_arrays():
        array = np.ones(8 * MIB)

    def faults(start):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    pages = array.nbytes // resource.getpagesize()
    by_subprocess = faults(lambda: subprocess.run(["true"], check=True))
    by_spawn = faults(lambda: ended_well(os.posix_spawn("/bin/true", ["true"], {})))
    by_system = faults(lambda: os.system("true"))
    assert max(by_subprocess, by_spawn, by_system) < pages // 4, (by_subprocess, by_spawn, by_system, pages)
    assert array.sum() == 8 * MIB


def forks_while_threads_make_arrays(seconds):
    import time

    end = time.monotonic() + seconds
    problems = []

    def work(seed):
        r = random.Random(seed)
        with gormapy.shared_arrays():
            mine = []
            while time.monotonic() < end:
                mine.append((k := r.randrange(256), np.full(r.randrange(20_000, 500_000), k, "u1")))
                if len(mine) > 10:
                    k, array = mine.pop(r.randrange(len(mine)))
                    if not (array == k).all():
                        problems.append(f"an array of {k} has {np.unique(array)}")
                if r.random() < 0.1:
                    mine[-1][1].resize(mine[-1][1].size // 2 + 1, refcheck=False)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for worker in workers:
        worker.start()
    with gormapy.shared_arrays():
        own = np.full(300_000, 77, "u1")
    forks = 0
    while time.monotonic() < end:

        def check():
            assert (own == 77).all()
            own[:] = 78
            np.ones(MIB)

        ended_well(child(check))
        forks += 1
    for worker in workers:
        worker.join()
    assert not problems and (own == 77).all() and forks > 3, (problems, forks)


def forks_without_addresses(with_files):
    """A child has its copies also where there are no addresses for them; without files it ends."""
    with gormapy.shared_arrays():
        array, others = np.ones(64 * MIB), [np.ones(4 * MIB)]
        sparse = np.zeros(128 * MIB)
        sparse[12345] = 7
    told, written = os.pipe(), os.pipe()
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + 100 * MIB, -1))
    if not with_files:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (max(told + written) + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )

    def check():
        array[:1000] = 5
        os.write(told[1], b"x")
        assert os.read(written[0], 1) == b"y"  # now the parent has written
        assert (array[:1000] == 5).all() and array[1000:].sum() == 64 * MIB - 1000, "the parent's writing shows"
        assert others[0].sum() == 4 * MIB and sparse[12345] == 7 and sparse[-1] == 0, "the parent's writing shows"

    pid = child(check)
    if not with_files:
        assert os.waitpid(pid, 0)[1] == 127 << 8
        print("ended")
        return
    assert os.read(told[0], 1) == b"x"
    assert array.sum() == 64 * MIB, "the child's writing shows"
    array[:] = 2
    sparse[-1] = 9
    others.clear()
    os.write(written[1], b"y")
    ended_well(pid)


def many_arrays_do_not_delay_a_fork():
    with gormapy.shared_arrays():
        arrays = [np.full(LEAST, k % 251, "u1") for k in range(10_000)]
    begin = time.monotonic()
    pid = child(lambda: [check_equal(array, k % 251) for k, array in enumerate(arrays)])
    took = time.monotonic() - begin
    ended_well(pid)
    assert took < 6, f"a fork with {len(arrays)} arrays took {took} s"


def check_equal(array, value):
    assert (array == value).all()


def blocks_that_interleave():
    def block(on):
        with gormapy.shared_arrays(on):
            yield

    for outer, inner, end in [(True, True, False), (True, False, False), (False, True, False)]:
        first, second = block(outer), block(inner)
        next(first), next(second)
        assert is_shared(np.ones(MIB)) == inner
        first.close()
        assert is_shared(np.ones(MIB)) == inner
        second.close()
        assert is_shared(np.ones(MIB)) == end, (outer, inner)
    with gormapy.shared_arrays():
        first, second = block(False), block(False)
        next(first), next(second)
        first.close(), second.close()
        assert is_shared(np.ones(MIB))


def arrays_that_grow():
    """An array that grows again and again is seldom moved."""
    with gormapy.shared_arrays():
        array = np.arange(20_000)
        grown = np.ones(5 * MIB)
    moves = 0
    for _ in range(300):
        before = address(array)
        array.resize(array.size + 4096, refcheck=False)
        moves += address(array) != before
        assert is_shared(array)
    assert moves < 40, moves
    assert (array[:20_000] == np.arange(20_000)).all() and not array[20_000:].any()
    for _ in range(100):
        grown.resize(grown.size + MIB // 8, refcheck=False)
    assert grown[: 5 * MIB].sum() == 5 * MIB and not grown[5 * MIB :].any()


# Memory.


def memory_goes_back(kept):
    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    with gormapy.shared_arrays():
        np.ones(10_000)
        before, resident = used(), rss()
        arrays = [np.ones(MIB) for _ in range(40)]
        assert used() >= before + 320 * MIB
        del arrays[:]
        assert used() <= before + kept, (before, used())
        assert rss() <= resident + kept + 32 * MIB, (resident, rss())
        huge = np.ones(kept // 8 + 10 * MIB)
        assert used() >= huge.nbytes
        del huge
        assert used() <= before + kept
        for _ in range(500):  # nothing grows
            np.ones(random.randrange(10_000, 3 * MIB))
        assert used() <= before + kept + 32 * MIB


def many_arrays_have_few_mappings():
    before = mapped()
    with gormapy.shared_arrays():
        arrays = [np.empty(LEAST, "u1") for _ in range(80_000)]
    assert is_shared(arrays[0]) and is_shared(arrays[-1])
    assert mapped() < before + 100, (before, mapped())
    random.Random(3).shuffle(arrays)
    del arrays[::2]
    assert mapped() < before + 100
    del arrays


def forty_arrays_under(limit, soft):
    """Make 320 MiB of arrays under a limit of the system."""
    switch = gormapy.shared_arrays  # imports a module, which needs a descriptor
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (soft, before[1]))
    with switch():
        arrays = [np.full(MIB, k) for k in range(40)]
        arrays[0].resize(2 * MIB, refcheck=False)
    resource.setrlimit(limit, before)
    assert all((array[:MIB] == k).all() for k, array in enumerate(arrays)) and not arrays[0][MIB:].any()
    return [is_shared(array) for array in arrays]


def files_that_may_not_grow():
    shared = forty_arrays_under(resource.RLIMIT_FSIZE, 100 * MIB)
    assert any(shared) and not all(shared)


def no_descriptor_for_an_arena():
    assert not any(forty_arrays_under(resource.RLIMIT_NOFILE, 3))


def address_space_is_limited():
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + 600 * MIB, -1))
    made = []
    for on in (False, True, True):
        arrays = []
        with gormapy.shared_arrays(on):
            try:
                while len(arrays) < 200:
                    arrays.append(np.empty(4 * MIB, "u1"))
            except MemoryError:
                pass
            made.append(len(arrays))
            arrays.clear()
            gc.collect()
            large = np.empty(200 * MIB, "u1")  # after all that there is room for a large one
            del large
    assert 100 < made[0] < 200 and min(made) > made[0] * 0.8, made


def arrays_outlive_mpi(clean):
    global LAST, CYCLE
    import atexit
    import weakref

    from gormapy import MPI

    LAST = np.ones(MIB)
    assert is_shared(LAST)
    CYCLE = [np.ones(MIB)]
    CYCLE.append(CYCLE)

    class Late:
        def __init__(self):
            self.array = np.ones(MIB)

        def __del__(self):
            self.array = self.array + self.array[0]
            self.array.resize(3 * MIB, refcheck=False)

    CYCLE.append(Late())
    CYCLE.append(weakref.ref(LAST, lambda _: None))
    atexit.register(lambda: np.ones(MIB) + LAST)
    thread = threading.Thread(target=lambda: [np.ones(MIB) + LAST for _ in range(20_000)], daemon=True)
    thread.start()
    if clean:
        MPI.Finalize()
        assert (LAST + np.ones(MIB) == 2).all() and is_shared(LAST + 1)
        CYCLE[0].resize(2 * MIB, refcheck=False)


# Ranks.


def calls_between_ranks():
    from rankside import MPI, rank, size, world

    from gormapy._ext import core

    assert is_shared(np.ones(LEAST))
    right, left = (rank + 1) % size, (rank - 1) % size
    for n in (5_000, 50_000, 500_000):
        for _ in range(3):  # from recycled memory, too
            got = np.empty(n)
            world.Sendrecv(np.full(n, float(rank)), right, 0, got, left, 0)
            assert (got == left).all()
            requests = [world.Isend(np.full(n, rank + 0.5), right), world.Irecv(got, left)]
            MPI.Request.Waitall(requests)
            assert (got == left + 0.5).all()
            total = np.empty(n)
            world.Allreduce(np.arange(n) + float(rank), total)
            assert (total == size * np.arange(n) + size * (size - 1) / 2).all()
            world.Bcast(got, 0)
            assert (got == size - 1 + 0.5).all()
            everything = np.empty((size, n))
            world.Allgather(np.full(n, float(rank)), everything)
            assert (everything == np.arange(size)[:, None]).all()

            field = np.zeros(n)
            win = MPI.Win.Create(field[10:], field.itemsize, comm=world)
            assert core.WinPath(win._h, right) == "direct"
            win.Fence()
            win.Put(np.full(100, float(rank)), right, target=50)
            win.Accumulate(np.ones(10), right, target=1000)
            win.Fence()
            assert (field[60:160] == left).all() and field[1010:1020].sum() == 10
            win.Free()

    name = "file"
    file = MPI.File.Open(world, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_at_all(rank * 8 * 100_000, np.full(100_000, float(rank)))
    file.Sync()
    world.Barrier()
    got = np.empty(100_000)
    file.Read_at_all(right * 8 * 100_000, got)
    assert (got == right).all()
    file.Close()


def random_arrays_and_messages(seed):
    from rankside import rank, size, world

    r = random.Random(seed)  # the same on all ranks
    kept = []
    for step in range(400):
        n = r.randrange(1_000, 1 << r.randrange(11, 19))
        origin = r.randrange(size)
        array = np.full(n, step, "i4") if rank == origin else np.zeros(n, "i4")
        world.Bcast(array, origin)
        assert (array == step).all(), step
        kept.append((step, array))
        if len(kept) > 20:
            old, array = kept.pop(r.randrange(20))
            assert (array == old).all(), old
            array.resize(n, refcheck=False)
    for old, array in kept:
        assert (array == old).all(), old


def rank_forks_while_others_communicate():
    from rankside import rank, size, world

    mine, got = np.full(300_000, float(rank)), np.empty(300_000)
    for step in range(30):
        if rank == step % size:

            def check():
                assert (mine == rank).all()
                mine[:] = -1
                got[:] = -1

            ended_well(child(check))
        world.Sendrecv(mine, (rank + 1) % size, 0, got, (rank - 1) % size, 0)
        assert (got == (rank - 1) % size).all()


def rank_is_killed():
    from rankside import hello, rank, world

    arrays = [np.full(MIB, rank) for _ in range(10)]
    world.Allreduce(arrays[0], arrays[1])
    hello()
    world.Barrier()
    world.recv(source=1 - rank)
