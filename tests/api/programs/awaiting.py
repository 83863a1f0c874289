"""The programs of test_awaiting.py: tasks of asyncio that await requests."""

import asyncio
import contextlib
import os
import signal
import threading
import time

import numpy as np
from rankside import MPI, await_watchers, rank, size, world

from gormapy import aio

right, left = (rank + 1) % size, (rank - 1) % size


async def _messages_and_collectives():
    received = world.irecv(source=left, tag=1)
    sent = world.isend({"from": rank}, right, 1)
    assert await received == {"from": left}
    assert await sent is None
    got = np.zeros(200_000)
    request = world.Irecv(got, left, 2)
    await world.Isend(np.full(200_000, rank, float), right, 2)
    await request
    assert (got == left).all() and request == MPI.REQUEST_NULL
    await world.Ibarrier()
    total = np.zeros(1)
    await world.Iallreduce(np.ones(1), total)
    assert total[0] == size
    made, request = world.Idup()
    await request
    assert made.allreduce(1) == size
    made.Free()
    assert await MPI.REQUEST_NULL is None
    win = MPI.Win.Allocate(8, comm=world)
    win.Lock_all()
    await win.Rput(np.array([rank], "q"), right)
    win.Unlock_all()
    await world.Ibarrier()
    assert np.frombuffer(win, "q")[0] == left
    win.Free()


async def _persistent_and_partitioned():
    got = np.zeros(1)
    receive, send = world.Recv_init(got, left, 3), world.Send_init(np.full(1, float(rank)), right, 3)
    for _ in range(3):
        got[0] = -1
        MPI.Prequest.Startall([receive, send])
        await receive
        await send
        assert got[0] == left
    receive.Free()
    send.Free()
    parts = np.zeros(4)
    receive, send = world.Precv_init(parts, 2, left, 4), world.Psend_init(np.arange(4.0), 2, right, 4)
    MPI.Prequest.Startall([receive, send])
    send.Pready_range(0, 1)
    await receive
    await send
    assert parts.tolist() == [0, 1, 2, 3]
    receive.Free()
    send.Free()


async def _generalized():
    request = MPI.Grequest.Start(lambda status: status.Set_source(5), lambda: None, lambda done: None)
    threading.Timer(0.05, request.Complete).start()
    await request


async def _in_the_order_of_completion():
    n = 5
    requests = [world.irecv(source=rank, tag=k) for k in range(n)]
    await world.isend((n - 1) ** 2, rank, n - 1)
    got = []
    async for index, square in aio.completed(requests):
        got.append((index, square))
        if index > 0:  # the next one is sent when this one has come
            await world.isend((index - 1) ** 2, rank, index - 1)
    assert got == [(k, k * k) for k in reversed(range(n))], got


async def _thousands():
    n = 3000
    requests = [world.irecv(bytearray(64), left, k) for k in range(n)]
    tasks = [asyncio.ensure_future(asyncio.wait_for(request, 30)) for request in requests]
    await asyncio.sleep(0)
    for k in range(n):
        await world.isend(k, right, k)
    assert await asyncio.gather(*tasks) == list(range(n))


async def _cancelled():
    """A task that is cancelled leaves its request as it is."""
    request = world.irecv(source=left, tag=5)
    try:
        await asyncio.wait_for(request, 0.05)
    except asyncio.TimeoutError:
        pass
    else:
        raise AssertionError("there was no message")
    await world.Ibarrier()
    await world.isend("late", right, 5)
    assert await request == "late"
    request = world.irecv(source=left, tag=6)
    task = asyncio.ensure_future(asyncio.wait_for(request, 30))
    await asyncio.sleep(0.02)
    request.Cancel()
    assert await task is None


async def _two_tasks():
    """Several tasks await the same requests, and one at least gets the object."""
    requests = [world.irecv(source=left, tag=k) for k in range(3)]

    async def wait(request):
        return await request

    tasks = [asyncio.create_task(wait(request)) for request in requests * 2]
    await asyncio.sleep(0.02)
    for k in range(3):
        await world.isend(k, right, k)
    got = await asyncio.gather(*tasks)
    assert [got[k] if got[k + 3] is None else got[k + 3] for k in range(3)] == [0, 1, 2], got


def several_loops():
    def work(number):
        async def talk():
            for k in range(50):
                request = world.irecv(source=left, tag=number)
                await world.isend((number, k), right, number)
                assert await request == (number, k)

        asyncio.run(talk())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def many_loops():
    """Event loops give their descriptors back."""
    await_watchers()
    before = len(os.listdir("/proc/self/fd"))
    for k in range(100):
        asyncio.run(_one(k))
    import gc

    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 4, os.listdir("/proc/self/fd")


def loops_that_end_before_their_requests():
    """Event loops give their descriptors back, also those whose tasks have waited in vain."""
    await_watchers()
    request = world.Irecv(bytearray(1), left, 999)
    for k in range(10):
        asyncio.run(_in_vain(request))
        if k == 0:
            before = len(os.listdir("/proc/self/fd"))
        loop = asyncio.new_event_loop()
        task = loop.create_task(_of(request))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        task._log_destroy_pending = False
        del loop, task
        import gc

        gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before, os.listdir("/proc/self/fd")
    request.Cancel()
    request.Wait()


async def _fork_while_a_request_is_awaited():
    """A task is cancelled in the child, whose loop sleeps in the same object of the system; the parent goes on."""
    task = asyncio.ensure_future(_of(world.irecv(source=left, tag=998)))
    await asyncio.sleep(0.05)
    child = os.fork()
    if child == 0:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        os._exit(0)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert status == 0, status
    await world.isend(rank, right, 998)
    assert await task == left


async def _of(request):
    return await request


async def _in_vain(request):
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_of(request), 0.01)


async def _finalize_ends_what_is_awaited():
    task = asyncio.ensure_future(_of(world.Irecv(bytearray(1), rank, 999)))
    await asyncio.sleep(0.1)
    MPI.Finalize()
    try:
        await asyncio.wait_for(task, 10)
    except MPI.Exception as e:
        assert "finalized" in str(e), e
    else:
        raise AssertionError("the request has completed")


async def _one(k):
    request = world.irecv(source=left, tag=k)
    await asyncio.sleep(0)
    sent = world.isend(k, right, k)
    assert await request == k
    await sent


async def _nothing_is_used_while_waiting():
    requests = [world.irecv(source=left, tag=k) for k in range(100)]
    tasks = [asyncio.ensure_future(asyncio.wait_for(request, 30)) for request in requests]
    await asyncio.sleep(0.1)
    begun = time.process_time()
    await asyncio.sleep(1)
    used = time.process_time() - begun
    await world.Ibarrier()
    for k in range(100):
        await world.isend(k, right, k)
    assert await asyncio.gather(*tasks) == list(range(100))
    assert used < 0.15, used


async def _peer_that_is_killed():
    if rank == 1:
        await asyncio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    collective = world
    for request in (
        world.irecv(source=1),
        world.Irecv(np.zeros(1), 1),
        world.Ssend_init(np.zeros(1), 1),
        collective.Ibarrier(),
    ):
        if isinstance(request, MPI.Prequest):
            request.Start()
        try:
            await asyncio.wait_for(request, 10)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
        else:
            raise AssertionError("no error")
    print("told")


async def _end_with_awaited_requests():
    request = world.irecv(source=rank, tag=99)
    task = asyncio.ensure_future(asyncio.wait_for(request, 30))
    await asyncio.sleep(0.05)
    task.cancel()


async def _interrupted():
    request = world.irecv(source=rank, tag=99)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    await request


# On any number of ranks
TASKS = {
    "messages and collectives": _messages_and_collectives,
    "persistent and partitioned": _persistent_and_partitioned,
    "generalized": _generalized,
    "in the order of completion": _in_the_order_of_completion,
    "cancelled": _cancelled,
    "two tasks": _two_tasks,
}
# On the number that the test says, or without a launcher
OTHER_TASKS = {
    "thousands": _thousands,
    "fork while a request is awaited": _fork_while_a_request_is_awaited,
    "finalize ends what is awaited": _finalize_ends_what_is_awaited,
    "nothing is used while waiting": _nothing_is_used_while_waiting,
    "peer that is killed": _peer_that_is_killed,
    "end with awaited requests": _end_with_awaited_requests,
    "interrupted": _interrupted,
}


def in_asyncio(task):
    asyncio.run({**TASKS, **OTHER_TASKS}[task]())
