"""The programs of test_views_after_free.py."""

import gc

import numpy as np
from rankside import MPI, near, rank, world

import gormapy

# Beyond the size up to which segments of freed windows are kept for others; and one within it.
SIZES = (100, 700_000)

WINDOWS = {
    "Create": lambda n: MPI.Win.Create(np.zeros(n, "u1"), comm=world),
    "Create_bytearray": lambda n: MPI.Win.Create(bytearray(n), comm=world),
    "Create_Alloc_mem": lambda n: MPI.Win.Create(MPI.Alloc_mem(n), comm=world),
    "Create_shared_zeros": lambda n: MPI.Win.Create(gormapy.shared_zeros(n, "u1"), comm=world),
    "Allocate": lambda n: MPI.Win.Allocate(n, comm=world),
    "Allocate_of_a_node": lambda n: MPI.Win.Allocate(n, comm=near()),
    "Allocate_shared": lambda n: MPI.Win.Allocate_shared(n, comm=near()),
}

VIEWS = {
    "asarray": np.asarray,
    "frombuffer": lambda shown: np.frombuffer(shown, "u1"),
    "memoryview": lambda shown: memoryview(shown).cast("B"),
    "slice": lambda shown: memoryview(shown)[10:].cast("B"),
    "buffer": MPI.buffer,
}

SHOWN = {
    "win": lambda win, r: win if r == win.group_rank else None,
    "tomemory": lambda win, r: win.tomemory() if r == win.group_rank else None,
    "Shared_query": lambda win, r: win.Shared_query(r)[0],
    "slice_of_Shared_query": lambda win, r: win.Shared_query(r)[0][5:],
}


def show(win):
    """Return all views of all parts that this process shows."""
    views = []
    for shown in SHOWN.values():
        for r in range(win.group_size):
            what = shown(win, r)
            if what is not None and memoryview(what).nbytes:
                views += [(r, view(what)) for view in VIEWS.values()]
    return views


def views_after_free(kind, copied):
    """All views of a window's memory show it after Free, and to write there changes nothing else."""
    for n in SIZES:
        win = WINDOWS[kind](n)
        np.asarray(win)[:] = 1 + win.group_rank
        win.Fence()
        views = show(MPI.Win(win) if copied else win)
        assert views
        win.Free()
        del win
        gc.collect()
        others = [np.zeros(n, "u1"), bytearray(n), MPI.Win.Allocate(n, comm=world)]  # what would be in its place
        np.asarray(others[2])[:] = 0
        for r, view in views:
            assert (np.asarray(view) == 1 + r).all(), (kind, n, r, type(view))
        world.Barrier()
        for r, view in views:
            np.asarray(view)[:] = 100 + r
        assert not any(np.asarray(other).any() for other in others)
        assert all((np.asarray(view) == 100 + r).all() for r, view in views)
        world.Barrier()
        others.pop().Free()


def each_view_alone(kind):
    """One view is enough."""
    n = SIZES[1]
    win = WINDOWS[kind](n)
    number = world.allreduce(len(show(win)), MPI.MIN)
    win.Free()
    for i in range(number):
        win = WINDOWS[kind](n)
        me = win.group_rank
        np.asarray(win)[:] = 1 + me
        win.Fence()
        r, view = show(win)[i]
        win.Free()
        del win
        gc.collect()
        shown = np.asarray(view)
        whole = (shown == 1 + r).all()
        assert whole or (kind.startswith("Create") and r != me), (kind, i)  # other ranks may have freed theirs
        del view, shown
        world.Barrier()


def what_nothing_shows_is_given_back():
    """Neither views that are gone nor windows hold memory."""

    def mapped():
        with open("/proc/self/maps") as maps:
            return sum("gormapy-window" in line for line in maps)

    before = mapped()
    for kind in ("Allocate", "Allocate_shared"):
        win = WINDOWS[kind](SIZES[1])
        views = show(win)
        win.Free()
        assert mapped() == before + 1, (mapped(), before)
        while views:
            views.pop()
        gc.collect()
        assert mapped() == before, (mapped(), before)


def a_view_outlives_its_buffer():
    """An array of a buffer shows its memory after the buffer has been released, and Alloc_mem's after Free_mem."""
    for end in (MPI.buffer.release, MPI.Free_mem):
        memory = MPI.Alloc_mem(SIZES[1])
        views = [view(memory) for view in list(VIEWS.values())[:4]]
        views[0][:] = 1 + rank
        end(memory)
        other = MPI.Alloc_mem(SIZES[1])
        np.asarray(other)[:] = 99
        assert all((np.asarray(view) == 1 + rank).all() for view in views)
        del views
        MPI.Free_mem(other)
    own = bytearray(b"x" * 100_000)
    memory = MPI.buffer(own)
    array = np.frombuffer(memory, "u1")
    del own
    memory.release()
    assert (array == ord("x")).all()
