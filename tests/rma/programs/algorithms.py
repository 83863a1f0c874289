"""What people build on one-sided calls: locks, counters, lists, queues, transposes."""

import numpy as np
from onesided import MPI, Window, case, main, rank, same, size, world

NIL = -1


def swap(win, target, disp, new):
    """Replace a value and return the old one."""
    new, old = np.array([new], "i8"), np.zeros(1, "i8")
    win.Fetch_and_op(new, old, target, disp, MPI.REPLACE)
    win.Flush(target)
    return int(old[0])


def compare_and_swap(win, target, disp, expected, new):
    """Return the value that was there."""
    expected, new, old = np.array([expected], "i8"), np.array([new], "i8"), np.zeros(1, "i8")
    win.Compare_and_swap(new, expected, old, target, disp)
    win.Flush(target)
    return int(old[0])


def read(win, target, disp):
    """Read a value that others may be replacing."""
    none, old = np.zeros(1, "i8"), np.zeros(1, "i8")
    win.Fetch_and_op(none, old, target, disp, MPI.NO_OP)
    win.Flush(target)
    return int(old[0])


def write(win, target, disp, value):
    """Write a value that others may be reading."""
    win.Accumulate(np.array([value], "i8"), target, disp, MPI.REPLACE)
    win.Flush(target)


class QueueLock:
    """The lock of Mellor-Crummey and Scott: each rank waits on a word of its own."""

    # the tail of the queue is on rank 0; on each rank: its successor, and whether it has to wait
    TAIL, NEXT, WAIT = 0, 1, 2

    def __init__(self, window):
        self.window, self.win = window, window.win

    def acquire(self):
        w = self.window
        write(self.win, rank, w.at(rank, self.NEXT), NIL)
        write(self.win, rank, w.at(rank, self.WAIT), 1)
        before = swap(self.win, 0, w.at(0, self.TAIL), rank)
        if before != NIL:
            write(self.win, before, w.at(before, self.NEXT), rank)
            while read(self.win, rank, w.at(rank, self.WAIT)):
                world.Iprobe()

    def release(self):
        w = self.window
        after = read(self.win, rank, w.at(rank, self.NEXT))
        if after == NIL:
            if compare_and_swap(self.win, 0, w.at(0, self.TAIL), rank, NIL) == rank:
                return
            while (after := read(self.win, rank, w.at(rank, self.NEXT))) == NIL:
                world.Iprobe()
        write(self.win, after, w.at(after, self.WAIT), 0)


class FlagLock:
    """A flag that whoever changes it from 0 to 1 has, by one of three calls."""

    def __init__(self, window, how):
        self.window, self.win, self.how = window, window.win, how

    def acquire(self):
        disp = self.window.at(0, 0)
        one, old = np.ones(1, "i8"), np.zeros(1, "i8")
        while True:
            if self.how == "CAS":
                old[0] = compare_and_swap(self.win, 0, disp, NIL, 1)
                if old[0] == NIL:
                    return
            elif self.how == "FOP":
                if swap(self.win, 0, disp, 1) == NIL:
                    return
            else:
                self.win.Get_accumulate(one, old, 0, disp, MPI.MAX)
                self.win.Flush(0)
                if old[0] == NIL:
                    return
            world.Iprobe()

    def release(self):
        write(self.win, 0, self.window.at(0, 0), NIL)


@case
def mutexes(flavour):
    """An unprotected read and write of a counter loses nothing under each of the locks."""
    rounds = 12
    for kind in ("MCS", "CAS", "FOP", "GACC"):
        with Window(flavour, 4, "i8") as w, Window(flavour, 2, "i8") as counter:
            w.mine[:] = [NIL, NIL, 0, 0]
            world.Barrier()
            lock = QueueLock(w) if kind == "MCS" else FlagLock(w, kind)
            w.win.Lock_all()
            counter.win.Lock_all()
            value = np.zeros(1, "i8")
            for _ in range(rounds):
                lock.acquire()
                counter.win.Get(value, size - 1, counter.at(size - 1, 1))
                counter.win.Flush(size - 1)
                value += 1
                counter.win.Put(value, size - 1, counter.at(size - 1, 1))
                counter.win.Flush(size - 1)
                lock.release()
            counter.win.Unlock_all()
            w.win.Unlock_all()
            counter.settle()
            if rank == size - 1:
                same(counter.mine, [0, rounds * size], kind)


@case
def fetch_and_add_by_a_tree(flavour):
    """A counter that is the sum over a tree with a leaf for each rank: each rank adds to its way up to the root."""
    leaves = 1 << (size - 1).bit_length()
    rounds = 20
    with Window(flavour, 2 * leaves, "i8") as w:
        tree, seen = 0, []
        one, old = np.ones(1, "i8"), np.zeros(1, "i8")
        w.win.Lock(tree, MPI.LOCK_SHARED)
        for _ in range(rounds):
            node = leaves + rank
            while node >= 1:
                w.win.Get_accumulate(one, old, tree, w.at(tree, node), MPI.SUM)
                w.win.Flush(tree)
                node //= 2
            seen.append(int(old[0]))
        w.win.Unlock(tree)
        assert sorted(x for s in world.allgather(seen) for x in s) == list(range(rounds * size))
        w.settle()
        if rank == tree:
            assert w.mine[1] == rounds * size
            for node in range(1, leaves):
                assert w.mine[node] == w.mine[2 * node] + w.mine[2 * node + 1]


@case
def fetch_and_add_without_fetch_and_op(flavour):
    """Each rank writes its own part of an array and reads the others' at the same time, under an exclusive lock."""
    rounds = 10
    with Window(flavour, size, "i8") as w:
        counts, seen = np.zeros(size, "i8"), []
        for turn in range(rounds):
            w.win.Lock(0)
            if rank:
                w.win.Get([counts, rank, MPI.INT64_T], 0, (w.at(0), rank, MPI.INT64_T))
            if rank + 1 < size:
                after = size - rank - 1
                w.win.Get([counts[rank + 1 :], after, MPI.INT64_T], 0, (w.at(0, rank + 1), after, MPI.INT64_T))
            w.win.Accumulate(np.ones(1, "i8"), 0, w.at(0, rank))
            w.win.Unlock(0)
            counts[rank] = turn
            seen.append(int(counts.sum()))
        assert sorted(x for s in world.allgather(seen) for x in s) == list(range(rounds * size))


@case
def linked_list(flavour):
    """All ranks append elements of theirs to one list, by compare-and-swap on the last element's pointer."""
    each = 8
    # an element is: a value, and the rank and index of the next one, as one number
    with Window(flavour, 2 * (each + 1), "i8") as w:
        w.mine[:] = NIL
        world.Barrier()
        w.win.Lock_all()
        tail = (0, 0)  # element 0 of rank 0 is the head
        for i in range(1, each + 1):
            value = rank * 1000 + i
            write(w.win, rank, w.at(rank, 2 * i), value)
            while True:
                owner, index = tail
                found = compare_and_swap(w.win, owner, w.at(owner, 2 * index + 1), NIL, rank * 100 + i)
                if found == NIL:
                    tail = (rank, i)
                    break
                tail = divmod(found, 100)
        world.Barrier()
        values, at = [], read(w.win, 0, w.at(0, 1))
        while at != NIL:
            owner, index = divmod(at, 100)
            values.append(read(w.win, owner, w.at(owner, 2 * index)))
            at = read(w.win, owner, w.at(owner, 2 * index + 1))
        w.win.Unlock_all()
        assert sorted(values) == sorted(r * 1000 + i for r in range(size) for i in range(1, each + 1))
        for r in range(size):
            own = [v for v in values if v // 1000 == r]
            assert own == sorted(own), "a rank's elements are not in the order in which it appended them"


@case
def tickets_and_a_ring(flavour):
    """Producers put into slots that they drew by Fetch_and_op; the owner takes them out by flags."""
    each, slots = 10, size * 10
    with Window(flavour, 1 + 2 * slots, "i8") as w:
        one, ticket = np.ones(1, "i8"), np.zeros(1, "i8")
        w.win.Lock_all()
        for i in range(each):
            w.win.Fetch_and_op(one, ticket, 0, w.at(0))
            w.win.Flush(0)
            slot = int(ticket[0])
            w.win.Put(np.array([rank * 1000 + i]), 0, w.at(0, 1 + slot))
            w.win.Flush(0)
            write(w.win, 0, w.at(0, 1 + slots + slot), 1)
        if rank == 0:
            for slot in range(slots):
                while not read(w.win, 0, w.at(0, 1 + slots + slot)):
                    world.Iprobe()
                w.win.Sync()
                assert w.mine[1 + slot] % 1000 < each, "the flag was seen before what it is about"
        w.win.Unlock_all()
        w.settle()
        if rank == 0:
            same(sorted(w.mine[1 : 1 + slots]), sorted(r * 1000 + i for r in range(size) for i in range(each)))


@case
def halo_exchange(flavour):
    """Rows and columns of neighbours on a torus of ranks, by fences."""
    dims = MPI.Compute_dims(size, 2)
    cart = world.Create_cart(dims, [True, True])
    n = 6
    column = MPI.DOUBLE.Create_vector(n, 1, n + 2).Commit()
    with Window(flavour, (n + 2) ** 2, "f8", comm=cart) as w:
        field = w.mine.reshape(n + 2, n + 2)
        field[1:-1, 1:-1] = cart.rank
        whole = field.copy()
        up, down = cart.Shift(0, 1)
        left, right = cart.Shift(1, 1)
        w.win.Fence()
        w.win.Put([whole[1, 1:], n, MPI.DOUBLE], up, (w.at(up, (n + 1) * (n + 2) + 1), n, MPI.DOUBLE))
        w.win.Put([whole[n, 1:], n, MPI.DOUBLE], down, (w.at(down, 1), n, MPI.DOUBLE))
        flat = whole.reshape(-1)
        w.win.Put([flat[n + 3 :], 1, column], left, (w.at(left, n + 2 + n + 1), 1, column))
        w.win.Put([flat[n + 2 + n :], 1, column], right, (w.at(right, n + 2), 1, column))
        w.win.Fence()
        same(field[0, 1:-1], np.full(n, up))
        same(field[n + 1, 1:-1], np.full(n, down))
        same(field[1:-1, 0], np.full(n, left))
        same(field[1:-1, n + 1], np.full(n, right))
        same(field[1:-1, 1:-1], np.full((n, n), cart.rank))
    column.Free()
    cart.Free()


@case
def distributed_transpose(flavour):
    """A matrix whose rows are dealt out is transposed by one Put a pair of ranks."""
    m = 5
    n = m * size
    # one of m rows of the origin's becomes a column of the target's
    element_column = MPI.DOUBLE.Create_vector(m, 1, n).Create_resized(0, 8).Commit()
    block = MPI.DOUBLE.Create_vector(m, m, n).Commit()
    matrix = np.arange(n * n, dtype="f8").reshape(n, n)
    mine = matrix[rank * m : (rank + 1) * m].copy()
    with Window(flavour, m * n, "f8") as w:
        w.win.Fence(MPI.MODE_NOPRECEDE)
        for target in range(size):
            part = [mine.reshape(-1)[target * m :], 1, block]
            w.win.Put(part, target, (w.at(target, rank * m), m, element_column))
        w.win.Fence(MPI.MODE_NOSUCCEED)
        same(w.mine.reshape(m, n), matrix.T[rank * m : (rank + 1) * m])
        world.Barrier()  # a rank may read while others go on
    element_column.Free()
    block.Free()


main()
