"""Bad input is an exception with the status name, the operation and the sizes; what was fine before still is."""

import numpy as np
import pytest
from support.rxe import SLOW

from gormapy import rdma

TIMEOUT = 20 * SLOW


def refused(status, call, *args, **kwargs):
    """Have a call refused, and return the exception."""
    with pytest.raises(rdma.Error) as caught:
        call(*args, **kwargs)
    assert caught.value.status == status, caught.value
    assert caught.value.operation
    assert status in str(caught.value)
    return caught.value


def fails(a, status, operation, length, also=()):
    """Have the outstanding request fail, and return the exception."""
    with pytest.raises(rdma.Error) as caught:
        a.cq.wait(TIMEOUT)
    error = caught.value
    if a.context.device.backend == "ofi":  # what a peer refuses breaks the connection, and that is all that is told
        also = [*also, "IBV_WC_RETRY_EXC_ERR"]
    assert error.status in (status, *also), error
    assert (error.operation, error.sizes["length"]) == (operation, length), error
    assert error.completion.status_name == error.status
    return error


def still_works(a, b):
    a.qp.post_write(a.mr, b.mr.remote, length=8)
    assert a.cq.wait(TIMEOUT)[0].ok


OPERATIONS = {
    "write": lambda qp, mr, remote: qp.post_write(mr, remote, length=8),
    "read": lambda qp, mr, remote: qp.post_read(mr, remote, length=8),
    "fetch_add": lambda qp, mr, remote: qp.post_fetch_add(mr, remote, 1),
    "compare_swap": lambda qp, mr, remote: qp.post_compare_swap(mr, remote, 0, 1),
}


@pytest.fixture(params=OPERATIONS)
def operation(request, limits):
    if request.param in ("fetch_add", "compare_swap") and not limits["atomics"]:
        pytest.skip("the device has no atomics")
    return request.param


def test_wrong_key(linked, operation):
    a, b = linked()
    forged = rdma.RemoteMemory(b.mr.addr, b.mr.rkey ^ 0x5A5A00, b.mr.length)
    OPERATIONS[operation](a.qp, a.mr, forged)
    fails(a, "IBV_WC_REM_ACCESS_ERR", operation, 8)
    assert a.qp.state == rdma.QPState.ERR
    assert not b.array.any()
    refused("IBV_WC_WR_FLUSH_ERR", OPERATIONS[operation], a.qp, a.mr, b.mr.remote)
    refused("IBV_WC_WR_FLUSH_ERR", a.qp.post_recv, a.mr)


def test_remote_address_out_of_range(linked, operation):
    a, b = linked()
    OPERATIONS[operation](a.qp, a.mr, rdma.RemoteMemory(b.mr.addr + 4096, b.mr.rkey, 8))
    fails(a, "IBV_WC_REM_ACCESS_ERR", operation, 8)


def test_remote_range_that_wraps_around(linked):
    a, b = linked()
    error = refused(
        "IBV_WC_REM_ACCESS_ERR", a.qp.post_write, a.mr, rdma.RemoteMemory(2**64 - 8, b.mr.rkey, 2**62), length=4096
    )
    assert error.sizes["length"] == 4096
    still_works(a, b)


def test_deregistered_remote_region(linked, operation):
    a, b = linked()
    remote = b.mr.remote
    b.mr.close()
    OPERATIONS[operation](a.qp, a.mr, remote)
    fails(a, "IBV_WC_REM_ACCESS_ERR", operation, 8)
    assert not b.array.any()


ALLOWED = {"write": 2, "read": 4, "fetch_add": 8, "compare_swap": 8}


def test_access_that_the_region_does_not_allow(linked, operation, backend):
    if backend == "ofi" and operation in ("fetch_add", "compare_swap"):
        pytest.skip("ofi: libfabric has no access right for atomics alone")
    if (backend, operation) == ("ofi", "read"):
        pytest.skip("ofi: tcp;ofi_rxm does not look at the right to read")
    with_atomics = backend != "ofi"  # there they need the right to read and to write
    a, b = linked()
    denied = b.pd.register(bytearray(64), rdma.Access((15 if with_atomics else 7) - ALLOWED[operation]))
    OPERATIONS[operation](a.qp, a.mr, denied.remote)
    fails(a, "IBV_WC_REM_ACCESS_ERR", operation, 8)
    assert denied.read() == bytes(64)


def test_region_of_another_protection_domain(linked):
    a, b = linked()
    other = b.context.alloc_pd().register(bytearray(64))
    a.qp.post_write(a.mr, other.remote, length=8)
    fails(a, "IBV_WC_REM_ACCESS_ERR", "write", 8)
    own = a.context.alloc_pd().register(bytearray(64))
    a, b = linked()
    refused("IBV_WC_LOC_PROT_ERR", a.qp.post_write, own, b.mr.remote, length=8)
    still_works(a, b)


def test_local_range(linked):
    a, b = linked()
    error = refused("IBV_WC_LOC_PROT_ERR", a.qp.post_write, a.mr, b.mr.remote, local_offset=4090, length=8)
    assert error.operation == "post_write"
    assert error.sizes == {"local_offset": 4090, "length": 8, "region": 4096}
    refused("IBV_WC_LOC_PROT_ERR", a.qp.post_recv, a.mr, local_offset=0, length=4097)
    refused("EINVAL", a.qp.post_send, a.mr, length=-1)
    refused("IBV_WC_LOC_PROT_ERR", a.qp.post_send, a.mr, local_offset=-1, length=2)
    refused("EINVAL", a.qp.post_send, a.mr, length=2**70)
    error = refused("IBV_WC_REM_ACCESS_ERR", a.qp.post_write, a.mr, b.mr.remote, remote_offset=1)
    assert error.sizes == {"remote_offset": 1, "length": 4096, "region": 4096}
    still_works(a, b)


def test_local_region_that_may_not_be_written(linked):
    a, b = linked()
    constant = a.pd.register(b"constant" * 8, access=rdma.Access.REMOTE_READ)
    refused("IBV_WC_LOC_PROT_ERR", a.qp.post_read, constant, b.mr.remote, length=8)
    refused("IBV_WC_LOC_PROT_ERR", a.qp.post_recv, constant)
    a.qp.post_write(constant, b.mr.remote, length=8)
    a.cq.wait(TIMEOUT)
    assert b.array[:8].tobytes() == b"constant"


def test_deregistered_local_region(linked):
    a, b = linked()
    a.mr.close()
    refused("EBADF", a.qp.post_write, a.mr, b.mr.remote, length=8)
    refused("EBADF", a.qp.post_recv, a.mr)
    refused("EBADF", a.mr.read)


def test_message_longer_than_its_receive(linked, backend):
    a, b = linked()
    b.qp.post_recv(b.mr, length=64, wr_id=5)
    b.qp.post_recv(b.mr, length=64, wr_id=6)
    a.qp.post_send(a.mr, length=65)
    soft_roce = backend == "verbs"  # it calls both sides' errors by other names
    if backend != "ofi":  # there only the receiver is told
        fails(a, "IBV_WC_REM_INV_REQ_ERR", "send", 65, also=["IBV_WC_REM_OP_ERR"] if soft_roce else [])
    first, second = b.recv_cq.wait(TIMEOUT, 2, check=False)
    assert first.wr_id == 5
    assert first.status_name in ["IBV_WC_LOC_LEN_ERR"] + ["IBV_WC_LOC_QP_OP_ERR"] * soft_roce
    assert (second.wr_id, second.status_name) == (6, "IBV_WC_WR_FLUSH_ERR")
    assert isinstance(first.error, rdma.Error) and first.error.operation == "recv"
    assert b.qp.state == rdma.QPState.ERR


def test_no_receive_is_posted(linked, backend):
    if backend == "ofi":
        pytest.skip("ofi: the provider keeps messages until there is a receive")
    a, _ = linked(connection={"rnr_retry": 2, "rnr_timer": 0.01})
    a.qp.post_send(a.mr, length=8)
    fails(a, "IBV_WC_RNR_RETRY_EXC_ERR", "send", 8)


def test_unaligned_atomic(linked, limits):
    if not limits["atomics"]:
        pytest.skip("the device has no atomics")
    a, b = linked()
    refused("IBV_WC_REM_INV_REQ_ERR", a.qp.post_fetch_add, a.mr, b.mr.remote, 1, remote_offset=4)
    refused("IBV_WC_LOC_LEN_ERR", a.qp.post_fetch_add, a.mr, b.mr.remote, 1, length=4)
    still_works(a, b)


def test_posting_to_an_unconnected_queue_pair(end):
    a = end()
    error = refused("EINVAL", a.qp.post_write, a.mr, a.mr.remote)
    assert (error.operation, error.sizes) == ("post_write", {"length": 4096})
    refused("EINVAL", a.qp.post_send, a.mr)
    a.qp.post_recv(a.mr)  # that is allowed


def test_all_that_is_outstanding_is_flushed(linked):
    a, b = linked()
    a.qp.post_recv(a.mr, wr_id=100)
    with a.qp.batch() as batch:
        batch.post_write(a.mr, rdma.RemoteMemory(b.mr.addr, b.mr.rkey ^ 0x100, 8), length=8, wr_id=1, signaled=False)
        batch.post_write(a.mr, b.mr.remote, length=8, wr_id=2)
        batch.post_write(a.mr, b.mr.remote, length=8, wr_id=3, signaled=False)
    done = a.cq.wait(TIMEOUT, 3, check=False)
    assert [w.wr_id for w in done] == [1, 2, 3]  # errors are never silent
    first = "IBV_WC_RETRY_EXC_ERR" if a.context.device.backend == "ofi" else "IBV_WC_REM_ACCESS_ERR"
    assert [w.status_name for w in done] == [first] + ["IBV_WC_WR_FLUSH_ERR"] * 2
    assert a.recv_cq.wait(TIMEOUT, check=False)[0].status_name == "IBV_WC_WR_FLUSH_ERR"
    assert not b.array.any()


def test_an_error_comes_in_its_order(linked):
    a, b = linked()
    a.qp.post_write(a.mr, b.mr.remote, length=8, wr_id=1)
    a.cq.wait(TIMEOUT)
    a.qp.post_write(a.mr, b.mr.remote, length=8, wr_id=2)
    a.qp.post_write(a.mr, rdma.RemoteMemory(b.mr.addr, b.mr.rkey ^ 0x100, 8), length=8, wr_id=3)
    assert a.cq.wait(TIMEOUT)[0].wr_id == 2
    with pytest.raises(rdma.Error) as caught:
        a.cq.wait(TIMEOUT)
    assert caught.value.completion.wr_id == 3


def test_send_queue_overflow(linked):
    a, b = linked(max_send_wr=4)
    post = {"length": 8, "signaled": False}
    for _ in range(4):
        a.qp.post_write(a.mr, b.mr.remote, **post)
    error = refused("ENOMEM", a.qp.post_write, a.mr, b.mr.remote, **post)
    assert error.operation == "post_write"
    assert error.sizes == {"length": 8, "posted": 1, "room": 0, "max_send_wr": 4}
    a.qp.reset()  # nothing but that frees the places of requests without completions
    b.qp.reset()
    a.qp.connect(b.qp.info())
    b.qp.connect(a.qp.info())
    for _ in range(20):
        a.qp.post_write(a.mr, b.mr.remote, **post)
        a.qp.post_write(a.mr, b.mr.remote, length=8)
        a.cq.wait(TIMEOUT)


def test_receive_queue_overflow(linked):
    a, _ = linked(max_recv_wr=2)
    a.qp.post_recv(a.mr)
    a.qp.post_recv(a.mr)
    error = refused("ENOMEM", a.qp.post_recv, a.mr)
    assert error.sizes == {"length": 4096, "posted": 1, "room": 0, "max_recv_wr": 2}


def test_completion_queue_overrun(linked):
    a, b = linked(depth=4)
    for _ in range(4):
        a.qp.post_write(a.mr, b.mr.remote, length=8)
    error = refused("ENOMEM", a.qp.post_write, a.mr, b.mr.remote, length=8)
    assert (error.sizes["room"], error.sizes["depth"]) == (0, 4)
    a.cq.wait(TIMEOUT, 4)
    still_works(a, b)
    refused("EINVAL", a.cq.wait, 1, n=5)


def test_inline_data_that_is_too_long(linked):
    a, b = linked(max_inline=16)
    length = a.qp.max_inline + 1
    error = refused("ENOMEM", a.qp.post_write, bytes(length), b.mr.remote, inline=True)
    assert error.sizes == {"length": length, "max_inline": a.qp.max_inline}
    refused("EINVAL", a.qp.post_read, a.mr, b.mr.remote, length=8, inline=True)
    still_works(a, b)


def test_destroyed_objects(end):
    a = end()
    a.qp.close()
    for call in (
        a.qp.info,
        a.qp.reset,
        lambda: a.qp.state,
        lambda: a.qp.qp_num,
        lambda: a.qp.post_send(a.mr),
        a.qp.post_recv,
    ):
        refused("EBADF", call)
    refused("EBADF", a.qp.connect, b"x" * 30)
    a.cq.close()
    refused("EBADF", a.cq.poll)
    refused("EBADF", a.cq.wait, 1)
    refused("EBADF", a.pd.create_qp, a.cq)
    a.pd.close()
    assert a.mr.closed
    refused("EBADF", a.pd.register, bytearray(8))
    refused("EBADF", a.pd.create_qp, a.context.create_cq())
    a.context.close()
    assert a.context.closed
    refused("EBADF", a.context.alloc_pd)
    refused("EBADF", a.context.create_cq)
    for thing in (a.qp, a.cq, a.pd, a.mr, a.context):
        thing.close()
        repr(thing)


def test_wrong_types(linked):
    a, b = linked()
    for call in (
        lambda: a.qp.post_write(a.array, b.mr.remote),
        lambda: a.qp.post_write(a.mr, b.mr.addr),
        lambda: a.qp.post_write(a.mr, None),
        lambda: a.qp.post_write(None, b.mr.remote),
        lambda: a.qp.post_write(a.mr, b.mr.remote, length="8"),
        lambda: a.qp.post_write(a.mr, b.mr.remote, length=8.0),
        lambda: a.qp.post_write(a.mr, b.mr.remote, wr_id=None),
        lambda: a.qp.post_recv(a.array),
        lambda: a.qp.post_recv(a.mr, local_offset=0.5),
        lambda: a.qp.post_fetch_add(a.mr, b.mr.remote, 1.5),
        lambda: a.qp.connect(42),
        a.qp.connect,
        lambda: a.pd.register(object()),
        lambda: a.pd.register("text"),
        lambda: a.pd.register(a.array, access="all"),
        lambda: a.pd.create_qp(a.pd),
        lambda: rdma.QueuePair(a.context, a.cq),
        lambda: rdma.CompletionQueue(a.pd),
        lambda: rdma.Context(1),
        lambda: rdma.RemoteMemory("0", 1, 2),
        lambda: a.cq.poll("16"),
        lambda: a.cq.wait("soon"),
    ):
        with pytest.raises(rdma.TypeMismatch) as caught:
            call()
        assert caught.value.status == "EINVAL" and isinstance(caught.value, TypeError)
    for call in (
        lambda: a.qp.post_send(a.mr, wr_id=-1),
        lambda: a.qp.post_send(a.mr, wr_id=2**64),
        lambda: a.qp.post_write_imm(a.mr, b.mr.remote, 2**32),
        lambda: a.qp.post_write_imm(a.mr, b.mr.remote, -1),
        lambda: a.pd.register(bytearray()),
        lambda: a.pd.register(0),
        lambda: a.pd.register(a.array, access=16),
        lambda: a.pd.register(a.array, access=rdma.Access.REMOTE_WRITE),
        lambda: a.pd.create_qp(a.cq, max_send_wr=0),
        lambda: a.pd.create_qp(a.cq, max_send_wr=2**31 - 1),
        lambda: a.pd.create_qp(a.cq, max_inline=2**30),
        lambda: a.context.create_cq(0),
        lambda: a.cq.poll(0),
        lambda: a.cq.wait(-1),
        lambda: a.cq.wait(float("nan")),
        lambda: rdma.RemoteMemory(-1, 0, 0),
        lambda: a.context.query_port(99),
    ):
        refused("EINVAL", call)
    still_works(a, b)


def test_objects_of_different_contexts(end):
    a, b = end(), end()
    refused("EINVAL", a.pd.create_qp, b.cq)


def test_connection_infos_that_are_wrong(end, backend):
    a, b = end(), end()
    info = b.qp.info()
    for wrong in (b"", b"x", info[:-1], info + b"x", info[:4] + b"\x63" + info[5:], bytes(len(info)), bytes(5000)):
        refused("EINVAL", a.qp.connect, wrong)
    for i in range(len(info)):
        damaged = bytearray(info)
        damaged[i] ^= 0x40
        refused("EINVAL", a.qp.connect, damaged)
    assert a.qp.state == rdma.QPState.INIT
    a.qp.connect(info)
    refused("EINVAL", a.qp.connect, info)
    other = "shm" if backend == "tcp" else "tcp"
    with rdma.Context(backend=other) as context:
        qp = context.alloc_pd().create_qp(context.create_cq())
        assert backend in str(refused("EINVAL", qp.connect, info))


def test_a_peer_that_does_not_connect(end, backend):
    if backend == "ofi":
        pytest.skip("ofi: endpoints for reliable datagrams need no connection")
    a, b = end(), end()
    a.qp.connect(b.qp.info(), timeout=0.2)
    a.qp.post_write(a.mr, b.mr.remote)
    fails(a, "IBV_WC_RETRY_EXC_ERR", "write", 4096)


def test_a_peer_that_closes_its_queue_pair(linked):
    a, b = linked()
    still_works(a, b)
    b.qp.close()
    with pytest.raises(rdma.Error) as caught:  # refused at once if it is known by then
        for _ in range(100):
            a.qp.post_write(a.mr, b.mr.remote, length=8)
            a.cq.wait(TIMEOUT)
    assert caught.value.status in ("IBV_WC_RETRY_EXC_ERR", "IBV_WC_WR_FLUSH_ERR")
    assert a.qp.state == rdma.QPState.ERR
    a.qp.reset()
    assert a.qp.state == rdma.QPState.INIT


def test_no_such_device():
    for kwargs in ({"device": "nothing7"}, {"device": "tcp0", "backend": "shm"}):
        assert "tcp0" in str(refused("ENODEV", rdma.Context, **kwargs)) or kwargs["device"] == "tcp0"
    refused("EINVAL", rdma.Context, backend="carrier-pigeon")
    refused("EINVAL", rdma.devices, "carrier-pigeon")
    refused("EINVAL", rdma.Context, "tcp\0")


def test_memory_that_can_not_be_registered(end):
    a = end()
    refused("EACCES", a.pd.register, b"read-only")
    with pytest.raises(rdma.Error):
        a.pd.register(np.zeros((8, 8))[:, ::2])
    frozen = np.zeros(8)
    frozen.flags.writeable = False
    refused("EACCES", a.pd.register, frozen)
    assert a.pd.register(frozen, access=rdma.Access.REMOTE_READ).length == 64
