"""Give every call memory that faults at its n-th page.

Run on two or more ranks with the names of groups of calls, or none for all of them.
One rank's buffer lies on pages of which those from the n-th on can't be accessed. That
rank gets an MPI.Exception, from the call or from what completes it; nobody waits for
ever; and afterwards the same communicator, window and file work, on all ranks.
"""

import contextlib
import ctypes
import functools
import mmap
import os
import sys
import tempfile
import time

import numpy as np
from rankside import raise_flag

from gormapy import MPI

PAGE = mmap.PAGESIZE
PROT_NONE, PROT_ALL = 0, 3

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Memory:
    """Pages of which those from one on can be made to fault."""

    def __init__(self, pages):
        self.pages = pages
        self.map = mmap.mmap(-1, pages * PAGE)
        self.bytes = np.frombuffer(self.map, "u1")
        self.bytes[:] = 1

    @contextlib.contextmanager
    def faulting(self, page, when=True):
        """Have accesses to the pages from one on fault, if ``when`` is true."""
        at, n = self.bytes.ctypes.data + page * PAGE, (self.pages - page) * PAGE
        if when:
            assert libc.mprotect(at, n, PROT_NONE) == 0
        try:
            yield
        finally:
            if when:
                assert libc.mprotect(at, n, PROT_ALL) == 0


counts = {"tried": 0, "victim": 0, "others": 0}


def attempt(call, *, must_fail):
    """Make a call; report whether it failed, which must be by an MPI error."""
    try:
        call()
    except MPI.Exception as error:
        counts["victim" if must_fail else "others"] += 1
        text = error.Get_error_string()
        assert "internal error" not in text, text
        return True
    assert not must_fail, "memory that faults was not noticed"
    return False


def shapes(long):
    """Yield (pages, first byte, bytes, page that faults): short, across pages, and long buffers."""
    yield 2, 0, 8, 0
    yield 2, PAGE - 50, 100, 1
    yield 4, 0, 3 * PAGE, 2
    for page in (0, 5, 15):
        yield 16, 0, 16 * PAGE, page
    if long:
        for page in (0, 100, 255):
            yield 256, 0, 256 * PAGE, page


# --- messages -----------------------------------------------------------------------

VECTOR = MPI.BYTE.Create_vector(4, 1, 2).Commit()


def persistent(init, *args):
    """Start a persistent request and wait for it."""
    request = init(*args)
    request.Start()
    try:
        request.Wait()
    finally:
        request.Free()


SENDS = {
    "Send": lambda comm, b, to: comm.Send(b, to, 7),
    "Ssend": lambda comm, b, to: comm.Ssend(b, to, 7),
    "Bsend": lambda comm, b, to: comm.Bsend(b, to, 7),
    "Rsend": lambda comm, b, to: comm.Rsend(b, to, 7),
    "Isend": lambda comm, b, to: comm.Isend(b, to, 7).Wait(),
    "Issend": lambda comm, b, to: comm.Issend(b, to, 7).Wait(),
    "Send_init": lambda comm, b, to: persistent(comm.Send_init, b, to, 7),
    "Sendrecv": lambda comm, b, to: comm.Sendrecv(b, to, 7, None, MPI.PROC_NULL),
    "Waitall": lambda comm, b, to: MPI.Request.Waitall([comm.Isend(b, to, 7)]),
}
RECEIVES = {
    "Recv": lambda comm, b, source: comm.Recv(b, source, 7),
    "Irecv": lambda comm, b, source: comm.Irecv(b, source, 7).Wait(),
    "Recv_init": lambda comm, b, source: persistent(comm.Recv_init, b, source, 7),
    "Mrecv": lambda comm, b, source: comm.Mprobe(source, 7).Recv(b),
    "Sendrecv": lambda comm, b, source: comm.Sendrecv(None, MPI.PROC_NULL, 0, b, source, 7),
    "Waitany": lambda comm, b, source: MPI.Request.Waitany([comm.Irecv(b, source, 7)]),
}


def spec(array, derived):
    """Describe a buffer as bytes, or as a derived type over all of it."""
    return [array, len(array) // 7, VECTOR] if derived else [array, MPI.BYTE]


def message(call, sends, shape, derived):
    """Send from, or receive into, memory that faults, between ranks 0 and 1."""
    pages, first, n, page = shape
    memory = Memory(pages)
    mine = memory.bytes[first : first + n]
    data = n // 7 * 4 if derived else n
    if derived and (page * PAGE - first) // 7 >= n // 7:
        return  # the derived type ends before
    counts["tried"] += 1
    other = np.ones(data, "u1")
    mark = np.full(data, 9, "u1")
    if rank == 0:
        with memory.faulting(page):
            attempt(lambda: call(world, spec(mine, derived), 1), must_fail=True)
        if sends:
            world.Send(mark, 1, 7)  # the same peer works
    elif rank == 1:
        if sends:
            while attempt(lambda: world.Recv(other, 0, 7), must_fail=False) or other[0] != 9:
                pass
            assert (other == 9).all()
        else:
            attempt(lambda: world.Send(other, 0, 7), must_fail=False)
    if rank < 2:
        got = np.zeros(3)
        world.Sendrecv(np.arange(3.0), 1 - rank, 8, got, 1 - rank, 8)
        assert (got == np.arange(3.0)).all()


def messages():
    """All sends and receives."""
    MPI.Attach_buffer(bytearray(4 << 20))
    for sends, calls in ((True, SENDS), (False, RECEIVES)):
        for call in calls.values():
            for shape in shapes(long=True):
                for derived in (False, True):
                    message(call, sends, shape, derived)
    world.Barrier()
    MPI.Detach_buffer()


# --- collectives --------------------------------------------------------------------


def uniform(name):
    """Return a call of a collective with equal parts, its buffers' sizes in parts, by role."""
    call = getattr(type(world), name)

    def run(comm, send, recv, root):
        args = {"Bcast": (send, root), "Ibcast": (send, root)}.get(name)
        if args is None:
            args = (send, recv)
            if name.lstrip("I").lower() in ("gather", "scatter", "gatherv", "scatterv"):
                args += (root,)
            if name.lstrip("I").lower() == "reduce":
                args += (MPI.SUM, root)
        out = call(comm, *args)
        if out is not None:
            out.Wait()

    return run


# name: how many parts the send and the receive buffer have (0: none), and which is
# significant at the root only
COLLECTIVES = {
    "Bcast": (1, 0, ""),
    "Gather": (1, size, "recv"),
    "Scatter": (size, 1, "send"),
    "Allgather": (1, size, ""),
    "Alltoall": (size, size, ""),
    "Gatherv": (1, size, "recv"),
    "Scatterv": (size, 1, "send"),
    "Allgatherv": (1, size, ""),
    "Alltoallv": (size, size, ""),
    "Reduce": (1, 1, "recv"),
    "Allreduce": (1, 1, ""),
    "Reduce_scatter_block": (size, 1, ""),
    "Scan": (1, 1, ""),
    "Exscan": (1, 1, ""),
}


def collective(name, bad, root, part, page):
    """Call a collective in which rank 1's buffer named by ``bad`` faults from a page on."""
    sends, receives, only = COLLECTIVES[name.replace("I", "").capitalize() if name[0] == "I" else name]
    victim = root if only == bad else 1
    memory = Memory(part * max(sends, receives, 1) // PAGE + 2)
    send, recv = (np.ones(part * max(k, 1), "u1") for k in (sends, receives))
    if rank == victim:
        n = part * max(sends if bad == "send" else receives, 1)
        if page * PAGE >= n:
            page = 0
        if bad == "send":
            send = memory.bytes[:n]
        else:
            recv = memory.bytes[:n]
    unused = rank != root and only
    arguments = (
        None if unused == "send" else send,
        None if unused == "recv" else recv,
    )
    counts["tried"] += 1
    # Exscan gives rank 0 nothing.
    noticed = not (name in ("Exscan", "Iexscan") and victim == 0 and bad == "recv")
    uniform(name)(world, *arguments, root)  # whose operation the next call uses again
    with memory.faulting(page, rank == victim):
        # Some algorithms have the others read the memory, and then they tell the victim.
        failed = attempt(lambda: uniform(name)(world, *arguments, root), must_fail=rank == victim and noticed)
    # The ranks are in step, and the communicator works.
    anywhere = np.zeros(1, "l")
    world.Allreduce(np.full(1, int(failed)), anywhere)
    assert anywhere[0] or not noticed, (name, bad, part, page)
    total = np.zeros(1, "l")
    world.Allreduce(np.full(1, rank + 1), total)
    assert total[0] == size * (size + 1) // 2, (name, bad, part, page, total)
    big = np.zeros(60_000, "l")
    world.Allreduce(np.full(60_000, rank + 1), big)
    assert (big == total[0]).all()


def collectives():
    """Call all collectives, short and long, blocking and not."""
    for name, (sends, receives, _) in COLLECTIVES.items():
        for bad, parts in (("send", sends), ("recv", receives)):
            if parts:
                for part, page in ((40, 0), (3 * PAGE, 1), (40 * PAGE, 0), (40 * PAGE, 7), (300 * PAGE, 200)):
                    for blocking in (name, "I" + name.lower()):
                        for root in (0, 1):
                            collective(blocking, bad, root, part, page)


# --- one-sided ----------------------------------------------------------------------

ELEMENTS = 40 * PAGE // 8


def windows():
    """Yield windows of each kind, with what gives the displacement of the first byte at a rank."""
    memory = np.zeros(ELEMENTS, "l")
    win = MPI.Win.Create(memory, 8, comm=world)
    yield "create", win, lambda r: 0
    win.Free()
    win = MPI.Win.Allocate(ELEMENTS * 8, 8, comm=world)
    yield "allocate", win, lambda r: 0
    win.Free()
    win = MPI.Win.Create_dynamic(comm=world)
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    yield "dynamic", win, lambda r: addresses[r]
    world.Barrier()
    win.Detach(memory)
    win.Free()


def words(array):
    """View bytes as integers."""
    return array.view("l")


ONE_SIDED = {
    "Put": lambda w, b, c, t, d: w.Put(b, t, d),
    "Get": lambda w, b, c, t, d: w.Get(b, t, d),
    "Accumulate": lambda w, b, c, t, d: w.Accumulate(b, t, d),
    "Get_accumulate origin": lambda w, b, c, t, d: w.Get_accumulate(b, c, t, d),
    "Get_accumulate result": lambda w, b, c, t, d: w.Get_accumulate(c, b, t, d),
    "Rput": lambda w, b, c, t, d: w.Rput(b, t, d).Wait(),
    "Rget": lambda w, b, c, t, d: w.Rget(b, t, d).Wait(),
    "Raccumulate": lambda w, b, c, t, d: w.Raccumulate(b, t, d).Wait(),
    "Rget_accumulate": lambda w, b, c, t, d: w.Rget_accumulate(c, b, t, d).Wait(),
}
SINGLE = {
    "Fetch_and_op origin": lambda w, b, c, t, d: w.Fetch_and_op(b, c, t, d),
    "Fetch_and_op result": lambda w, b, c, t, d: w.Fetch_and_op(c, b, t, d),
    # compare equals what is there, so that the origin is read
    "Compare_and_swap origin": lambda w, b, c, t, d: w.Compare_and_swap(b, c + 154, c.copy(), t, d),
    "Compare_and_swap compare": lambda w, b, c, t, d: w.Compare_and_swap(c, b, c.copy(), t, d),
    "Compare_and_swap result": lambda w, b, c, t, d: w.Compare_and_swap(c, c.copy(), b, t, d),
}


@contextlib.contextmanager
def locked(win, target):
    """Lock a target; what fails inside is let out once the lock is given back."""
    win.Lock(target, MPI.LOCK_SHARED)
    try:
        yield
        win.Flush(target)
    finally:
        win.Unlock(target)


def one_sided(win, displacement, call, shape, derived=False):
    """Make a one-sided call at rank 0 whose local memory faults."""
    pages, first, n, page = shape
    counts["tried"] += 1
    if rank == 0:
        memory = Memory(pages)
        mine = words(memory.bytes[first : first + n])
        clean = np.zeros_like(mine)
        for target in (size - 1, 0):
            with memory.faulting(page):

                def run(target=target):
                    with locked(win, target):
                        call(win, mine, clean, target, displacement(target))

                attempt(run, must_fail=True)
            # The window and the peer work.
            with locked(win, target):
                put, got = np.array([77], "l"), np.zeros(1, "l")
                win.Put(put, target, displacement(target))
                win.Flush(target)
                win.Get(got, target, displacement(target))
                win.Flush(target)
                assert got[0] == 77
                win.Fetch_and_op(put, got, target, displacement(target))
                win.Flush(target)
                assert got[0] == 77


def fenced(win, displacement, page):
    """Put from memory that faults between fences, which all ranks pass."""
    win.Fence()
    if rank == 0:
        memory = Memory(4)
        mine = words(memory.bytes)[: (page + 1) * PAGE // 8]
        with memory.faulting(page):
            attempt(lambda: win.Put(mine, size - 1, displacement), must_fail=False)
            attempt(win.Fence, must_fail=False)
    else:
        attempt(win.Fence, must_fail=False)


def onesided():
    """Make all one-sided calls on windows of each kind."""
    for _kind, win, displacement in windows():
        for call in ONE_SIDED.values():
            for pages, first, n, page in shapes(long=False):
                one_sided(win, displacement, call, (pages, first // 8 * 8, n // 8 * 8, page))
        for call in SINGLE.values():
            one_sided(win, displacement, call, (1, 0, 8, 0))
        for page in (0, 3):
            fenced(win, displacement(size - 1), page)
        world.Barrier()


def access(win, name, at, n):
    """Access n bytes of rank 0's part, under a lock."""
    with locked(win, 0):
        ONE_SIDED[name](win, np.zeros(n // 8, "l"), np.zeros(n // 8, "l"), 0, at)


def targets():
    """Access windows over memory that faults at the target."""
    for page in (0, 3):
        memory = Memory(8)
        win = MPI.Win.Create(memory.bytes, 8, comm=world)
        for n in (8, 512, 8 * PAGE):
            at = 0 if n == 8 * PAGE else page * PAGE // 8
            for name in ("Put", "Get", "Accumulate", "Get_accumulate origin", "Rput", "Rget"):
                counts["tried"] += 1
                with memory.faulting(page, rank == 0):
                    world.Barrier()
                    for origin in range(size):
                        if rank == origin:
                            attempt(functools.partial(access, win, name, at, n), must_fail=True)
                        world.Barrier()
                world.Barrier()
                if rank == size - 1:
                    with locked(win, 0):
                        one = np.full(1, 5, "l")
                        win.Put(one, 0, page * PAGE // 8)
                        win.Flush(0)
                        win.Get(one, 0, page * PAGE // 8)
                    assert one[0] == 5
                world.Barrier()
        win.Free()


# --- files --------------------------------------------------------------------------

FILES = ("Write", "Write_at", "Write_all", "Write_at_all", "Write_ordered", "Write_shared", "Iwrite", "Iwrite_all",
         "Read", "Read_at", "Read_all", "Read_at_all", "Read_ordered", "Read_shared", "Iread", "Iread_all")  # fmt: skip


def file_call(file, name, buffer):
    """Read or write from the beginning, or at the beginning."""
    call = getattr(file, name)
    request = call(0, buffer) if "_at" in name else call(buffer)
    if request is not None:
        request.Wait()


def files():
    """Read and write files from and to memory that faults, in views with and without gaps."""
    path = world.bcast(tempfile.mktemp(dir=os.getcwd()))
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    n = 16 * PAGE
    strided = MPI.BYTE.Create_vector(n // 64, 64, 64 * size).Commit()
    strided = strided.Create_resized(0, 64 * size * (n // 64)).Commit()
    file.Write_at(rank * n, np.ones(n, "u1"))
    file.Sync()
    world.Barrier()
    for view in (False, True):
        for derived in (False, True):
            for name in FILES:
                if view and ("shared" in name or "ordered" in name):
                    continue  # a shared pointer needs the same view on all ranks
                for page in (0, 3, 15):
                    file.Set_view(rank * 64 if view else 0, MPI.BYTE, strided if view else MPI.BYTE)
                    counts["tried"] += 1
                    memory = Memory(16)
                    last = n // 7 * 7
                    if derived and page * PAGE >= last:
                        continue
                    with memory.faulting(page, rank == 0):
                        attempt(
                            lambda name=name, memory=memory, derived=derived: file_call(
                                file, name, spec(memory.bytes, derived)
                            ),
                            must_fail=rank == 0,
                        )
                    # The file works, on all ranks.
                    file.Set_view(0)
                    good, back = np.full(100, rank, "u1"), np.zeros(100, "u1")
                    file.Write_at_all(rank * 100, good)
                    file.Read_at_all(rank * 100, back)
                    assert (back == rank).all()
    file.Close()


# --- what must still be true ----------------------------------------------------------


def passive():
    """Reach a target that computes: after all that, the others still call its progress engine."""
    win = MPI.Win.Create(np.zeros(8, "l"), 8, comm=world)
    for target in range(size):
        world.Barrier()
        if rank == target:
            others = [f"flag-reached-{target}-{r}" for r in range(size) if r != target]
            end = time.monotonic() + 60
            while not all(map(os.path.exists, others)):  # it computes, in no call of MPI
                assert time.monotonic() < end, "a target that computes was waited for"
        else:
            with locked(win, target):
                win.Accumulate(np.ones(1, "l"), target)
                win.Flush(target)
            raise_flag(f"reached-{target}-{rank}")
    world.Barrier()
    win.Free()


GROUPS = [messages, collectives, onesided, targets, files, passive]

for group in GROUPS:
    if len(sys.argv) == 1 or group.__name__ in sys.argv[1:]:
        group()
        world.Barrier()
total = world.gather(counts)
if rank == 0:
    print({key: sum(each[key] for each in total) for key in counts})
