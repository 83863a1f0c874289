"""Every operation, with the data that it moves."""

import pickle

import numpy as np
import pytest
from support.rxe import SLOW

from gormapy import rdma

TIMEOUT = 20 * SLOW
SIZES = (1, 8, 4096, 8193, 300_000, 3_000_001)


def pattern(n, seed=0):
    return (np.arange(n) * 7 + np.arange(n) // 251 + seed).astype(np.uint8)


@pytest.mark.parametrize("n", SIZES)
def test_write_and_read(linked, n):
    a, b = linked(n + 16)
    a.array[:n] = pattern(n)
    a.qp.post_write(a.mr, b.mr.remote, remote_offset=9, length=n, wr_id=2**64 - 1)
    (done,) = a.cq.wait(TIMEOUT)
    assert (done.wr_id, done.ok, done.opcode, done.qp_num) == (
        2**64 - 1,
        True,
        rdma.WCOpcode.IBV_WC_RDMA_WRITE,
        a.qp.qp_num,
    )
    assert np.array_equal(b.array[9 : 9 + n], pattern(n))
    assert not b.array[:9].any() and not b.array[9 + n :].any()

    b.array[:n] = pattern(n, 5)
    a.qp.post_read(a.mr, b.mr.remote, local_offset=3, length=n)
    (done,) = a.cq.wait(TIMEOUT)
    assert (done.opcode, done.byte_len, done.operation) == (rdma.WCOpcode.IBV_WC_RDMA_READ, n, "read")
    assert np.array_equal(a.array[3 : 3 + n], pattern(n, 5))
    assert b.cq.poll() == b.recv_cq.poll() == []  # the passive side has nothing of it


@pytest.mark.parametrize("n", (0, *SIZES))
def test_send_and_recv(linked, n):
    a, b = linked(max(n, 8))
    a.array[:] = pattern(max(n, 8))
    b.qp.post_recv(b.mr, wr_id=7)
    b.qp.post_recv(b.mr, wr_id=8)
    a.qp.post_send(a.mr, length=n, wr_id=1)
    a.qp.post_send(a.mr, length=n, imm_data=0xFFFF_FFFE, wr_id=2)
    first, second = b.recv_cq.wait(TIMEOUT, 2)
    assert (first.wr_id, first.byte_len, first.imm_data, first.opcode) == (7, n, None, rdma.WCOpcode.IBV_WC_RECV)
    assert (second.wr_id, second.byte_len, second.imm_data) == (8, n, 0xFFFF_FFFE)
    assert np.array_equal(b.array[:n], a.array[:n])
    assert [w.wr_id for w in a.cq.wait(TIMEOUT, 2)] == [1, 2]


@pytest.mark.parametrize("n", (0, 8, 70_000))
def test_write_with_immediate(linked, limits, n):
    if not limits["immediate"]:
        pytest.skip("the device has no immediate data")
    a, b = linked(max(n, 8))
    a.array[:] = 5
    b.qp.post_recv(wr_id=3)
    a.qp.post_write_imm(a.mr, b.mr.remote, 0x123, length=n)
    (got,) = b.recv_cq.wait(TIMEOUT)
    assert (got.wr_id, got.imm_data, got.byte_len) == (3, 0x123, n)
    assert got.opcode == rdma.WCOpcode.IBV_WC_RECV_RDMA_WITH_IMM
    assert (b.array[:n] == 5).all()
    a.cq.wait(TIMEOUT)


def test_atomics(linked, limits):
    if not limits["atomics"]:
        pytest.skip("the device has no atomics")
    a, b = linked(64)
    words, fetched = b.array.view(np.uint64), a.array.view(np.uint64)
    words[2] = 40
    a.qp.post_fetch_add(a.mr, b.mr.remote, 2, remote_offset=16)
    a.qp.post_fetch_add(a.mr, b.mr.remote, -1, remote_offset=16, local_offset=8)
    a.qp.post_compare_swap(a.mr, b.mr.remote, 41, 2**63, remote_offset=16, local_offset=16)
    a.qp.post_compare_swap(a.mr, b.mr.remote, 41, 7, remote_offset=16, local_offset=24)
    done = a.cq.wait(TIMEOUT, 4)
    assert [w.operation for w in done] == ["fetch_add", "fetch_add", "compare_swap", "compare_swap"]
    assert list(fetched[:4]) == [40, 42, 41, 2**63]
    assert words[2] == 2**63


def test_unsignaled_requests_complete_silently_and_in_order(linked):
    a, b = linked(800)
    a.array[:] = pattern(800)
    for i in range(99):
        a.qp.post_write(a.mr, b.mr.remote, local_offset=8 * i, remote_offset=8 * i, length=8, signaled=False)
    a.qp.post_write(a.mr, b.mr.remote, local_offset=792, remote_offset=792, length=8, wr_id=99)
    assert [w.wr_id for w in a.cq.wait(TIMEOUT)] == [99]
    assert np.array_equal(a.array, b.array)
    assert a.cq.poll() == []


def test_batch(linked):
    a, b = linked(800)
    a.array[:] = pattern(800)
    with b.qp.batch() as batch:
        for i in range(100):
            batch.post_recv(b.mr, local_offset=8 * i, length=8, wr_id=i)
        assert len(batch) == 100
    with a.qp.batch() as batch:
        for i in range(100):
            batch.post_send(a.mr, local_offset=8 * i, length=8, wr_id=i, signaled=i % 10 == 9)
    assert [w.wr_id for w in a.cq.wait(TIMEOUT, 10)] == list(range(9, 100, 10))
    assert [w.wr_id for w in b.recv_cq.wait(TIMEOUT, 100)] == list(range(100))
    assert np.array_equal(a.array, b.array)


def test_a_batch_with_a_bad_request_posts_nothing(linked):
    a, b = linked(64)
    a.array[:] = 1
    with pytest.raises(rdma.Error) as caught, a.qp.batch() as batch:
        batch.post_write(a.mr, b.mr.remote, length=8)
        batch.post_write(a.mr, b.mr.remote, length=65)
    assert caught.value.status == "IBV_WC_LOC_PROT_ERR"
    assert caught.value.sizes == {"index": 1, "length": 65, "local_offset": 0, "region": 64}
    a.qp.post_read(a.mr, b.mr.remote)  # comes after anything that was posted
    a.cq.wait(TIMEOUT)
    assert not b.array.any()


def test_inline_data_is_taken_at_once_from_any_object(linked):
    a, b = linked(64)
    data = bytearray(b"inline data")
    b.qp.post_recv(b.mr, local_offset=32)
    a.qp.post_write(data, b.mr.remote, inline=True)
    a.qp.post_send(data, local_offset=7, inline=True)
    data[:] = bytes(11)
    a.cq.wait(TIMEOUT, 2)
    b.recv_cq.wait(TIMEOUT)
    assert b.array[:11].tobytes() == b"inline data" and b.array[32:36].tobytes() == b"data"


def test_a_fence_waits_for_reads(linked):
    a, b = linked(1 << 20)
    b.array[:] = 9
    b.qp.post_recv(b.mr, length=1 << 20)
    a.qp.post_read(a.mr, b.mr.remote)
    a.qp.post_send(a.mr, fence=True)
    a.cq.wait(TIMEOUT, 2)
    b.recv_cq.wait(TIMEOUT)
    assert (b.array == 9).all()


def test_a_message_waits_for_its_receive(linked, backend):
    if backend == "ofi":
        pytest.skip("ofi: the provider keeps messages until there is a receive")
    a, b = linked(64)
    a.array[:] = 3
    a.qp.post_send(a.mr, wr_id=1)
    a.qp.post_write(a.mr, b.mr.remote, length=8, remote_offset=0, wr_id=2)
    assert a.cq.poll() == []
    with pytest.raises(rdma.TimedOut) as caught:
        a.cq.wait(0.1)
    assert caught.value.status == "ETIMEDOUT"
    b.qp.post_recv(b.mr)
    assert [w.wr_id for w in a.cq.wait(TIMEOUT, 2)] == [1, 2]
    assert (b.array == 3).all()


def test_requests_wait_for_the_connection(end):
    a, b = end(), end()
    a.qp.connect(b.qp.info())
    a.array[:] = 1
    a.qp.post_write(a.mr, b.mr.remote)
    b.qp.connect(a.qp.info())
    a.cq.wait(TIMEOUT)
    assert (b.array == 1).all()


def test_both_directions_at_once(linked):
    a, b = linked(1 << 20)
    c, d = a.pd.register(bytearray(1 << 20)), b.pd.register(bytearray(1 << 20))
    a.array[:], b.array[:] = 1, 2
    for _ in range(10):
        a.qp.post_write(a.mr, d.remote)
        b.qp.post_write(b.mr, c.remote)
    a.cq.wait(TIMEOUT, 10)
    b.cq.wait(TIMEOUT, 10)
    assert set(c.read()) == {2} and set(d.read()) == {1}


def test_queue_pairs_of_one_context_share_a_completion_queue(end):
    a = end()
    others = [a.pd.create_qp(a.cq) for _ in range(8)]
    for one, other in zip(others[::2], others[1::2]):
        one.connect(other.info())
        other.connect(one.info())
        one.post_write(a.mr, a.mr.remote, length=64, remote_offset=64)
    done = a.cq.wait(TIMEOUT, 4)
    assert {w.qp_num for w in done} == {qp.qp_num for qp in others[::2]}


def test_a_queue_pair_connected_to_itself(end):
    a = end()
    a.qp.connect(a.qp.info())
    a.array[:8] = 1
    a.qp.post_recv(a.mr, local_offset=64, length=8)
    a.qp.post_write(a.mr, a.mr.remote, length=8, remote_offset=8)
    a.qp.post_send(a.mr, length=8)
    a.cq.wait(TIMEOUT, 2)
    a.recv_cq.wait(TIMEOUT)
    assert a.array[:16].all() and a.array[64:72].all()


def test_reset_and_connect_again(linked):
    a, b = linked()
    a.qp.post_write(a.mr, b.mr.remote)
    a.cq.wait(TIMEOUT)
    a.qp.reset()
    assert a.qp.state == rdma.QPState.INIT
    b.qp.reset()
    a.qp.connect(b.qp.info())
    b.qp.connect(a.qp.info())
    assert a.qp.state == rdma.QPState.RTS
    a.array[:] = 4
    a.qp.post_write(a.mr, b.mr.remote)
    a.cq.wait(TIMEOUT)
    assert (b.array == 4).all()


def test_what_peers_need_of_memory_can_be_pickled(linked):
    a, b = linked()
    remote = pickle.loads(pickle.dumps(b.mr.remote))
    assert remote == b.mr.remote
    assert (remote.addr, remote.length, remote.rkey) == (b.mr.addr, 4096, b.mr.rkey)
    a.array[:] = 1
    a.qp.post_write(a.mr, remote)
    a.cq.wait(TIMEOUT)
    assert b.array.all()
