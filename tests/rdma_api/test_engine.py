"""The transfer engine, between two engines of one process, on every back end."""

import asyncio
import gc
import pickle
import threading
import time

import numpy as np
import pytest

from gormapy import rdma
from gormapy.rdma import StatusCode

WAIT = 30  # seconds, when all is well


@pytest.fixture
def engines(backend, device):
    """Make engines on the back end's device, each of which knows all before it, and they it."""
    made = []

    def make(name, **options):
        engine = rdma.Engine(name, backend, device, **options)
        for other in [other for other in made if not other.closed]:
            engine.register_remote(other.desc().pack())
            other.register_remote(engine.desc().pack())
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def joined(engines):
    """Make two engines with memory of n bytes each; the first one's is random."""

    def make(n=1 << 16, **options):
        a, b = engines("a", **options), engines("b", **options)
        source, target = np.random.default_rng(n).integers(0, 256, n, np.uint8), np.zeros(n, np.uint8)
        return a, b, source, target, a.register_memory(source), b.register_memory(target)

    return make


def good(status):
    """Wait for a transfer and assert that it has succeeded."""
    assert status.wait(WAIT).code == StatusCode.SUCCESS, status
    assert status.done and status.succeeded and not status.failed and status.message == ""
    return status


def bad(status, code, *words):
    """Wait for a transfer and assert that it has failed, with words in its message."""
    assert status.wait(WAIT).code == code, status
    assert status.done and status.failed and not status.succeeded
    for word in words:
        assert word in status.message, status
    return status


@pytest.mark.parametrize("n", (1, 8, 4096, 1_000_003, 8 << 20))
def test_write_and_read(joined, n):
    a, _, source, target, local, remote = joined(n)
    good(a.write(local, 0, remote, 0, n))
    assert (source == target).all()
    target[:] = np.arange(n) % 251
    good(a.read(local, 0, remote, 0, n))
    assert (source == target).all()


def test_offsets(joined):
    a, _, source, target, local, remote = joined(1000)
    good(a.write(local, 100, remote, 700, 50))
    assert (target[700:750] == source[100:150]).all() and not target[:700].any() and not target[750:].any()
    good(a.write(local, 0, remote, 1000, 0))  # nothing, at the end


def test_a_thousand_transfers_under_way(joined):
    a, b, source, target, local, remote = joined(64_000)
    order = np.random.default_rng(1).permutation(1000).tolist()
    statuses = [a.write(local, 64 * i, remote, 64 * i, 64) for i in order]
    assert a.wait_all(statuses, WAIT) == statuses
    assert all(status.code == StatusCode.SUCCESS for status in statuses)
    assert (source == target).all()
    back = [b.read(remote, 64 * i, local, 64 * i, 64) for i in order]  # the other way, on a link of its own
    there = [a.write(local, 64 * i, remote, 64 * i, 64) for i in order]
    assert all(status.succeeded for status in rdma.wait_all(back + there, WAIT))


@pytest.mark.parametrize(
    "options",
    (
        {"qp_per_transfer": 4},
        {"qp_per_transfer": 3, "max_send_wr": 2, "post_batch_size": 1, "notif_per_qp": 1},
        {"enable_transfer_chunking": True, "chunk_bytes": 1000, "max_chunks_per_transfer": 20},
        {"qp_per_transfer": 2, "enable_transfer_chunking": True, "chunk_bytes": 4096, "poll_cq_mode": "polling"},
    ),
)
def test_options(joined, options):
    a, b, source, target, local, remote = joined(300_000, **options)
    uids = [a.allocate_transfer_uid() for _ in range(300)]
    assert len(set(uids)) == 300
    statuses = [a.write(local, 1000 * i, remote, 1000 * i, 1000, uid) for i, uid in enumerate(uids)]
    assert all(status.succeeded for status in rdma.wait_all(statuses, WAIT))
    assert (source == target).all()
    for uid in uids:
        assert b.pop_inbound("a", uid, WAIT).succeeded
    target[:] = 1
    good(a.write(local, 0, remote, 0, 300_000, a.allocate_transfer_uid()))
    assert (source == target).all()


def test_batches(joined):
    a, b, source, target, local, remote = joined(1 << 16, qp_per_transfer=2)
    pieces = np.arange(0, 1 << 16, 128)
    session = a.create_session(local, remote)
    assert session.alive and session.local == local and session.remote == remote
    uid = a.allocate_transfer_uid()
    good(session.batch_write(pieces[::2], pieces[::2], np.full(256, 128), uid))
    assert b.pop_inbound("a", uid, WAIT).uid == uid
    assert (target.reshape(-1, 128)[::2] == source.reshape(-1, 128)[::2]).all()
    assert not target.reshape(-1, 128)[1::2].any()
    source[:] = 0
    good(session.batch_read([0, 50], [256, 0], (10, 5)))
    assert (source[:10] == target[256:266]).all() and (source[50:55] == target[:5]).all()
    good(session.write(0, 0, 100))
    good(session.read(0, 0, 100))
    session.close()
    assert not session.alive
    bad(session.write(0, 0, 100), StatusCode.ERR_BAD_STATE, "closed")
    statuses = a.batch_write([local, local], [[0, 10], [20]], [remote, remote], [[5, 100], [30]], [[1, 2], [3]])
    assert len(statuses) == 2
    for status in statuses:
        good(status)
    statuses = a.batch_read([local, local], [[0], [20]], [remote, remote], [[1 << 16], [30]], [[1], [3]], [7, 8])
    bad(statuses[0], StatusCode.ERR_INVALID_ARGS, "outside")
    good(statuses[1])
    assert b.pop_inbound("a", 7) is None
    assert b.pop_inbound("a", 8, WAIT).uid == 8


def test_a_notification_means_that_all_is_there(joined):
    a, b, source, target, local, remote = joined(1 << 20, qp_per_transfer=3, enable_transfer_chunking=True)
    for turn in range(1, 60):
        source[:] = turn
        status = a.write(local, 0, remote, 0, 1 << 20, turn)
        assert b.pop_inbound("a", turn, WAIT).succeeded
        assert (target == turn).all(), turn
        good(status)
        assert b.pop_inbound("a", turn) is None  # once


def test_notifications_can_be_off(joined):
    a, b, _, _, local, remote = joined(100, enable_notification=False)
    good(a.write(local, 0, remote, 0, 100, 5))
    assert b.pop_inbound("a", 5, 0.2) is None


def test_asyncio(joined):
    a, _, source, target, local, remote = joined(1 << 16)

    async def one(i):
        status = await a.write(local, 64 * i, remote, 64 * i, 64)
        assert status.succeeded
        return i

    async def main():
        assert await asyncio.gather(*map(one, range(1024))) == list(range(1024))
        failed = await a.write(local, 0, remote, 1 << 20, 1)
        assert failed.code == StatusCode.ERR_INVALID_ARGS
        status = a.write(local, 0, remote, 0, 64)
        assert await asyncio.gather(wait(status), wait(status)) == [status, status]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 0.05)  # the loop still has its other duties

    async def wait(status):
        return await status

    for _ in range(3):
        asyncio.run(main())
    assert (source == target).all()


def test_threads(joined):
    a, _, source, target, local, remote = joined(80_000)
    problems = []

    def work(k):
        try:
            session = a.create_session(local, remote)
            for i in range(50):
                at = 10_000 * k + 200 * i
                use = session.write if i % 2 else lambda *args: a.write(local, args[0], remote, *args[1:])
                good(use(at, at, 200))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert not problems
    assert (source == target).all()


def test_an_engine_can_be_its_own_peer(engines):
    a = engines("a")
    a.register_remote(a.desc())
    memory = bytearray(b"hello" + bytes(95))
    desc = a.register_memory(memory)
    good(a.write(desc, 0, desc, 50, 5, 1))
    assert memory[50:55] == b"hello"
    assert a.pop_inbound("a", 1, WAIT).succeeded


def test_descriptors(joined):
    a, _, _, _, local, _ = joined(100)
    desc = a.desc()
    assert rdma.EngineDesc.unpack(desc.pack()) == desc == pickle.loads(pickle.dumps(desc))
    assert rdma.MemoryDesc.unpack(local.pack()) == local == pickle.loads(pickle.dumps(local))
    assert len(desc.pack()) < 4096
    assert desc.secret.hex() not in repr(desc) and str(desc.secret) not in repr(desc)
    for packed, unpack in ((desc.pack(), rdma.EngineDesc.unpack), (local.pack(), rdma.MemoryDesc.unpack)):
        for n in range(len(packed)):
            with pytest.raises(rdma.Error):
                unpack(packed[:n])
            with pytest.raises(rdma.Error):
                unpack(packed[:n] + bytes([packed[n] ^ 1]) + packed[n + 1 :])
        with pytest.raises(rdma.Error):
            unpack(packed + b"x")
        with pytest.raises(rdma.TypeMismatch):
            unpack(7)
    with pytest.raises(rdma.Error, match="another kind"):
        rdma.EngineDesc.unpack(local.pack())


def test_out_of_range(joined):
    a, _, _, target, local, remote = joined(100)
    for here, there, n in (
        (1, 0, 100), (0, 1, 100), (101, 0, 0), (-1, 0, 1), (0, -1, 1), (0, 0, -1), (0, 0, 2**62), (2**62, 2**62, 2**62),
        (2**70, 0, 1), (0, -(2**90), 1), (0, 0, 2**64),
    ):  # fmt: skip
        for begin in (a.read, a.write):
            bad(begin(local, here, remote, there, n), StatusCode.ERR_INVALID_ARGS)
    session = a.create_session(local, remote)
    bad(session.batch_write([0, 5], [0, 96], [5, 5]), StatusCode.ERR_INVALID_ARGS, "entry 1")
    bad(session.batch_write([], [], []), StatusCode.ERR_INVALID_ARGS)
    bad(session.batch_write([0], [0, 1], [1]), StatusCode.ERR_INVALID_ARGS)
    bad(session.batch_write([2**70], [0], [1]), StatusCode.ERR_INVALID_ARGS)
    bad(session.batch_write(np.array([2**63], np.uint64), [0], [1]), StatusCode.ERR_INVALID_ARGS)
    (status,) = a.batch_write([local], [], [remote], [], [])
    bad(status, StatusCode.ERR_INVALID_ARGS, "lengths")
    assert not target.any()


def test_what_is_not_registered(joined, engines):
    a, b, _, target, local, remote = joined(100)
    c = engines("c")
    elsewhere = c.register_memory(bytearray(100))
    bad(a.write(elsewhere, 0, remote, 0, 1), StatusCode.ERR_NOT_FOUND, "engine 'c'")
    bad(a.write(remote, 0, remote, 0, 1), StatusCode.ERR_NOT_FOUND)
    a.deregister_remote("c")
    bad(a.write(local, 0, elsewhere, 0, 1), StatusCode.ERR_NOT_FOUND, '"c"')
    with pytest.raises(rdma.Error, match="not registered") as caught:
        a.create_session(local, elsewhere)
    assert caught.value.status == "ENOENT"
    with pytest.raises(rdma.Error, match="not registered"):
        a.deregister_remote("c")
    own = c.register_memory(bytearray(100))
    bad(c.write(own, 0, local, 0, 1), StatusCode.ERR_RDMA_OP, "deregistered")
    a.register_remote(c.desc())
    good(c.write(own, 0, local, 0, 1))
    good(a.write(local, 0, elsewhere, 0, 1))
    bad(b.pop_inbound("nobody", 1), StatusCode.ERR_NOT_FOUND, "nobody")
    session = a.create_session(local, remote)
    a.deregister_memory(local)
    assert not session.alive
    bad(session.write(0, 0, 1), StatusCode.ERR_NOT_FOUND)
    bad(a.write(local, 0, remote, 0, 1), StatusCode.ERR_NOT_FOUND)
    for desc in (local, elsewhere):
        with pytest.raises(rdma.Error) as caught:
            a.deregister_memory(desc)
        assert caught.value.status == "ENOENT"
    assert not target.any()


@pytest.fixture
def refused(backend):
    """Words in the message of a transfer with a wrong key: providers of libfabric may only say that it failed."""
    return () if backend == "ofi" else ("IBV_WC_REM_ACCESS_ERR",)


def test_memory_that_the_target_has_deregistered(joined, refused):
    a, b, source, target, local, remote = joined(1000)
    other = bytearray(1000)
    kept = b.register_memory(other)
    good(a.write(local, 0, remote, 0, 1))
    b.deregister_memory(remote)
    target[:] = 0
    bad(a.write(local, 0, remote, 0, 1000), StatusCode.ERR_RDMA_OP, *refused)
    assert not target.any()
    # Those that are under way at the same time are not harmed.
    statuses = [a.write(local, i, kept, i, 1, i) for i in range(500)]
    lost = a.write(local, 0, remote, 0, 1000)
    statuses += [a.write(local, i, kept, i, 1, i) for i in range(500, 1000)]
    for status in statuses:
        good(status)
    bad(lost, StatusCode.ERR_RDMA_OP)
    assert other == source.tobytes() and not target.any()
    for uid in range(1000):
        assert b.pop_inbound("a", uid, WAIT).succeeded
        assert b.pop_inbound("a", uid) is None


def test_read_only_memory(joined, refused):
    a, b, _, target, local, remote = joined(100)
    constant = a.register_memory(b"x" * 100)
    good(a.write(constant, 0, remote, 0, 100))
    assert target.tobytes() == b"x" * 100
    bad(a.read(constant, 0, remote, 0, 100), StatusCode.ERR_INVALID_ARGS, "read-only")
    bad(b.write(remote, 0, constant, 0, 100), StatusCode.ERR_INVALID_ARGS, "can't be written")
    good(b.read(remote, 0, constant, 0, 100))
    forged = rdma.MemoryDesc(*(getattr(local if name == "access" else constant, name) for name in constant.__slots__))
    bad(b.write(remote, 0, forged, 0, 100), StatusCode.ERR_RDMA_OP, *refused)


def test_closed_engines(joined):
    a, b, _, _, local, remote = joined(1000)
    session = a.create_session(local, remote)
    good(session.write(0, 0, 1000))
    b.close()
    begun = time.monotonic()
    while session.write(0, 0, 1).wait(WAIT).succeeded:
        assert time.monotonic() - begun < 30
    bad(session.write(0, 0, 1), StatusCode.ERR_RDMA_OP, '"b"')
    statuses = [session.write(0, 0, 1) for _ in range(100)]
    a.close()
    a.close()
    for status in statuses:
        bad(status, status.wait(WAIT).code)
        assert status.code in (StatusCode.ERR_RDMA_OP, StatusCode.ERR_BAD_STATE)
    assert a.closed and not session.alive
    bad(session.write(0, 0, 1), StatusCode.ERR_BAD_STATE)
    bad(a.write(local, 0, remote, 0, 1), StatusCode.ERR_BAD_STATE, "closed")
    bad(a.pop_inbound("b", 1), StatusCode.ERR_BAD_STATE)
    for call in (
        a.allocate_transfer_uid, lambda: a.register_memory(bytearray(1)), lambda: a.create_session(local, remote),
        lambda: a.deregister_memory(local), lambda: a.register_remote(b.desc()), lambda: a.deregister_remote("b"),
    ):  # fmt: skip
        with pytest.raises(rdma.Error) as caught:
            call()
        assert caught.value.status == "EBADF"
    assert "closed" in repr(a) and a.desc().name == "a"


def test_closing_with_transfers_under_way(engines):
    for order in range(4):
        a, b = engines(f"a{order}"), engines(f"b{order}")
        local, remote = a.register_memory(bytearray(4 << 20)), b.register_memory(bytearray(4 << 20))
        statuses = [a.write(local, 0, remote, 0, 4 << 20, i) for i in range(50)]
        if order == 0:
            a.close()
        elif order == 1:
            b.close()
        elif order == 2:
            a.deregister_memory(local)
        else:
            a.deregister_remote(b.name)
        rdma.wait_all(statuses, WAIT)
        assert statuses[-1].failed or order in (1, 2)  # they may have been fast enough


def test_objects_can_go_in_any_order(backend, device):
    import itertools

    for order in itertools.permutations(range(4)):
        a, b = rdma.Engine("a", backend, device), rdma.Engine("b", backend, device)
        a.register_remote(b.desc())
        local, remote = a.register_memory(np.ones(1000, np.uint8)), b.register_memory(np.zeros(1000, np.uint8))
        session = a.create_session(local, remote)
        things = [a, b, session, session.write(0, 0, 1000)]
        del a, b, session
        for i in order:
            things[i] = None
    gc.collect()


def test_wrong_types(joined):
    a, _, _, _, local, remote = joined(100)
    session = a.create_session(local, remote)
    for call in (
        lambda: a.write("x", 0, remote, 0, 1), lambda: a.write(local, 0, None, 0, 1), lambda: a.write(local, "0", remote, 0, 1),
        lambda: a.write(local, 0, remote, 0, 1.5), lambda: a.write(local, 0, remote, 0, 1, "uid"), lambda: session.write(None, 0, 1),
        lambda: session.batch_write([0.5], [0], [1]), lambda: session.batch_write(["a"], [0], [1]), lambda: session.batch_write([[0]], [[0]], [[1]]),
        lambda: a.register_memory(7), lambda: a.register_remote(7), lambda: a.deregister_remote(7), lambda: a.deregister_memory(7),
        lambda: a.pop_inbound(7, 1), lambda: a.pop_inbound("b", "x"), lambda: rdma.wait_all([1]), lambda: rdma.Engine(7),
        lambda: rdma.Engine("x", port="1"), lambda: rdma.Engine("x", enable_notification=1), lambda: session.write(0, 0, 1).wait("soon"),
        lambda: a.create_session(local, 5), lambda: rdma.MemoryDesc("a", b"", 1, 1, 1, 1, 1),
    ):  # fmt: skip
        with pytest.raises(rdma.TypeMismatch):
            call()
    good(session.write(0, 0, 1))


def test_wrong_values(backend, device, engines):
    for options in (
        {"qp_per_transfer": 0}, {"qp_per_transfer": 65}, {"post_batch_size": 0}, {"post_batch_size": -2}, {"max_send_wr": 1},
        {"notif_per_qp": 0}, {"chunk_bytes": 0, "enable_transfer_chunking": True}, {"max_chunks_per_transfer": 0}, {"port": -1},
        {"port": 65536}, {"connect_timeout": 0}, {"connect_timeout": float("nan")}, {"poll_cq_mode": "never"}, {"port": 2**70},
        {"host": "256.0.0.1"}, {"host": "a\0b"},
    ):  # fmt: skip
        with pytest.raises(rdma.Error):
            rdma.Engine("x", backend, device, **options)
    for name in ("", "x" * 256, "a\0"):
        with pytest.raises(rdma.Error):
            rdma.Engine(name, backend, device)
    with pytest.raises(rdma.Error, match="no back end"):
        rdma.Engine("x", "carrier pigeon")
    with pytest.raises(rdma.Error, match="no device"):
        rdma.Engine("x", backend, "nowhere0")
    a = engines("a")
    with pytest.raises(rdma.Error, match="empty"):
        a.register_memory(b"")
    with pytest.raises(rdma.Error, match="contiguous"):
        a.register_memory(np.zeros((10, 10))[:, 1])
    with rdma.Engine("b", backend, device) as b, rdma.Engine("b", backend, device) as impostor:
        a.register_remote(b.desc())
        a.register_remote(b.desc())
        with pytest.raises(rdma.Error, match="another engine"):
            a.register_remote(impostor.desc())
        memory = impostor.register_memory(bytearray(10))
        local = a.register_memory(bytearray(10))
        bad(a.write(local, 0, memory, 0, 10), StatusCode.ERR_NOT_FOUND, "another engine")
        impostor.register_remote(a.desc())
        bad(impostor.write(memory, 0, local, 0, 10), StatusCode.ERR_RDMA_OP, "knows another engine")
    with pytest.raises(rdma.TimedOut):
        stuck = rdma.Engine("stuck", backend, device)
        desc = stuck.desc()
        stuck.close()
        import dataclasses
        import socket

        with socket.create_server(("127.0.0.1", 0)) as silent:
            host, port = silent.getsockname()
            a.register_remote(dataclasses.replace(desc, address=f"{host}:{port}"))
            there = dataclasses.replace(local, engine="stuck", engine_id=desc.id)
            status = a.write(local, 0, there, 0, 10)
            assert not status.done and status.code == StatusCode.INIT
            status.wait(0.1)


def test_engines_of_two_back_ends(backend):
    other = "shm" if backend == "tcp" else "tcp"
    with rdma.Engine("a", backend) as a, rdma.Engine("b", other) as b, pytest.raises(rdma.Error, match="back end"):
        a.register_remote(b.desc())
