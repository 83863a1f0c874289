"""Buffers of messages and of persistent requests, beside those of pending operations."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def received_between_what_a_get_fills():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    both, other = np.zeros(8), 1 - rank
    even = MPI.DOUBLE.Create_vector(4, 1, 2).Commit()
    win.Fence()
    win.Get([both, 1, even], other, (0, 4, MPI.DOUBLE))
    request = world.Irecv([both[1:], 1, even], other)
    world.Send(np.ones(4), other)
    request.Wait()
    win.Fence()
    assert both.sum() == 4
    win.Free()


def received_where_a_get_fills():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    both, other = np.zeros(8), 1 - rank
    even = MPI.DOUBLE.Create_vector(4, 1, 2).Commit()
    win.Fence()
    win.Get([both, 1, even], other, (0, 4, MPI.DOUBLE))  # 1: Get
    world.Sendrecv(np.ones(2), other, recvbuf=both[3:5], source=other)  # 2: Sendrecv|store
    win.Fence()
    win.Free()


def persistent_send_prepared_during_a_get():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data, other = np.zeros(8), 1 - rank
    win.Fence()
    win.Get(data, other)
    send, receive = world.Send_init(data, other), world.Recv_init(np.zeros(8), other)
    win.Fence()
    MPI.Prequest.Startall([send, receive])
    MPI.Request.Waitall([send, receive])
    send.Free()
    receive.Free()
    win.Free()


def persistent_calls_started_during_a_get():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    reduce = world.Allreduce_init(np.ones(8), data)
    win.Fence()
    win.Get(data, 1 - rank)  # 1: Get
    reduce.Start()  # 2: Start|store
    reduce.Wait()
    win.Fence()
    reduce.Free()
    win.Free()


def parts_with_displacements_where_a_get_fills():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    win.Fence()
    win.Get(data[4:6], 1 - rank)  # 1: Get
    world.Alltoallv([data, [1, 2], [0, 5], MPI.DOUBLE], [np.zeros(4), [1 + rank, 1 + rank]])  # 2: Alltoallv|load
    win.Fence()
    win.Free()


def parts_with_displacements_around_what_a_get_fills():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    win.Fence()
    win.Get(data[4:6], 1 - rank)
    world.Alltoallv([data, [1, 2], [0, 6], MPI.DOUBLE], [np.zeros(4), [1 + rank, 1 + rank]])
    world.Allgatherv(data[:2], [data, [2, 2], [2, 6], MPI.DOUBLE])
    win.Fence()
    win.Free()


def last_part_gathered_where_a_put_reads():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    win.Fence()
    win.Put(data[6:], 1 - rank)  # 1: Put
    world.Allgather(np.ones(4), [data, 4, MPI.DOUBLE])  # 2: Allgather|store
    win.Fence()
    win.Free()


def parts_of_own_types_where_a_get_fills():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    win.Fence()
    win.Get(data[6:], 1 - rank)  # 1: Get
    types = [MPI.DOUBLE] * 2
    world.Alltoallw([data, [1, 1], [0, 48], types], [np.zeros(2), [1, 1], [0, 8], types])  # 2: Alltoallw|load
    win.Fence()
    win.Free()


def matched_message_where_a_put_reads():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    request = world.Isend(np.ones(8), 1 - rank)
    win.Fence()
    win.Put(data, 1 - rank)  # 1: Put
    message = world.Mprobe()
    message.Recv(data)  # 2: Recv|store
    request.Wait()
    win.Fence()
    win.Free()


def matched_message_beside_what_a_put_reads():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    request = world.Isend(np.ones(4), 1 - rank)
    win.Fence()
    win.Put(data[4:], 1 - rank)
    world.Mprobe().Recv(data[:4])
    request.Wait()
    win.Fence()
    win.Free()


def elements_packed_that_a_get_fills():  # check: result-early n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    even = MPI.DOUBLE.Create_vector(4, 1, 2).Create_resized(0, 64).Commit()
    win.Fence()
    win.Get(data[2:3], 1 - rank)  # 1: Get
    even.Pack(data, bytearray(32), 0, world)  # 2: Pack|load
    win.Fence()
    even.Free()
    win.Free()


def elements_packed_beside_what_a_get_fills():  # check: clean n=2
    win = MPI.Win.Allocate(128, 8, comm=world)
    data, packed = np.zeros(8), np.zeros(12)
    even = MPI.DOUBLE.Create_vector(4, 1, 2).Create_resized(0, 64).Commit()
    win.Fence()
    win.Get(data[1:2], 1 - rank)
    win.Put(packed[:4], 1 - rank, 4)
    win.Put(packed[8:], 1 - rank, 8)
    assert even.Pack(data, packed, 32, world) == 64
    win.Fence()
    even.Free()
    win.Free()


def elements_unpacked_where_a_put_reads():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data = np.zeros(8)
    win.Fence()
    win.Put(data, 1 - rank)  # 1: Put
    MPI.DOUBLE.Unpack_external("external32", bytes(16), 8, data)  # 2: Unpack_external|store
    win.Fence()
    win.Free()


def combined_where_a_put_reads():  # check: origin-reuse n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data, more = np.zeros(8), np.ones(8)
    win.Fence()
    win.Put(data, 1 - rank)  # 1: Put
    MPI.SUM.Reduce_local(more, data)  # 2: Reduce_local|store
    win.Fence()
    win.Free()


def combined_from_what_a_put_reads():  # check: clean n=2
    win = MPI.Win.Allocate(64, 8, comm=world)
    data, more = np.zeros(8), np.ones(8)
    win.Fence()
    win.Put(more, 1 - rank)
    MPI.SUM.Reduce_local(more, data)
    win.Fence()
    win.Free()


def received_into_a_bytearray_that_a_put_reads():  # check: origin-reuse n=2 foreign
    win = MPI.Win.Allocate(64, 1, comm=world)
    data = bytearray(8)
    win.Fence()
    win.Put(data, 1 - rank)  # 1: Put
    world.Sendrecv(bytes(4), 1 - rank, recvbuf=memoryview(data)[4:], source=1 - rank)  # 2: Sendrecv|store
    win.Fence()
    win.Free()


def received_into_a_bytearray_beside_what_a_put_reads():  # check: clean n=2 foreign
    win = MPI.Win.Allocate(64, 1, comm=world)
    data = bytearray(8)
    win.Fence()
    win.Put(memoryview(data)[:4], 1 - rank)
    world.Sendrecv(bytes(4), 1 - rank, recvbuf=memoryview(data)[4:], source=1 - rank)
    win.Fence()
    win.Free()


def sent_from_a_bytearray_that_is_a_window():  # check: local-access n=2 foreign
    part = bytearray(64)
    win = MPI.Win.Create(part, 1, comm=world)
    win.Fence()
    if rank == 0:
        win.Put(np.ones(8, "u1"), 1, 8)  # 1: Put
        world.Recv(bytearray(64), 1)
    else:
        world.Send(part, 0)  # 2: Send|load
    win.Fence()
    win.Free()
