"""Ways to learn that something is complete: asking for a status, probing, persistent and partitioned requests, asyncio."""

import asyncio
import threading
import time

import numpy as np

from gormapy import MPI, notify

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank


def _window():
    win = MPI.Win.Allocate(64, 8, comm=world)
    win.Lock_all()
    world.Barrier()
    return win, np.frombuffer(win, "f8")


def _close(win):
    win.Unlock_all()
    win.Free()


def status_asked_and_stored():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(1)
    request = win.Rput(mine, other)
    while not request.Get_status():
        time.sleep(0)
    mine[0] = 5
    request.Wait()
    _close(win)


def status_asked_once_and_stored():  # check: origin-reuse n=2
    win, _ = _window()
    mine = np.ones(1)
    first, second = win.Rput(mine[:0], other), win.Rput(mine, other, 1)  # 1: Rput
    while not first.Get_status():
        time.sleep(0)
    mine[0] = 5  # 2: store
    MPI.Request.Waitall([first, second])
    _close(win)


def status_of_all_asked_and_loaded():  # check: clean n=2
    win, _ = _window()
    got = np.zeros(2)
    requests = [win.Rget(got[:1], other), win.Rget(got[1:], other, 1)]
    while not MPI.Request.Get_status_all(requests):
        time.sleep(0)
    print(got)
    MPI.Request.Waitall(requests=requests)
    _close(win)


def requests_of_a_generator():  # check: clean n=2
    win, _ = _window()
    mine = np.ones(2)
    requests = [win.Rput(mine[:1], other), win.Rput(mine[1:], other, 1)]
    MPI.Request.Waitall(request for request in requests)
    mine[:] = 2
    _close(win)


def status_of_a_receive_asked_and_loaded():  # check: clean n=2
    win, mem = _window()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
        world.send(None, 1)
    else:
        request = world.irecv(source=0)
        while not request.Get_status():
            time.sleep(0)
        print(mem[0])
        request.wait()
    _close(win)


def probed_and_loaded():  # check: clean n=2
    win, mem = _window()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
        world.send(None, 1)
    else:
        world.probe(0)
        print(mem[0])
        world.recv(source=0)
    _close(win)


def matched_by_one_thread_and_received_by_another():  # check: clean n=2
    win, mem = _window()
    if rank == 0:
        win.Put(np.ones(1), 1)
        win.Flush(1)
        world.send(None, 1)
    else:
        message = world.mprobe(0)
        print(mem[0])
        receiver = threading.Thread(target=lambda: (message.recv(), print(mem[0])))
        receiver.start()
        receiver.join()
    _close(win)


def probed_without_a_flush():  # check: flush-missing n=2
    win, mem = _window()
    if rank == 0:
        win.Put(np.ones(1), 1)  # 1: Put
        world.send(None, 1)
        world.recv(source=1)
    else:
        while not world.iprobe(0):
            time.sleep(0)
        print(mem[0])  # 2: load
        world.recv(source=0)
        world.send(None, 0)
    _close(win)


def persistent_calls_started_together():  # check: clean n=2
    win, mem = _window()
    barrier = world.Barrier_init()
    for _ in range(3):
        if rank == 0:
            win.Put(np.ones(1), 1)
            win.Flush(1)
            MPI.Prequest.Startall([barrier])
        else:
            barrier.Start()
        barrier.Wait()
        if rank == 1:
            print(mem[0])
        world.Barrier()
    barrier.Free()
    _close(win)


def persistent_synchronous_send():  # check: clean n=2
    win, mem = _window()
    token = np.zeros(1)
    if rank == 0:
        send = world.Ssend_init(token, 1)
        for _ in range(2):
            send.Start()
            send.Wait()
            win.Put(token, 1)
            win.Flush(1)
            world.send(None, 1)
        send.Free()
    else:
        for _ in range(2):
            print(mem[0])
            world.Recv(token, 0)
            world.recv(source=0)
    _close(win)


def persistent_standard_send():  # check: local-access n=2
    win, mem = _window()
    token = np.zeros(1)
    if rank == 0:
        send = world.Send_init(token, 1)
        send.Start()
        send.Wait()
        time.sleep(0.1)
        win.Put(token, 1)  # 1: Put
        win.Flush(1)
        send.Free()
    else:
        print(mem[0])  # 2: load
        world.Recv(token, 0)
    world.Barrier()
    _close(win)


def partitions_waited_for():  # check: clean n=2
    win, mem = _window()
    data = np.ones(2)
    if rank == 0:
        send = world.Psend_init(data, 2, 1)
        win.Put(data, 1)
        win.Flush(1)
        send.Start()
        send.Pready(1)
        send.Pready(0)
        send.Wait()
        send.Free()
    else:
        receive = world.Precv_init(data, 2, 0, 0)
        receive.Start()
        while not receive.Parrived(1):
            time.sleep(0)
        print(mem[0])
        receive.Wait()
        print(mem[1])
        receive.Free()
    _close(win)


def notification_awaited():  # check: clean n=2
    win, mem = _window()

    async def main():
        if rank == 0:
            notify.put_notify(win, np.ones(1), 1, slot=3)
        else:
            await notify.notified(win, 3)
            print(mem[0])

    asyncio.run(main())
    _close(win)


def other_notification_awaited():  # check: local-access n=2
    win, mem = _window()

    async def main():
        if rank == 0:
            notify.put_notify(win, np.ones(1), 1, 1, slot=3)
            notify.put_notify(win, np.ones(1), 1, 0, slot=4)  # 1: put_notify
        else:
            await notify.notified(win, 3)
            print(mem[0])  # 2: load

    asyncio.run(main())
    world.Barrier()
    _close(win)


def event_of_a_thread_asked():  # check: clean n=2
    win, _ = _window()
    got, done = np.zeros(1), threading.Event()

    def get():
        win.Get(got, other)
        win.Flush(other)
        done.set()

    thread = threading.Thread(target=get)
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
    print(got[0])
    thread.join()
    _close(win)


def bytes_at_one_address_of_several_threads():  # check: clean n=2
    win = MPI.Win.Allocate(400, 1, comm=world)
    win.Lock_all()

    def work(place):
        for _ in range(50):
            got = bytearray(40)
            win.Get(got, other, (place, 40))
            win.Flush(other)
            win.Put(bytes(got) + b".", other, (place + 40, 41))
            win.Flush(other)

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _close(win)
