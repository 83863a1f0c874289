"""The programs of test_partitioned.py."""

import gc
import itertools
import mmap
import threading
import time

import numpy as np
from badmemory import PAGE, protect
from rankside import MPI, fails, rank, refused, reset, size, world

right, left = (rank + 1) % size, (rank - 1) % size


def rounds(send, receive, partitions, into, out, turns=3):
    """Send and receive several times, and check what has come."""
    for turn in range(turns):
        out[:] = np.arange(len(out)) % 50 + rank + turn
        into[:] = -1
        for request in (receive, send) if turn % 2 else (send, receive):
            request.Start()
        order = np.random.default_rng(turn).permutation(partitions).tolist()
        if turn == 1:
            send.Pready_list(order)
        elif turn == 2 and partitions:
            send.Pready_range(0, partitions - 1)
        else:
            for i in order:
                send.Pready(i)
        status = MPI.Status()
        receive.Wait(status)
        send.Wait()
        assert send != MPI.REQUEST_NULL and receive != MPI.REQUEST_NULL
        assert (into == np.arange(len(into)) % 50 + left + turn).all(), (into, turn)
        assert status.Get_source() == left and status.Get_tag() == 5
        assert status.Get_count(MPI.BYTE) == into.nbytes


def partitions_of_either_side():
    for count in (12, 12_000, 600_000):
        for p, q in itertools.product((1, 3, 4, 12), repeat=2):
            out, into = np.zeros(count), np.zeros(count)
            send, receive = world.Psend_init(out, p, right, 5), world.Precv_init(into, q, left, 5)
            rounds(send, receive, p, into, out)
            send.Free()
            receive.Free()
            assert send == MPI.REQUEST_NULL == receive
    # the sender's parts end within items of the receiver
    triple = MPI.DOUBLE.Create_contiguous(3).Commit()
    spread = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
    for p, kind in itertools.product((4, 6), (triple, spread)):
        step = kind.extent // 8
        out, memory = np.zeros(12), np.full(4 * step, -1.0)
        send, receive = world.Psend_init(out, p, right, 5), world.Precv_init([memory, 4, kind], 2, left, 5)
        for turn in range(3):
            out[:] = np.arange(12) + 100 * rank + turn
            receive.Start()
            send.Start()
            for i in reversed(range(p)):
                send.Pready(i)
            MPI.Request.Waitall([send, receive])
            into = memory.reshape(4, step)[:, [0, 2, 4] if kind is spread else slice(None)]
            assert (into.ravel() == np.arange(12) + 100 * left + turn).all(), memory
            if kind is spread:
                assert (memory.reshape(4, step)[:, [1, 3]] == -1).all()
        send.Free()
        receive.Free()


def matched_in_the_order_in_which_they_are_made():
    outs = [np.full(4, 10 * rank + i, "i4") for i in range(6)]
    intos = [np.zeros(4, "i4") for _ in outs]
    tags = [3, 8, 3, 8, 3, 3]
    # An ordinary message with the tag is another one.
    ordinary = world.Isend(np.full(4, -7, "i4"), right, 3)
    sends = [world.Psend_init(out, 2, right, tag) for out, tag in zip(outs, tags)]
    MPI.Prequest.Startall(sends)
    for send in reversed(sends):
        send.Pready_range(0, 1)
    receives = [world.Precv_init(into, 4, left, tag) for into, tag in zip(intos, tags)]
    MPI.Prequest.Startall(receives)
    MPI.Request.Waitall(receives + sends)
    for i, into in enumerate(intos):
        assert (into == 10 * left + i).all(), (i, into)
    assert not any(world.Iprobe(left, tag) for tag in (8, 9))
    last = np.zeros(4, "i4")
    world.Recv(last, left, MPI.ANY_TAG)
    assert (last == -7).all()
    ordinary.Wait()
    assert not world.Iprobe()
    world.Barrier()


def a_sender_is_ahead():
    """What is sent for a later start is not taken for an earlier one."""
    data = np.zeros(3, "i8")
    if rank == 0:
        send = world.Psend_init(data, 3, 1, 2)
        for turn in range(50):
            data[:] = turn
            send.Start()
            send.Pready_list([2, 0, 1] if turn % 2 else [0, 1, 2])
            send.Wait()
        world.Barrier()
    else:
        world.Barrier()  # all have been sent
        receive = world.Precv_init(data, 3, 0, 2)
        for turn in range(50):
            receive.Start()
            receive.Wait()
            assert (data == turn).all(), (data, turn)


def threads_make_partitions_ready():
    threads, each, count = 4, 16, 5000
    partitions = threads * each
    memory = np.zeros(partitions * count)
    if rank == 0:
        send = world.Psend_init(memory, partitions, 1, 2)

        def work(me, turn):
            for i in range(me * each, (me + 1) * each):
                memory[i * count : (i + 1) * count] = 1000 * turn + i
                send.Pready(i)

        for turn in range(20):
            send.Start()
            workers = [threading.Thread(target=work, args=(me, turn)) for me in range(threads)]
            for worker in workers:
                worker.start()
            send.Wait()  # while they work
            for worker in workers:
                worker.join()
    else:
        receive = world.Precv_init(memory, threads, 0, 2)
        for turn in range(20):
            receive.Start()
            receive.Wait()
            expected = 1000 * turn + np.repeat(np.arange(partitions), count)
            assert (memory == expected).all(), turn


def parrived_tells_of_each():
    data = np.zeros(12)
    if rank == 0:
        data[:] = range(12)
        send = world.Psend_init(data, 4, 1)
        for _ in range(3):
            send.Start()
            for i in (3, 0, 1, 2):
                world.Barrier()
                send.Pready(i)
                world.Barrier()
            send.Wait()
    else:
        receive = world.Precv_init(data, 6, 0, 0)  # a part of the sender has three, one of this has two
        assert all(receive.Parrived(i) for i in range(6)), "not started"
        for _ in range(3):
            data[:] = -1
            receive.Start()
            there = set()
            for new in ([5], [0], [1, 2], [3, 4]):
                assert {i for i in range(6) if receive.Parrived(i)} == there
                world.Barrier()
                world.Barrier()
                there |= set(new)
                end = time.monotonic() + 25
                while not all(receive.Parrived(i) for i in there) and time.monotonic() < end:
                    pass
                for i in there:
                    assert data[2 * i : 2 * i + 2].tolist() == [2 * i, 2 * i + 1], (i, data)
            receive.Wait()
            assert all(receive.Parrived(i) for i in range(6))


def a_receiver_in_another_call_lets_the_sender_go_on():
    """A receive that was started is posted as soon as the sender is there, in whatever call the receiver waits."""
    data = np.full(1_000_000, float(rank))
    if rank == 0:
        time.sleep(0.2)
        send = world.Psend_init(data, 2, 1)
        send.Start()
        send.Pready_range(0, 1)
        send.Wait()
        world.Barrier()
    else:
        receive = world.Precv_init(data, 4, 0, 0)
        receive.Start()
        world.Barrier()
        receive.Wait()
        assert not data.any()


def nothing_to_send():
    for partitions in (0, 1, 3):
        empty = np.zeros(0)
        send, receive = world.Psend_init(empty, partitions, right), world.Precv_init(empty, partitions, left, 0)
        for _ in range(2):
            receive.Start()
            send.Start()
            send.Pready_list(range(partitions))
            MPI.Request.Waitall([receive, send])
            assert all(receive.Parrived(i) for i in range(partitions))
        send.Free()
        receive.Free()
    data = np.zeros(6)
    null = [world.Psend_init(data, 3, MPI.PROC_NULL), world.Precv_init(data, 3, MPI.PROC_NULL)]
    MPI.Prequest.Startall(null)
    null[0].Pready(1)
    assert null[1].Parrived(2)
    status = MPI.Status()
    null[1].Wait(status)
    assert status.Get_source() == MPI.PROC_NULL
    null[0].Wait()


def different_lengths_are_told():
    for sent, received, kind in ((8, 4, MPI.ERR_TRUNCATE), (4, 8, MPI.ERR_COUNT), (800_000, 4, MPI.ERR_TRUNCATE)):
        if rank == 0:
            send = world.Psend_init(np.arange(float(sent)), 4, 1)
            for _ in range(2):
                send.Start()
                send.Pready_range(0, 3)
                send.Wait()
            send.Free()
        else:
            into = np.full(received, -1.0)
            receive = world.Precv_init(into, 2, 0, 0)
            for _ in range(2):
                receive.Start()
                with fails(kind, "send 4 of"):
                    receive.Wait()
                fits = min(sent, received)
                assert (into[:fits] == np.arange(fits)).all()
            receive.Free()
    world.Barrier()


def wrong_calls_are_said():
    data = np.zeros(12)
    refused(ValueError, lambda: world.Psend_init(data, 5, 0), "12 items", "5 partitions")
    refused(ValueError, lambda: world.Psend_init(data, 0, 0), "0 partitions")
    refused(TypeError, lambda: world.Psend_init(data, 1.5, 0), "partitions")
    for wrong in (
        lambda: world.Psend_init(data, -1, 0),
        lambda: world.Precv_init(data, 4),
        lambda: world.Precv_init(data, 4, 0),
        lambda: world.Precv_init(data, 4, tag=0),
    ):
        with fails(MPI.ERR_ARG):
            wrong()
    most = 2**20
    for init in (world.Psend_init, world.Precv_init):
        for partitions in (most + 1, 2**31 - 8, 2**40):
            with fails(MPI.ERR_ARG, f"0 to {most}"):
                init([data, 0], partitions, 0, 11)
    with fails(MPI.ERR_RANK):
        world.Psend_init(data, 4, 9)
    with fails(MPI.ERR_TAG):
        world.Psend_init(data, 4, 0, -5)
    send, receive = world.Psend_init(data, 4, 0), world.Precv_init(data, 4, 0, 0)
    with fails(MPI.ERR_REQUEST, "Start"):
        send.Pready(0)
    with fails(MPI.ERR_REQUEST, "Psend_init"):
        receive.Pready(0)
    with fails(MPI.ERR_REQUEST, "Precv_init"):
        send.Parrived(0)
    send.Start()
    receive.Start()
    for wrong in (
        lambda: send.Pready(4),
        lambda: send.Pready(-1),
        lambda: send.Pready(2**40),
        lambda: send.Pready_range(2, 4),
        lambda: send.Pready_range(2, 1),
        lambda: send.Pready_range(-1, 2**60),
        lambda: send.Pready_list([0, 1, 4]),
        lambda: send.Pready_list([0, 2**60]),
        lambda: send.Pready_list([1, 1]),
        lambda: receive.Parrived(4),
        lambda: receive.Parrived(-1),
    ):
        with fails(MPI.ERR_ARG, "partition"):
            wrong()
    refused(TypeError, lambda: send.Pready("a"), "partition")
    assert not any(receive.Parrived(i) for i in range(4)), "nothing was sent by the calls that failed"
    send.Pready(1)
    with fails(MPI.ERR_ARG, "ready already"):
        send.Pready(1)
    with fails(MPI.ERR_ARG, "ready already"):
        send.Pready_list([0, 1])
    send.Pready_list((0, 2, 3))
    MPI.Request.Waitall([send, receive])
    with fails(MPI.ERR_REQUEST, "not started"):
        send.Pready(1)
    null = MPI.Prequest(send)
    send.Free()
    with fails(MPI.ERR_REQUEST):
        null.Pready(0)
    with fails(MPI.ERR_REQUEST, "REQUEST_NULL"):
        send.Pready(0)
    assert send == MPI.REQUEST_NULL
    with fails(MPI.ERR_REQUEST, "Psend_init"):
        world.Send_init(data, 0).Pready(0)


def between_groups():
    half = world.Split(rank % 2)
    across = half.Create_intercomm(0, world, 1 - rank % 2)
    peer = across.rank
    out, into = np.arange(6.0) + 10 * rank, np.zeros(6)
    send, receive = across.Psend_init(out, 2, peer, 1), across.Precv_init(into, 3, peer, 1)
    for _ in range(3):
        MPI.Prequest.Startall([receive, send])
        send.Pready_list([1, 0])
        MPI.Request.Waitall([receive, send])
        assert (into == np.arange(6) + 10 * (rank ^ 1)).all(), into
    send.Free()
    receive.Free()
    across.Free()
    half.Free()


def memory_that_faults():
    for pages in (2, 64):
        n = pages * PAGE
        if rank == 0:
            memory = np.frombuffer(mmap.mmap(-1, n), "u1")
            send = world.Psend_init(memory, 2, 1)
            send.Start()
            send.Pready(0)
            protect(memory)
            with fails(MPI.ERR_BUFFER):
                send.Pready(1)
                send.Wait()
            protect(memory, False)
            world.Barrier()
            send.Free()
            memory[:] = 7
            send = world.Psend_init(memory, 2, 1, 1)
            send.Start()
            send.Pready_range(0, 1)
            send.Wait()
        else:
            into = np.zeros(n, "u1")
            receive = world.Precv_init(into, 2, 0, 0)
            receive.Start()
            world.Barrier()  # the first send has failed
            second = world.Precv_init(into, 2, 0, 1)
            second.Start()
            second.Wait()
            assert (into == 7).all()
        world.Barrier()


def requests_that_are_freed_leave_nothing():
    data = np.zeros(1000)
    if rank == 0:
        active = world.Psend_init(data, 4, 1, 77)
        active.Start()
        active.Pready(0)
        active.Free()  # the other partitions are never sent
        del active
    for _ in range(3):
        for _ in range(300):
            if rank == 0:
                request = world.Psend_init(data, 4, 1)
                request.Start()
                request.Pready_range(0, 3)
            else:
                request = world.Precv_init(data, 4, 0, 0)
                request.Start()
            request.Wait()
            request.Free()
        gc.collect()
    world.Barrier()


def a_reset_between_starts():
    data = np.zeros(4)
    send, receive = world.Psend_init(data, 2, right), world.Precv_init(np.zeros(4), 2, left, 0)

    def turn():
        MPI.Prequest.Startall([receive, send])
        send.Pready_range(0, 1)
        MPI.Request.Waitall([receive, send])

    turn()
    receive.Start()
    send.Start()
    send.Pready(rank)
    reset()
    with fails(MPI.ERR_PENDING):
        send.Pready(1 - rank)
    for request in (send, receive):
        with fails(MPI.ERR_PENDING):
            request.Wait()
    turn()
    world.Barrier()
    send.Free()
    receive.Free()
    send, receive = world.Psend_init(data, 2, right), world.Precv_init(np.zeros(4), 2, left, 0)
    turn()
