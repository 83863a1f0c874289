"""Operations leave nothing behind in the process: no memory, descriptor, mapping or thread."""

import pytest

pytestmark = pytest.mark.exhaustive

MEASURE = """
    import gc, os, time
    from collections import Counter
    import numpy as np
    from rankside import *

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def descriptors():
        return sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                      if os.path.islink(f"/proc/self/fd/{fd}"))

    def mappings():
        # shared memory that is mapped; the allocator's own mappings come and go
        with open("/proc/self/maps") as file:
            return sum("memfd:" in line for line in file)

    def threads():
        return len(os.listdir("/proc/self/task"))

    def measure(operation, times, slack):
        other = 1 - rank if size == 2 else rank
        def repeat(count):
            for _ in range(count):
                operation()
            gc.collect()
        repeat(max(times // 10, 5))  # what is made on first use is made
        world.Barrier()
        time.sleep(0.5)  # the watcher of peers has seen them all
        before = resident(), descriptors(), mappings(), threads()
        repeat(times)
        world.Barrier()
        after = resident(), descriptors(), mappings(), threads()
        more = Counter(after[1]) - Counter(before[1])
        assert not more, dict(more)
        assert after[2] <= before[2], ("mappings", before[2], after[2])
        # Go adds one whenever a call takes longer than usual and all others are busy: few, but not at once
        assert after[3] <= before[3] + 16, ("threads", before[3], after[3])
        grown = after[0] - before[0]
        say(f"grown {grown / times:.1f} bytes for each of {times}")
        assert grown < slack, f"{grown / 1e6:.1f} MB more after {times} operations"

    a, b = np.zeros(4), np.zeros(4)
    one, two = np.zeros(1), np.zeros(1)
    peer = 1 - rank if size == 2 else rank
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    request = MPI.Request()
    info = {"key": list(range(10))}
"""

MIB = 1 << 20

# operation, ranks, times, room for memory that has other reasons
HOT = {
    "put-flush": ("win.Put(one, peer); win.Flush(peer)", 2, 100_000),
    "get-flush": ("win.Get(one, peer); win.Flush(peer)", 2, 100_000),
    "accumulate": ("win.Accumulate(one, peer); win.Flush(peer)", 2, 100_000),
    "fetch-and-op": ("win.Fetch_and_op(one, two, 0); win.Flush(0)", 2, 100_000),
    "self-messages": ("r = world.Irecv(a, peer); world.Send(b, peer); r.Wait()", 1, 100_000),
    "pair-messages": ("world.Send(a, 1 - rank); world.Recv(b, 1 - rank)", 2, 100_000),
    "nonblocking": ("r = world.Irecv(a, peer); s = world.Isend(b, peer); MPI.Request.Waitall([r, s])", 2, 100_000),
    "sendrecv": ("world.Sendrecv(a, peer, 0, b, peer, 0)", 2, 50_000),
    "barrier": ("world.Barrier()", 2, 100_000),
    "allreduce": ("world.Allreduce(a, b)", 2, 50_000),
    "bcast": ("world.Bcast(a)", 2, 50_000),
    "test-on-null": ("request.Test()", 1, 100_000),
    "pickled": ("world.send(info, peer); world.recv(source=peer)", 2, 20_000),
    "pickled-allreduce": ("world.allreduce(1)", 2, 10_000),
    "iprobe": ("world.Iprobe()", 1, 50_000),
    "rendezvous": ("world.Sendrecv(big, peer, 0, huge, peer, 0)", 2, 500),
}


@pytest.mark.parametrize("kind", HOT)
def test_hot_operation(mpirun, kind):
    statement, ranks, times = HOT[kind]
    mpirun(
        ranks,
        MEASURE
        + f"""
    big, huge = np.zeros(100_000), np.zeros(100_000)
    def operation():
        {statement}
    measure(operation, {times}, {8 * MIB})
    win.Unlock_all()
    """,
        timeout=120,
    )


MADE = {
    "dup": ("c = world.Dup(); c.Barrier(); c.Free()", 2, 200),
    "split": ("c = world.Split(rank % 2); c.Barrier(); c.Free()", 2, 200),
    "allocate": ("w = MPI.Win.Allocate(100_000, comm=world); w.Fence(); w.Free()", 2, 200),
    "create": ("w = MPI.Win.Create(large, comm=world); w.Fence(); w.Free()", 2, 200),
    "create-shared": (
        "a = gormapy.shared_zeros(10_000); w = MPI.Win.Create(a, comm=world); w.Fence(); w.Free()",
        2,
        200,
    ),
    "group": ("g = world.Get_group(); h = g.Incl([0]); h.Free(); g.Free()", 1, 20_000),
    "datatype": ("t = MPI.DOUBLE.Create_vector(3, 2, 5).Commit(); t.Free()", 1, 20_000),
    "persistent": ("r = world.Recv_init(a, peer); r.Start(); world.Send(b, peer); r.Wait(); r.Free()", 1, 20_000),
    "errors": ("failing()", 1, 50_000),
    "alloc-mem": ("m = MPI.Alloc_mem(100_000); m[:] = bytes(100_000); MPI.Free_mem(m)", 1, 500),
}


@pytest.mark.parametrize("kind", MADE)
def test_made_and_freed(mpirun, kind):
    statement, ranks, times = MADE[kind]
    mpirun(
        ranks,
        MEASURE
        + f"""
    large = np.zeros(100_000)
    def failing():
        try:
            world.Send(a, dest=17)
        except MPI.Exception as error:
            error.Get_error_string()
    def operation():
        {statement}
    measure(operation, {times}, {8 * MIB})
    win.Unlock_all()
    """,
        timeout=120,
    )


def test_buffer_is_let_go(mpirun):
    mpirun(
        2,
        """
        import sys
        import numpy as np
        from rankside import *
        a, b = np.zeros(1000), np.zeros(100_000)
        counts = sys.getrefcount(a), sys.getrefcount(b)
        for i in range(50):
            world.Sendrecv(a, 1 - rank, 0, np.zeros(1000), 1 - rank, 0)
            r = world.Irecv(b, 1 - rank)
            world.Send(np.zeros(100_000), 1 - rank)
            r.Wait()
            world.Allreduce(a, np.zeros(1000))
            win = MPI.Win.Create(b, comm=world)
            win.Fence()
            win.Put(a, 1 - rank)
            win.Fence()
            win.Free()
        del r, win
        assert (sys.getrefcount(a), sys.getrefcount(b)) == counts
        """,
    )


def test_window_that_is_never_freed_holds_its_memory(mpirun):
    mpirun(
        2,
        """
        import gc
        import numpy as np
        from rankside import *
        def make():
            a = np.zeros(1000)
            return MPI.Win.Create(a, comm=world)
        win = make()
        gc.collect()
        junk = [np.full(1000, 3.0) for _ in range(100)]
        win.Fence()
        win.Put(np.full(1000, 1.0 + rank), 1 - rank)
        win.Fence()
        assert all((j == 3.0).all() for j in junk)
        assert (np.frombuffer(win.tomemory()) == 2.0 - rank).all()
        win.Free()
        """,
    )
