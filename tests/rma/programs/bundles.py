"""The programs of test_bundles.py: short puts to memory of the program, which are gathered and written at once."""

import mmap
import os
import random
import signal
import sys
import threading
import time

import numpy as np
from badmemory import PAGE, protect
from rankside import MPI, rank, size, world

import gormapy
from gormapy import notify

N = 4096
ENOUGH = 20.0


def opened(count=N):
    """Return a window over private memory, within Lock_all."""
    memory = np.zeros(count, "q")
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Lock_all()
    world.Barrier()
    return win, memory


def closed(win):
    world.Barrier()
    win.Unlock_all()
    win.Free()


def value(v, n=1):
    return np.full(n, v, "q")


def there(win, at, n=1, target=1):
    got = np.zeros(n, "q")
    win.Get(got, target, at)
    win.Flush(target)
    return got.tolist()


def until(condition):
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def fetched(win, call):
    """Return what call writes to its argument."""
    old = value(-1)
    call(old)
    win.Flush(1)
    return old[0]


def expect(found, expected):
    assert found == expected, (found, expected)


def overwritten(win, n):
    win.Put(value(9, n), 1)
    expect(there(win, 0, 4), [9] * 4)


def derived(win):
    every = MPI.INT64_T.Create_vector(4, 1, 2).Commit()
    win.Put([value(9, 4), 4, MPI.INT64_T], 1, (0, 1, every))
    win.Flush(1)
    expect(there(win, 0, 7), [9, 3, 9, 4, 9, 0, 9])
    every.Free()


def requested(win):
    win.Rput(value(9), 1).Wait()
    expect(there(win, 0, 4), [9, 3, 2, 4])


def accumulated(win):
    win.Accumulate(value(9), 1, 2)
    expect(there(win, 2), [11])


def swapped(win):
    expect(fetched(win, lambda old: win.Compare_and_swap(value(7), value(2), old, 1, 2)), 2)
    expect(there(win, 2), [7])


# What a program does after short puts to the first elements, which it has to find.
ORDER = {
    "Get": lambda win: expect(there(win, 0, 4), [1, 3, 2, 4]),
    "Get at once": lambda win: expect(fetched(win, lambda old: win.Get(old, 1, 2)), 2),
    "long Get": lambda win: expect(there(win, 0, N)[:4], [1, 3, 2, 4]),
    "Rget": lambda win: expect(fetched(win, lambda old: win.Rget(old, 1, 2).Wait()), 2),
    "long Put": lambda win: overwritten(win, N),
    "longest bundled Put": lambda win: overwritten(win, 32),
    "Rput": requested,
    "Accumulate": accumulated,
    "Fetch_and_op": lambda win: expect(fetched(win, lambda old: win.Fetch_and_op(value(1), old, 1, 2)), 2),
    "Get_accumulate": lambda win: expect(fetched(win, lambda old: win.Get_accumulate(value(1), old, 1, 2)), 2),
    "Compare_and_swap": swapped,
    "derived": derived,
    "put_notify": lambda win: notify.put_notify(win, value(5), 1, 4, slot=3),
}


def puts(win, target=1):
    """Put 1, 3, 2, 4 to the first elements, in a way that needs all rules of bundles."""
    one = value(-1)
    for at, v in (0, 8), (0, 1), (2, 8), (2, 2), (1, 3), (3, 4):
        one[0] = v
        win.Put(one, target, at)
        one[0] = -1


def order(what):
    win, memory = opened()
    if rank == 0:
        puts(win)
        ORDER[what](win)
    elif what == "put_notify" and rank == 1:
        assert notify.win_notified(win, 3, timeout=ENOUGH)
        assert memory[:5].tolist() == [1, 3, 2, 4, 5]
    closed(win)


# The calls that complete puts, and the lock that they are made under.
COMPLETE = {
    "Flush": lambda win: win.Flush(1),
    "Flush_all": lambda win: win.Flush_all(),
    "Flush_local": lambda win: win.Flush_local(1),
    "Flush_local_all": lambda win: win.Flush_local_all(),
    "Unlock_all": lambda win: win.Unlock_all(),
    "Unlock": lambda win: win.Unlock(1),
    "Sync": lambda win: win.Sync(),
    "nothing": lambda win: None,
    "time": lambda win: time.sleep(0.001),
}


def complete(what):
    """The puts are there after each of them, not only some time later."""
    memory = np.zeros(N, "q")
    win = MPI.Win.Create(memory, 8, comm=world)
    word = MPI.Win.Allocate_shared(8, 8, comm=world)
    shared = np.frombuffer(word.Shared_query(0)[0], "q")
    for k in range(50):
        if rank == 0:
            shared[0] = 0
        world.Barrier()
        if rank == 0:
            if what == "Unlock":
                win.Lock(1, MPI.LOCK_SHARED)
            else:
                win.Lock_all()
            puts(win)
            for i in range(k):
                win.Put(value(i), 1, 10 + 2 * i)
            COMPLETE[what](win)
            shared[0] = 1
            if what not in ("Unlock", "Unlock_all"):
                world.Barrier()
                win.Unlock_all()
            else:
                world.Barrier()
        else:
            until(lambda: shared[0])
            if what in ("nothing", "time"):
                until(lambda k=k: memory[:4].all() and (k < 2 or memory[8 + 2 * k]))
            assert memory[:4].tolist() == [1, 3, 2, 4], (what, memory[:4])
            assert memory[10 : 10 + 2 * k : 2].tolist() == list(range(k))
            memory[:] = 0
            world.Barrier()
    word.Free()
    win.Free()


def several_targets():
    win, memory = opened()
    for k in range(30):
        if rank == 0:
            for i in range(40):
                for target in range(1, size):
                    win.Put(value(100 * k + target + i), target, 3 * i)
            if k % 2:
                win.Flush_all()
            else:
                for target in range(1, size):
                    win.Flush(target)
        world.Barrier()
        if rank:
            assert memory[:120:3].tolist() == [100 * k + rank + i for i in range(40)]
        world.Barrier()
    closed(win)


def random_program(seed):
    """What is read is what a program that does one thing after the other would read."""
    win, _ = opened(512)
    if rank == 0:
        draw = random.Random(int(seed))
        model = {target: np.zeros(512, "q") for target in range(1, size)}
        last = 0
        for step in range(6000):
            target = draw.randrange(1, size)
            part, at, n = model[target], draw.randrange(480), draw.choice((1, 1, 1, 1, 2, 5, 31, 32))
            data = np.array([draw.randrange(1 << 40) for _ in range(n)], "q")
            match draw.randrange(22):
                case 0:
                    got = np.zeros(n, "q")
                    win.Get(got, target, at)
                    win.Flush(target)
                    assert got.tolist() == part[at : at + n].tolist(), (step, at, n)
                case 1:
                    win.Flush(target) if draw.random() < 0.5 else win.Flush_all()
                case 2:
                    win.Accumulate(data, target, at)
                    part[at : at + n] += data
                case 3:
                    old = value(0)
                    win.Fetch_and_op(data[:1], old, target, at)
                    win.Flush(target)
                    assert old[0] == part[at]
                    part[at] += data[0]
                case 4:
                    old, expected = value(0), value(part[at] if draw.random() < 0.5 else 1)
                    win.Compare_and_swap(data[:1], expected, old, target, at)
                    win.Flush(target)
                    assert old[0] == part[at]
                    if expected[0] == part[at]:
                        part[at] = data[0]
                case 5:
                    win.Rput(data, target, at).Wait()
                    part[at : at + n] = data
                case 6:
                    long = np.arange(40, dtype="q")
                    win.Put(long, target, at if at < 470 else 0)
                    at = at if at < 470 else 0
                    part[at : at + 40] = long
                case _:
                    if draw.random() < 0.4:
                        at = last
                    win.Put(data, target, at)
                    part[at : at + n] = data
                    data[:] = -1
            last = min(at + n, 480) if draw.random() < 0.7 else at
        win.Flush_all()
        for target, part in model.items():
            assert there(win, 0, 512, target) == part.tolist()
    closed(win)


def page_of(region, number):
    return np.frombuffer(region, "B")[number * PAGE :][:PAGE]


def fault_in_the_middle():
    """What can't be written is the error of the flush, and everything else is there."""
    region = mmap.mmap(-1, 8 * PAGE)
    memory = np.frombuffer(region, "q")
    memory[:] = 0
    win = MPI.Win.Create(memory, 8, comm=world)
    win.Lock_all()
    if rank == 1:
        protect(page_of(region, 2))
        protect(page_of(region, 5))
    world.Barrier()
    each = PAGE // 8
    if rank == 0:
        try:
            win.Put(value(1), 1, 2 * each)
        except MPI.Exception as error:
            expected = error.Get_error_class()
        else:
            raise AssertionError("no error")
        for k in range(1, 20):
            for page in range(8):
                win.Put(value(k * 10 + page), 1, page * each + 7)
            win.Put(value(k, 3), 1, 2 * each - 1)  # across the border
            for page in range(8):
                win.Put(value(k * 10 + page), 1, page * each + 9)
            try:
                if k % 2:
                    win.Flush(1)
                else:
                    win.Flush_all()
            except MPI.Exception as error:
                assert error.Get_error_class() == expected, error
            else:
                raise AssertionError("no error")
            win.Flush(1)  # it is told once
            for page in (0, 1, 3, 4, 6, 7):
                assert there(win, page * each + 7, 3)[::2] == [k * 10 + page] * 2, (k, page)
        win.Put(value(1), 1)
        win.Put(value(2), 1, 2 * each)
        try:
            win.Unlock_all()
        except MPI.Exception as error:
            assert error.Get_error_class() == expected, error
        else:
            raise AssertionError("no error")
    else:
        win.Unlock_all()
    world.Barrier()
    win.Free()


def refused(call, *names):
    """The call returns the error of a put, and names one of the targets."""
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_WIN, error
        assert any(f"rank {name}" in str(error) for name in names), error
    else:
        raise AssertionError("no error")


def half():
    """Return a window within Lock_all, of two pages, of which targets refuse accesses to the second one."""
    region = mmap.mmap(-1, 2 * PAGE)
    memory = np.frombuffer(region, "q")
    memory[:] = 0
    win = MPI.Win.Create(memory, 8, comm=world)
    if rank:
        protect(page_of(region, 1))
    win.Lock_all()
    world.Barrier()
    return win


BAD = PAGE // 8


def each_target(how, when):
    """The errors of puts to several targets are returned by the calls that complete each of them, once."""
    win = half()
    targets = range(1, size)
    if rank == 0:
        if how == "Unlock":
            win.Unlock_all()
        for k in range(5):
            for target in targets:
                if how == "Unlock":
                    win.Lock(target, MPI.LOCK_SHARED)
            for target in targets:
                for at in 1, 1, BAD, 3:  # two at first, since the first one is written at once
                    win.Put(value(k), target, at)
            if when == "late":
                time.sleep(0.05)  # the timer has written them
            elif when == "after a call":
                win.Sync()
            for target in reversed(targets) if how == "reverse" else targets:
                if how == "all":
                    break
                refused(lambda target=target: (win.Unlock if how == "Unlock" else win.Flush)(target), target)
            if how == "all":
                refused(win.Flush_all, *targets)
            for target in targets:
                if how == "Unlock":
                    win.Lock(target, MPI.LOCK_SHARED)
                win.Flush(target)
                assert there(win, 1, 3, target) == [k, 0, k]
                if how == "Unlock":
                    win.Unlock(target)
        if how == "Unlock":
            win.Lock_all()
    closed(win)


def each_thread():
    """A call finds the error of its target though other threads complete other targets, and write all bundles."""
    win = half()
    if rank == 0:
        sys.setswitchinterval(1e-5)
        told, wrong, over = dict.fromkeys(range(1, size), 0), [], threading.Event()

        def puts_and_flush(target, k):
            late = None
            for at in 1, 1, BAD, 3:
                try:
                    win.Put(value(k), target, at)
                except MPI.Exception as error:  # another thread's call made it a put that is written at once
                    late = error
            win.Flush(target)
            if late:
                raise late

        def work(target):
            try:
                for k in range(1, 300):
                    refused(lambda k=k: puts_and_flush(target, k), target)
                    win.Flush(target)
                    told[target] = k
            except Exception as error:
                wrong.append((target, told[target], repr(error)))

        def turn():
            while not over.is_set():
                win.Sync()

        workers = [threading.Thread(target=work, args=(target,)) for target in told]
        turning = threading.Thread(target=turn)
        turning.start()
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        over.set()
        turning.join()
        assert not wrong, wrong
    closed(win)


def each_compiled_thread():
    """The same, without the interpreter's lock."""
    import numba

    import gormapy.numba as nm

    @numba.njit(nogil=True)
    def work(win, target, data):
        told = 0
        for _ in range(2000):
            wrong = False
            for at in (1, 1, BAD, 3):
                wrong |= nm.put(win, data, target, at) != 0
            wrong |= nm.flush(win, target) != 0
            told += wrong and nm.flush(win, target) == 0
        return told

    win = half()
    if rank == 0:
        told = {}

        def run(target):
            told[target] = work(win.handle, target, value(7))

        workers = [threading.Thread(target=run, args=(target,)) for target in range(1, size)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        assert told == dict.fromkeys(range(1, size), 2000), told
    closed(win)


def undecided():
    """While nobody says what the end of a target means, its flush waits, and neither other threads nor other targets do."""
    win, _ = opened()
    pids = world.allgather(os.getpid())
    if rank == 1:
        signal.pause()
    if rank > 1:
        until(lambda: os.path.exists("over"))
        os._exit(0)
    for _ in range(40):
        win.Put(value(1), 1)
    launcher, longest, over = os.getppid(), 0.0, threading.Event()
    os.kill(launcher, signal.SIGSTOP)
    os.kill(pids[1], signal.SIGKILL)
    time.sleep(0.05)  # the timer has found the end

    def tick():
        nonlocal longest
        last = time.monotonic()
        while not over.is_set():
            time.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    def go_on():
        time.sleep(2)
        os.kill(launcher, signal.SIGCONT)

    others = [threading.Thread(target=tick), threading.Thread(target=go_on)]
    try:
        for w in others:
            w.start()
        start = time.monotonic()
        win.Sync()
        for k in range(20):
            win.Put(value(k), 2, k)
            win.Put(value(k), 2, k + 50)
            win.Flush(2)
        assert there(win, 0, 20, 2) == list(range(20))
        spent = time.monotonic() - start
        try:
            win.Flush(1)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            print("told")
        over.set()
        assert spent < 1.9, f"waited {spent} s for the launcher"
        assert longest < 1.5, f"a thread did not run for {longest} s"
    finally:
        os.kill(launcher, signal.SIGCONT)
        over.set()
        open("over", "w").close()
    sys.stdout.flush()
    os._exit(0)


def origin_faults():
    """A put from memory that faults is its own error, and those before it are there."""
    win, _ = opened()
    if rank == 0:
        region = mmap.mmap(-1, PAGE)
        bad = np.frombuffer(region, "q")
        protect(bad)
        puts(win)
        for _ in range(3):
            try:
                win.Put(bad[:4], 1, 8)
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_BUFFER, error
            else:
                raise AssertionError("no error")
        win.Put(value(6), 1, 20)
        win.Flush(1)
        assert there(win, 0, 4) == [1, 3, 2, 4] and there(win, 20) == [6]
    closed(win)


def killed_target():
    win, _ = opened()
    pids = world.allgather(os.getpid())
    if rank == 1:
        signal.pause()
    told = 0
    puts(win)
    os.kill(pids[1], signal.SIGKILL)
    calls = [lambda: win.Flush(1)] + [lambda: (puts(win), win.Flush(1))] * 1000
    for call in calls:
        try:
            call()
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            told += 1
            if told == 3:
                break
        time.sleep(0.001)
    assert told == 3
    print("told")
    sys.stdout.flush()
    os._exit(0)


def killed_before_the_flush():
    """The puts are written after the end: whoever writes them, the flush tells."""
    win, _ = opened()
    pids = world.allgather(os.getpid())
    if rank == 1:
        signal.pause()
    os.kill(pids[1], signal.SIGSTOP)
    for _ in range(100):
        puts(win)
    os.kill(pids[1], signal.SIGKILL)
    end = time.monotonic() + ENOUGH
    while time.monotonic() < end:
        try:
            puts(win)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            break
    try:
        win.Unlock_all()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    print("told")
    sys.stdout.flush()
    os._exit(0)


class _Interrupt(Exception):
    pass


def interrupted():
    """Puts that have returned are there, whatever a signal's handler raises."""
    win, _ = opened()
    if rank == 0:
        armed, done, caught = False, 0, 0

        def interrupt(*_):
            if armed:
                raise _Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0013)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                armed = True
                while True:
                    win.Put(value(done + 1), 1, done % N)
                    done += 1
                    if done % 37 == 0:
                        win.Flush(1)
            except _Interrupt:
                armed = False
                caught += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        win.Flush(1)
        found, first = there(win, 0, N), max(done - N, 0)
        for k in range(first + 1, done):
            assert found[k % N] == k + 1, (k, done, found[k % N])
        assert caught > 100
    closed(win)


def threads():
    """Several threads put, and each finds its own after its flush, with the interpreter's lock given up in between."""
    win, _ = opened()
    wrong = []

    def work(mine):
        for k in range(300):
            for i in range(20):
                win.Put(value(k + i), 1, mine * 100 + 2 * i)
            win.Flush(1)
            got = there(win, mine * 100, 40)[::2]
            if got != [k + i for i in range(20)]:
                wrong.append((mine, k, got))

    if rank == 0:
        sys.setswitchinterval(1e-5)
        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        assert not wrong, wrong[:2]
    closed(win)


def compiled():
    """Functions that Numba compiles put without the interpreter's lock, from several threads."""
    import numba

    import gormapy.numba as nm

    @numba.njit(nogil=True)
    def work(win, mine, data, got):
        wrong = 0
        for k in range(2000):
            for i in range(20):
                data[0] = k + i
                wrong += nm.put(win, data, 1, mine * 100 + 2 * i)
            if k % 3 == 0:
                wrong += nm.flush(win, 1)
            wrong += nm.get(win, got, 1, mine * 100)
            for i in range(20):
                wrong += got[2 * i] != k + i
        return wrong + nm.flush(win, 1)

    win, _ = opened()
    if rank == 0:
        found = {}

        def run(mine):
            found[mine] = work(win.handle, mine, value(0), value(0, 40))

        workers = [threading.Thread(target=run, args=(i,)) for i in range(3)]
        for w in workers:
            w.start()
        for k in range(2000):
            win.Put(value(k), 1, 900 + k % 64)
        for w in workers:
            w.join()
        win.Flush(1)
        assert found == {0: 0, 1: 0, 2: 0}, found
        assert sorted(there(win, 900, 64)) == list(range(1936, 2000))
    closed(win)


def forked():
    """A child has a copy of what its parent has not written, and never writes it."""
    win, _ = opened()
    if rank == 0:
        for k in range(20):
            puts(win)
            wait, go = os.pipe()
            child = os.fork()
            if child == 0:
                os.read(wait, 1)
                for call in (lambda: win.Flush(1), lambda: win.Put(value(9), 1), win.Flush_all, win.Unlock_all):
                    try:
                        call()
                    except Exception:
                        continue
                    os._exit(1)
                if k % 2:
                    os._exit(0)
                sys.exit(0)
            win.Flush(1)
            assert there(win, 0, 4) == [1, 3, 2, 4]
            win.Put(value(77, 4), 1)
            win.Flush(1)
            os.write(go, b"x")
            assert os.waitpid(child, 0)[1] == 0
            assert there(win, 0, 4) == [77] * 4
            os.close(wait), os.close(go)
    closed(win)


def reset():
    """What was put before a reset is there after it, and nothing comes later."""
    win, memory = opened()
    for k in range(20):
        if rank == 0:
            puts(win)
            for i in range(k):
                win.Put(value(i), 1, 10 + 2 * i)
        gormapy.reset()
        if rank == 1:
            assert memory[:4].tolist() == [1, 3, 2, 4]
            assert memory[10 : 10 + 2 * k : 2].tolist() == list(range(k))
            memory[:] = 0
        if k == 0:
            time.sleep(0.05)
            assert not memory.any()
        world.Barrier()
        win.Lock_all()
    closed(win)


def ends_in_an_epoch():
    """A program that ends within an epoch leaves nothing behind that it has put."""
    win, memory = opened()
    if rank == 0:
        puts(win)
    elif rank == 1:
        until(lambda: memory[:4].tolist() == [1, 3, 2, 4])


def computes():
    """Puts that nothing completes reach their target while their origin computes, without a call of MPI."""
    win, memory = opened()
    for k in range(1, 6):
        if rank == 0:
            for i in range(k * 17):
                win.Put(value(k), 1, i * 3)
            end = time.monotonic() + ENOUGH
            while not os.path.exists(f"seen{k}") and time.monotonic() < end:
                sum(i * i for i in range(10_000))
            assert os.path.exists(f"seen{k}"), "what was put has not arrived"
        elif rank == 1:
            until(lambda k=k: (memory[: k * 17 * 3 : 3] == k).all())
            open(f"seen{k}", "w").close()
        time.sleep(0.15 * (k % 3))  # nobody watches any more, or still
    closed(win)


def windows():
    """Windows that are made and freed, with epochs of every kind, use the same memory again."""
    for k in range(60):
        win, memory = opened(64 + k)
        other, others = opened(64)
        if rank == 0:
            puts(win)
            puts(other)
            win.Flush(1)
        world.Barrier()
        if rank == 1:
            assert memory[:4].tolist() == [1, 3, 2, 4]
        other.Unlock_all()
        other.Fence()
        if rank == 0:
            other.Put(value(5), 1, 6)
        other.Fence(MPI.MODE_NOSUCCEED)
        if rank == 1:
            assert others[:7].tolist() == [1, 3, 2, 4, 0, 0, 5]
        other.Free()
        closed(win)


def atomic_against_each_other():
    """All ways to update an element are atomic, in one process and in the others."""
    win, memory = opened()
    turns = 400
    old, found = value(0), value(0)
    for _ in range(turns):
        win.Fetch_and_op(value(1), old, 0, 0)
        win.Accumulate(value(1), 0, 0)
        win.Accumulate(np.ones(40, "q"), 0, 1)  # longer than what is done in one step
        win.Accumulate(np.ones(3, "q"), 0, 1)
        while True:
            win.Get(old, 0, 60)
            win.Flush(0)
            win.Compare_and_swap(old + 1, old, found, 0, 60)
            win.Flush(0)
            if found[0] == old[0]:
                break
    win.Flush(0)
    world.Barrier()
    if rank == 0:
        win.Sync()
        assert memory[0] == 2 * turns * size, memory[0]
        assert memory[1:4].tolist() == [2 * turns * size] * 3
        assert memory[4:41].tolist() == [turns * size] * 37
        assert memory[60] == turns * size
    closed(win)
