"""Order by messages and collectives: by what they carry, not by their names."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def broadcast_from_the_origin():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
    world.bcast("it is there", root=0)
    if rank == 1:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def broadcast_to_the_origin():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    world.bcast("anything", root=1)
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def scatter_to_the_origin():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    world.scatter(range(size) if rank == 1 else None, root=1)
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def scatter_from_the_origin():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
    world.scatter(range(size) if rank == 0 else None, root=0)
    if rank == 1:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def gathered_at_the_owner():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank != 1:
        win.Put(np.full(1, float(rank)), 1, rank)
        win.Flush(1)
    world.gather(rank, root=1)
    if rank == 1:
        win.Sync()
        assert part[2] == 2.0
    win.Unlock_all()
    win.Free()


def gathered_elsewhere():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    world.gather(rank, root=2)
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def reduced_at_the_owner():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, sums = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
    world.Reduce(np.ones(1), sums, root=1)
    if rank == 1:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def prefix_sums_to_the_owner():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 2)
        win.Flush(2)
    world.scan(1)
    if rank == 2:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def prefix_sums_from_the_owner():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 2:
        win.Put(np.ones(1), 0)  # 1: Put
        win.Flush(0)
    world.scan(1)
    if rank == 0:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def allgather_orders_all():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    win.Put(np.full(1, float(rank)), (rank + 1) % size)
    win.Flush_all()
    world.allgather(rank)
    win.Sync()
    assert part[0] == (rank - 1) % size
    win.Unlock_all()
    win.Free()


def exchange_with_the_wrong_neighbour():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    if rank != 1:
        world.Sendrecv(token, 2 - rank, recvbuf=np.zeros(1), source=2 - rank)
    else:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def exchange_with_the_right_neighbour():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    right, left = (rank + 1) % size, (rank - 1) % size
    win.Lock_all()
    win.Put(np.full(1, float(rank)), right)
    win.Flush(right)
    world.Sendrecv(np.zeros(1), right, recvbuf=np.zeros(1), source=left)
    win.Sync()
    assert part[0] == left
    win.Unlock_all()
    win.Free()


def exchange_the_other_way_round():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    right, left = (rank + 1) % size, (rank - 1) % size
    win.Lock_all()
    win.Put(np.full(1, float(rank)), right)  # 1: Put
    win.Flush(right)
    world.Sendrecv(np.zeros(1), left, recvbuf=np.zeros(1), source=right)
    win.Sync()
    print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def received_but_not_awaited():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
        world.Send(token, 1)
    else:
        request = world.Irecv(token, 0)
        win.Sync()
        print(part[0])  # 2: load
        request.Wait()
    win.Unlock_all()
    win.Free()


def received_and_awaited():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
        request = world.Isend(token, 1)
    else:
        request = world.Irecv(token, 0)
    request.Wait()
    if rank == 1:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def ibarrier_then_wait():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
    request = world.Ibarrier()
    request.Wait()
    if rank == 1:
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def ibarrier_not_awaited():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    request = world.Ibarrier()
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    request.Wait()
    win.Unlock_all()
    win.Free()


def ibarrier_begun_before_the_put():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    request = world.Ibarrier()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    request.Wait()
    if rank == 1:
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def sent_before_the_flush_was_over():  # check: flush-missing n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        request = world.Isend(token, 1)
        win.Flush(1)
        request.Wait()
    else:
        world.Recv(token, 0)
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def persistent_requests():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    there = world.Send_init(token, 1, 1) if rank == 0 else world.Recv_init(token, 0, 1)
    back = world.Recv_init(token, 1, 2) if rank == 0 else world.Send_init(token, 0, 2)
    win.Lock_all()
    for step in range(3):
        if rank == 0:
            win.Put(np.full(1, float(step)), 1)
            win.Flush(1)
        there.Start()
        there.Wait()
        if rank == 1:
            win.Sync()
            assert part[0] == step
        back.Start()
        back.Wait()
    win.Unlock_all()
    there.Free()
    back.Free()
    win.Free()


def persistent_request_there_alone():  # check: local-access n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, token = np.frombuffer(win, "f8"), np.zeros(1)
    there = world.Send_init(token, 1, 1) if rank == 0 else world.Recv_init(token, 0, 1)
    win.Lock_all()
    for step in range(2):
        if rank == 0:
            win.Put(np.full(1, float(step)), 1)  # 1: Put
            win.Flush(1)
        there.Start()
        there.Wait()
        if rank == 1:
            win.Sync()
            print(part[0])  # 2: load
    win.Unlock_all()
    there.Free()
    win.Free()


def barrier_of_some():  # check: target-conflict n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    some = world.Split(0 if rank < 2 else 1)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        win.Flush(1)
    some.Barrier()
    if rank == 2:
        win.Put(np.zeros(1), 1)  # 2: Put
    win.Unlock_all()
    some.Free()
    win.Free()


def barrier_of_those_concerned():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    some = world.Split(rank % 2)
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
    some.Barrier()
    if rank == 2:
        win.Put(np.zeros(1), 1)
    win.Unlock_all()
    some.Free()
    win.Free()


def chain_of_messages():  # check: clean n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        win.Put(np.ones(1), 2)
        win.Flush(2)
        world.send(None, 1)
    elif rank == 1:
        world.send(world.recv(source=0), 2)
    else:
        world.recv(source=1)
        win.Sync()
        assert part[0] == 1.0
    win.Unlock_all()
    win.Free()


def chain_begun_too_early():  # check: local-access n=3
    win = MPI.Win.Allocate(64, 8, comm=world)
    part = np.frombuffer(win, "f8")
    win.Lock_all()
    if rank == 0:
        world.send(None, 1)
        win.Put(np.ones(1), 2)  # 1: Put
        win.Flush(2)
    elif rank == 1:
        world.send(world.recv(source=0), 2)
    else:
        world.recv(source=1)
        win.Sync()
        print(part[0])  # 2: load
    win.Unlock_all()
    win.Free()


def answer_orders_the_store():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    part, got = np.frombuffer(win, "f8"), np.zeros(1)
    win.Lock_all()
    if rank == 0:
        win.Get(got, 1)
        win.Flush(1)
        world.ssend(None, 1)
    else:
        world.recv(source=0)
        part[0] = 4.0
        win.Sync()
    win.Unlock_all()
    win.Free()
