"""A little of everything, for ranks on several hosts. Plain MPI: it runs on other MPIs as well."""

import numpy as np

try:
    from gormapy import MPI
except ImportError:
    from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
node = world.Split_type(MPI.COMM_TYPE_SHARED)


def messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (0, 1, 1000, 1 << 18):
        got = np.empty(count)
        world.Sendrecv(np.full(count, float(rank)), right, 1, got, left, 1)
        assert (got == left).all()
    assert world.allgather({"rank": rank}) == [{"rank": r} for r in range(size)]
    requests = [world.isend(rank * 10, r, 2) for r in range(size)]
    assert sorted(world.recv(source=MPI.ANY_SOURCE, tag=2) for _ in range(size)) == [10 * r for r in range(size)]
    MPI.Request.waitall(requests)


def collectives():
    for count in (1, 1000, 100_000):
        total = np.empty(count)
        world.Allreduce(np.full(count, rank + 1.0), total)
        assert (total == size * (size + 1) / 2).all()
        everything = np.empty(count * size)
        world.Allgather(np.full(count, float(rank)), everything)
        assert (everything == np.repeat(np.arange(size), count)).all()
        world.Alltoall(np.repeat(np.arange(size) + 100.0 * rank, count), everything)
        assert (everything == np.repeat(np.arange(size) * 100.0 + rank, count)).all()
        world.Bcast(total, root=size - 1)
    assert world.scan(rank) == rank * (rank + 1) // 2
    world.Barrier()


def windows():
    for make in (
        lambda: MPI.Win.Allocate(8 * size, 8, comm=world),
        lambda: MPI.Win.Create(np.zeros(size), 8, comm=world),
    ):
        win = make()
        mine = np.frombuffer(win.tomemory(), "f8")
        win.Fence()
        mark = np.array([rank + 1.0])
        for target in range(size):
            win.Put(mark, target, rank)
        win.Fence()
        assert (mine == np.arange(size) + 1).all(), mine
        win.Fence()
        one = np.ones(1)
        for _ in range(10):
            for target in range(size):
                win.Lock(target)
                win.Accumulate(one, target, 0, MPI.SUM)
                win.Unlock(target)
        world.Barrier()
        got = np.zeros(1)
        win.Lock_all()
        win.Get(got, (rank + 1) % size, 0)
        win.Flush_all()
        win.Unlock_all()
        assert got[0] == 1 + 10 * size, got
        world.Barrier()
        win.Free()


def attached_memory():
    win = MPI.Win.Create_dynamic(comm=world)
    memory = np.full(4, float(rank))
    win.Attach(memory)
    addresses = world.allgather(MPI.Get_address(memory))
    target = (rank + 1) % size
    got = np.empty(4)
    win.Lock(target, MPI.LOCK_SHARED)
    win.Get(got, target, [addresses[target], 4, MPI.DOUBLE])
    win.Unlock(target)
    assert (got == target).all()
    world.Barrier()
    win.Detach(memory)
    win.Free()


def counter():
    """Ranks near and far add to one element."""
    win = MPI.Win.Allocate(8 if rank == 0 else 0, 8, comm=world)
    if rank == 0:
        np.frombuffer(win.tomemory(), "i8")[0] = 0
    world.Barrier()
    one, old = np.ones(1, "i8"), np.zeros(1, "i8")
    seen = []
    win.Lock_all()
    for _ in range(100):
        win.Fetch_and_op(one, old, 0, 0, MPI.SUM)
        win.Flush(0)
        seen.append(int(old[0]))
    win.Unlock_all()
    assert sorted(old for some in world.allgather(seen) for old in some) == list(range(100 * size))
    win.Free()


def posted_epochs():
    win = MPI.Win.Allocate(8 * size, 8, comm=world)
    mine = np.frombuffer(win.tomemory(), "f8")
    mine[:] = -1
    world.Barrier()
    others = world.Get_group().Excl([rank])
    mark = np.array([float(rank)])
    win.Post(others)
    win.Start(others)
    for target in range(size):
        if target != rank:
            win.Put(mark, target, rank)
    win.Complete()
    win.Wait()
    mine[rank] = rank
    assert (mine == np.arange(size)).all(), mine
    world.Barrier()
    win.Free()


for part in (messages, collectives, windows, attached_memory, counter, posted_epochs):
    part()
    world.Barrier()
nodes = len(set(world.allgather(world.Get_rank() if node.Get_rank() == 0 else -1)) - {-1})
if rank == 0:
    print(f"{size} ranks on {nodes} nodes: all went well", flush=True)
