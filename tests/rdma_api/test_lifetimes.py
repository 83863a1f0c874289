"""Objects go in any order, with work under way or not; interrupts, forks, threads."""

import gc
import itertools
import os
import random
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from support.rxe import SLOW

from gormapy import rdma

TIMEOUT = 20 * SLOW
NAMES = ("context", "pd", "mr", "cq", "qp")


def things(device, backend):
    context = rdma.Context(device, backend)
    pd = context.alloc_pd()
    cq = context.create_cq()
    qp, peer = pd.create_qp(cq), pd.create_qp(cq)
    qp.connect(peer.info())
    peer.connect(qp.info())
    mr = pd.register(bytearray(1 << 20))
    return SimpleNamespace(context=context, pd=pd, mr=mr, cq=cq, qp=qp, peer=peer)


ORDERS = list(itertools.permutations(NAMES))


def test_closing_and_deleting_in_all_orders():
    for order in ORDERS:
        close_and_delete("shm0", "shm", order)


@pytest.mark.parametrize("order", ORDERS[::12], ids="-".join)
def test_closing_and_deleting_in_any_order(device, backend, order):
    close_and_delete(device, backend, order)


def close_and_delete(device, backend, order):
    for busy in (False, True):
        have = things(device, backend)
        if busy:
            have.qp.post_recv(have.mr)
            have.qp.post_write(have.mr, have.mr.remote)
            have.peer.post_read(have.mr, have.mr.remote)
        for name in order:
            getattr(have, name).close()
        have = things(device, backend)
        if busy:
            have.qp.post_recv(have.mr)
            have.qp.post_write(have.mr, have.mr.remote)
        for name in order:
            delattr(have, name)
        del have
    gc.collect()


def test_nothing_is_left_of_what_was_closed(end):
    def count():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    def round_trip():
        a, b = end(), end()
        a.qp.connect(b.qp.info())
        b.qp.connect(a.qp.info())
        a.qp.post_write(a.mr, b.mr.remote)
        a.cq.wait(TIMEOUT)
        a.context.close()
        b.context.close()

    round_trip()
    time.sleep(0.2)
    before = count()
    for _ in range(20):
        round_trip()
    deadline = time.monotonic() + TIMEOUT
    while count()[0] > before[0] + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert count()[0] <= before[0] + 2


def test_a_region_holds_the_object(end, limits):
    a = end()
    memory = bytearray(64)
    region = a.pd.register(memory)
    with pytest.raises(BufferError):
        memory.append(1)
    region.close()
    assert region.buffer is None
    if limits["lingers"]:
        with pytest.raises(BufferError):
            memory.append(1)
        a.pd.close()
    memory.append(1)


def test_regions_of_outstanding_requests_are_not_collected(linked):
    a, b = linked(1 << 20)
    a.qp.post_write(a.pd.register(b"x" * (1 << 20), rdma.Access.REMOTE_READ), b.mr.remote)
    b.qp.post_recv(b.pd.register(bytearray(8)))
    gc.collect()
    a.cq.wait(TIMEOUT)
    assert (b.array == ord("x")).all()
    a.qp.post_send(a.mr, length=8)
    assert b.recv_cq.wait(TIMEOUT)[0].byte_len == 8


def test_a_refused_request_does_not_push_out_one_that_is_outstanding(end):
    a, b = end(max_send_wr=2, max_recv_wr=2), end()
    a.qp.connect(b.qp.info())  # the peer comes later: requests wait for it

    def read_only(data):
        return a.pd.register(data, rdma.Access.REMOTE_READ)

    for i in range(2):
        a.qp.post_recv(a.pd.register(bytearray(8)))
        if not i:
            a.qp.post_write(read_only(b"first..."), b.mr.remote, wr_id=1)
    for _ in range(3):
        with pytest.raises(rdma.Error, match="room"), a.qp.batch() as batch:
            batch.post_write(read_only(b"refused."), b.mr.remote)
            batch.post_write(read_only(b"refused."), b.mr.remote)
        with pytest.raises(rdma.Error, match="room"):
            a.qp.post_recv(a.pd.register(bytearray(8)))
    a.qp.post_write(read_only(b"second.."), b.mr.remote, remote_offset=8, wr_id=2)
    for _ in range(3):
        with pytest.raises(rdma.Error, match="room"):
            a.qp.post_write(read_only(b"refused."), b.mr.remote)
    gc.collect()
    b.qp.connect(a.qp.info())
    assert [w.wr_id for w in a.cq.wait(TIMEOUT, 2)] == [1, 2]
    assert b.array[:16].tobytes() == b"first...second.."
    b.qp.post_send(b.mr, length=8)
    assert a.recv_cq.wait(TIMEOUT)[0].byte_len == 8


def test_closing_a_region_while_it_is_written(linked, limits):
    a, b = linked((8 << 20) // SLOW**2)
    a.array[:] = 1
    for _ in range(20):
        a.qp.post_write(a.mr, b.mr.remote)
    b.mr.close()
    b.array[:] = 7  # nothing touches it from here on
    done = a.cq.wait(TIMEOUT, 20, check=False)
    time.sleep(0.1)
    assert limits["lingers"] or (b.array == 7).all()
    # libfabric tells of a broken connection only.
    statuses = [w.status_name.replace("RETRY_EXC", "REM_ACCESS") for w in done]
    assert statuses[-1] in ("IBV_WC_SUCCESS", "IBV_WC_REM_ACCESS_ERR", "IBV_WC_WR_FLUSH_ERR")
    assert statuses == sorted(statuses, key=("IBV_WC_SUCCESS", "IBV_WC_REM_ACCESS_ERR", "IBV_WC_WR_FLUSH_ERR").index)


def test_closing_a_region_while_it_is_read_into(linked):
    a, b = linked((8 << 20) // SLOW**2)
    b.array[:] = 1
    for _ in range(20):
        a.qp.post_read(a.mr, b.mr.remote)
    a.mr.close()
    a.array[:] = 7
    done = a.cq.wait(TIMEOUT, 20, check=False)
    time.sleep(0.1)
    assert (a.array == 7).all()
    assert {w.status_name for w in done} <= {"IBV_WC_SUCCESS", "IBV_WC_LOC_PROT_ERR", "IBV_WC_WR_FLUSH_ERR"}


def test_closing_a_queue_pair_while_it_is_written_to(linked):
    a, b = linked((8 << 20) // SLOW**2)
    a.array[:] = 1
    for _ in range(20):
        a.qp.post_write(a.mr, b.mr.remote)
    b.qp.close()
    b.array[:] = 7  # nothing touches it from here on
    a.cq.wait(TIMEOUT, 20, check=False)
    time.sleep(0.1)
    assert (b.array == 7).all()


def test_a_wait_ends_when_its_queue_is_closed(end):
    a = end()
    threading.Timer(0.2, a.cq.close).start()
    with pytest.raises(rdma.Error) as caught:
        a.cq.wait(TIMEOUT)
    assert caught.value.status == "EBADF"


def test_other_threads_run_during_a_wait(end):
    a = end()
    ticks = []

    def tick():
        for _ in range(10):
            ticks.append(time.monotonic())
            time.sleep(0.02)

    ticker = threading.Thread(target=tick)
    ticker.start()
    with pytest.raises(TimeoutError):
        a.cq.wait(0.5)
    ticker.join()
    assert len(ticks) == 10


def test_ctrl_c_ends_a_wait(end):
    a = end()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        a.cq.wait()
    assert time.monotonic() - begun < 25
    assert a.cq.poll() == []


def test_eight_threads_with_a_queue_pair_each(linked, limits):
    ends = [linked(8192) for _ in range(8)]
    counter = ends[0][1].mr  # of one context, to which all of one's own add
    failures = []

    def work(a, b, seed):
        try:
            rng = random.Random(seed)
            for i in range(100):
                value = rng.randrange(1, 256)
                n = rng.choice((1, 100, 4096))
                a.array[:n] = value
                a.qp.post_write(a.mr, b.mr.remote, length=n, wr_id=i)
                assert a.cq.wait(TIMEOUT)[0].wr_id == i
                assert (b.array[:n] == value).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(a, b, i)) for i, (a, b) in enumerate(ends)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert counter.length == 8192


def test_eight_threads_share_a_queue_pair(linked):
    a, b = linked(4096, max_send_wr=64)
    seen, failures = [], []
    lock = threading.Lock()

    def work(me):
        try:
            for i in range(100):
                a.qp.post_write(a.mr, b.mr.remote, length=8, wr_id=1000 * me + i)
                done = a.cq.wait(TIMEOUT)
                with lock:
                    seen.extend(w.wr_id for w in done)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(seen) == sorted(1000 * me + i for me in range(8) for i in range(100))


def test_atomics_from_all_sides(end, limits):
    if not limits["atomics"]:
        pytest.skip("the device has no atomics")
    target = end(64)
    sources = []
    for _ in range(4):
        a = end(64)
        peer = target.pd.create_qp(target.cq)
        a.qp.connect(peer.info())
        peer.connect(a.qp.info())
        sources.append((a, peer))
    for a, _ in sources:
        for _ in range(100):
            a.qp.post_fetch_add(a.mr, target.mr.remote, 1)
    for a, _ in sources:
        a.cq.wait(TIMEOUT, 100)
    assert target.array.view(np.uint64)[0] == 400


class ByDLPack:
    """An object that has DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnDevice(ByDLPack):
    def __dlpack_device__(self):
        return (2, 0)


def test_objects_with_dlpack(linked):
    a, b = linked()
    array = np.arange(8.0)
    region = a.pd.register(ByDLPack(array))
    assert region.length == 64
    a.qp.post_write(region, b.mr.remote)
    a.cq.wait(TIMEOUT)
    assert b.array[:64].tobytes() == array.tobytes()
    b.array[:64] = 0
    a.qp.post_read(region, b.mr.remote)
    a.cq.wait(TIMEOUT)
    assert not array.any()
    with pytest.raises(rdma.Error, match="device type 2"):
        a.pd.register(OnDevice(array))


def test_kinds_of_buffers(linked):
    import array as arrays
    import ctypes
    import mmap

    a, b = linked()
    for memory in (bytearray(64), memoryview(bytearray(64)), arrays.array("d", [0] * 8), (ctypes.c_double * 8)(), mmap.mmap(-1, 64), np.zeros((4, 2), order="F")):  # fmt: skip
        b.array[:64] = 9
        with a.pd.register(memory) as region:
            a.qp.post_read(region, b.mr.remote)
            a.cq.wait(TIMEOUT)
            assert region.read() == b"\x09" * 64
            region.write(b"abc", offset=61)
            assert region.read(3, 61) == b"abc"
            with pytest.raises(rdma.Error):
                region.write(b"abc", offset=62)
    with a.pd.register(100) as region:
        assert len(region) == 100
