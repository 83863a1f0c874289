"""Dynamic windows: memory that comes and goes, and structures whose pointers are addresses."""

import numpy as np
from onesided import MPI, main, once, rank, same, size, world

right, left = (rank + 1) % size, (rank - 1) % size
NIL = np.array([-1, 0], "i8")  # a pointer: rank, address


def dynamic():
    return MPI.Win.Create_dynamic(comm=world)


@once
def pieces_come_and_go():
    """Attach, access, detach, many times; several pieces at once; the same memory again."""
    win = dynamic()
    assert win.flavor == MPI.WIN_FLAVOR_DYNAMIC
    pieces = []
    for turn in range(30):
        pieces.append(np.zeros(1 + turn, "i8"))
        win.Attach(pieces[-1])
        if len(pieces) > 5:
            win.Detach(pieces.pop(turn % 5))
        addresses = world.allgather([MPI.Get_address(p) for p in pieces])
        win.Lock(right, MPI.LOCK_SHARED)
        for i, address in enumerate(addresses[right]):
            last = address + 8 * (len(pieces[i]) - 1)
            win.Put(np.array([rank * 1000 + turn * 10 + i]), right, last)
        win.Unlock(right)
        world.Barrier()
        for i, piece in enumerate(pieces):
            assert piece[-1] == left * 1000 + turn * 10 + i
            assert not piece[:-1].any()
        world.Barrier()
    for piece in pieces:
        win.Detach(piece)
    win.Free()


@once
def ranks_attach_what_they_like():
    """Some attach nothing, some in the middle of an epoch of others."""
    win = dynamic()
    win.Lock_all()
    memory = np.zeros(4, "i8")
    for owner in range(size):
        if rank == owner:
            win.Attach(memory)
        address = world.bcast(MPI.Get_address(memory), root=owner)
        one, old = np.ones(1, "i8"), np.zeros(1, "i8")
        win.Fetch_and_op(one, old, owner, address + 16)
        win.Flush(owner)
        world.Barrier()
        if rank == owner:
            win.Sync()
            same(memory, [0, 0, size, 0])
    world.Barrier()
    win.Unlock_all()
    win.Detach(memory)
    win.Free()


@once
def fences_and_general_synchronization():
    win = dynamic()
    memory = np.zeros(2 * size, "f8")
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    win.Fence()
    for r in range(size):
        win.Put(np.array([rank + 0.5, rank]), r, addresses[r] + 16 * rank)
    win.Fence(MPI.MODE_NOSUCCEED)
    same(memory.reshape(size, 2), [[r + 0.5, r] for r in range(size)])
    win.Post(world.Get_group().Incl([left]))
    win.Start(world.Get_group().Incl([right]))
    got = np.zeros(2 * size)
    win.Get(got, right, addresses[right])
    win.Complete()
    win.Wait()
    same(got, memory)
    win.Detach(memory)
    win.Free()


@once
def views_slices_and_Alloc_mem():
    """Any contiguous memory may be attached: a slice, a bytearray, what Alloc_mem gives."""
    win = dynamic()
    whole = np.zeros(100, "i4")
    kinds = [whole[10:20], bytearray(40), MPI.Alloc_mem(40), np.zeros((2, 5), "i4")]
    for kind in kinds:
        win.Attach(kind)
    for kind in kinds:
        address = world.allgather(MPI.Get_address(kind))
        win.Fence()
        win.Put(np.full(10, rank + 1, "i4"), right, address[right])
        win.Fence()
        same(np.frombuffer(kind, "i4", 10), np.full(10, left + 1))
    assert whole.sum() == 10 * (left + 1)
    world.Barrier()
    for kind in kinds:
        win.Detach(kind)
    win.Free()
    MPI.Free_mem(kinds[2])


@once
def neighbours_in_memory():
    """An access may go over pieces that were attached one beside the other? Not in MPI: it stays in one."""
    win = dynamic()
    memory = np.zeros(16, "i8")
    win.Attach(memory[:8])
    win.Attach(memory[8:])
    addresses = world.allgather(MPI.Get_address(memory))
    win.Lock(right)
    win.Put(np.arange(8), right, addresses[right])
    win.Put(np.arange(8) + 8, right, addresses[right] + 64)
    win.Unlock(right)
    world.Barrier()
    same(memory, np.arange(16))
    world.Barrier()
    win.Detach(memory[:8])
    win.Detach(memory[8:])
    win.Free()


class List:
    """A linked list; an element is attached memory: value, then pointer (rank, address) to the next."""

    def __init__(self, win):
        self.win = win
        self.mine = []
        self.head = self.element(-1) if rank == 0 else None
        self.first = tuple(world.bcast((0, MPI.Get_address(self.head)) if rank == 0 else None))

    def element(self, value):
        memory = np.array([value, *NIL], "i8")
        self.win.Attach(memory)
        self.mine.append(memory)
        return memory

    def read(self, at, count, offset=0):
        result, ignored = np.zeros(count, "i8"), np.zeros(count, "i8")
        self.win.Get_accumulate(ignored, result, at[0], at[1] + offset, MPI.NO_OP)
        self.win.Flush(at[0])
        return result

    def follow(self):
        """Return all values."""
        values, at = [], tuple(self.read(self.first, 2, 8))
        while at[0] != -1:
            value, *at = self.read(at, 3)
            values.append(int(value))
        return values


@once
def linked_list_by_compare_and_swap():
    """Whoever changes the rank of the tail's pointer from -1 owns its place; the address follows."""
    win = dynamic()
    win.Lock_all()
    chain = List(win)
    each = 10
    tail = chain.first
    for i in range(each):
        memory = chain.element(rank * 1000 + i)
        address = MPI.Get_address(memory)
        while True:
            new, expected, old = np.array([rank]), np.array([-1]), np.zeros(1, "i8")
            win.Compare_and_swap(new, expected, old, tail[0], tail[1] + 8)
            win.Flush(tail[0])
            if old[0] == -1:
                win.Accumulate(np.array([address]), tail[0], tail[1] + 16, MPI.REPLACE)
                win.Flush(tail[0])
                tail = (rank, address)
                break
            while True:  # until who won has written the address
                owner, where = chain.read(tail, 2, 8)
                if where:
                    break
                world.Iprobe()
            tail = (int(owner), int(where))
    world.Barrier()
    values = chain.follow()
    assert sorted(values) == sorted(r * 1000 + i for r in range(size) for i in range(each))
    for r in range(size):
        own = [v for v in values if v // 1000 == r]
        assert own == sorted(own)
    world.Barrier()
    win.Unlock_all()
    for memory in chain.mine:
        win.Detach(memory)
    win.Free()


@once
def linked_list_under_a_lock():
    """The list grows under exclusive locks of its head, by puts and gets."""
    win = dynamic()
    chain = List(win)
    world.Barrier()
    for i in range(8):
        memory = chain.element(rank * 1000 + i)
        win.Lock(0)
        before = np.zeros(2, "i8")
        win.Get(before, 0, chain.first[1] + 8)
        win.Flush(0)
        memory[1:] = before  # the new element is the first
        win.Put(np.array([rank, MPI.Get_address(memory)]), 0, chain.first[1] + 8)
        win.Unlock(0)
    world.Barrier()
    win.Lock_all()
    values = chain.follow()
    win.Unlock_all()
    assert sorted(values) == sorted(r * 1000 + i for r in range(size) for i in range(8))
    for r in range(size):
        own = [v for v in values if v // 1000 == r]
        assert own == sorted(own, reverse=True)
    world.Barrier()
    win.Free()  # with everything attached


@once
def many_pieces():
    """As many pieces as a program with a tree of nodes attaches."""
    win = dynamic()
    nodes = [np.zeros(2, "i8") for _ in range(200)]
    for node in nodes:
        win.Attach(node)
    addresses = world.allgather([MPI.Get_address(n) for n in nodes])
    values = np.arange(200) + rank
    win.Lock_all()
    for i, address in enumerate(addresses[right]):
        win.Accumulate(values[i : i + 1], right, address + 8)
    win.Unlock_all()
    world.Barrier()
    same([n[1] for n in nodes], np.arange(200) + left)
    world.Barrier()
    for node in nodes[::-1]:
        win.Detach(node)
    win.Free()


main()
