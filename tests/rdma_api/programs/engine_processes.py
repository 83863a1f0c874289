"""The programs of test_engine_processes.py. All but the first one know nothing of MPI, and begin the process of their peer.

The two are connected by pipes; words are bytes in hexadecimal digits.
"""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
from program import command

from gormapy import rdma


def ranks_exchange_descriptors_by_allgather(backend):
    from gormapy import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    lanes = 1 if backend == "ofi" else 2  # libfabric takes up to half a second for each
    engine = rdma.Engine(f"rank{rank}", backend, qp_per_transfer=lanes, connect_timeout=20)
    for desc in comm.allgather(engine.desc()):
        engine.register_remote(desc)
    window = np.zeros((size, 5000), np.int64)
    source = np.full(5000, rank + 1, np.int64)
    local = engine.register_memory(source)
    remotes = comm.allgather(engine.register_memory(window))
    statuses = [
        engine.write(local, 400 * i, remote, 40_000 * rank + 400 * i, 400, uid=i)
        for remote in remotes
        for i in range(100)
    ]
    failed = [status for status in rdma.wait_all(statuses, 30) if status.failed]
    assert not failed, (len(failed), failed[0])
    for peer in range(size):
        for i in range(100):
            assert engine.pop_inbound(f"rank{peer}", i, 30).succeeded
    assert all((window[peer] == peer + 1).all() for peer in range(size))
    comm.Barrier()
    engine.close()
    print("fine", rank)


def hear(stream):
    return bytes.fromhex(stream.readline())


def say(stream, packed):
    stream.write(packed.hex() + "\n")
    stream.flush()


def start(backend, function, *arguments):
    """Begin the process that calls a function as the target; return it, the engine, and its memory."""
    child = subprocess.Popen(
        command(function, backend, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    engine = rdma.Engine("initiator", backend)
    engine.register_remote(hear(child.stdout))
    remote = rdma.MemoryDesc.unpack(hear(child.stdout))
    say(child.stdin, engine.desc().pack())
    return child, engine, remote


def target(backend, n):
    """Return the engine of the target, and its memory."""
    engine = rdma.Engine("target", backend)
    memory = np.zeros(n, np.uint8)
    say(sys.stdout, engine.desc().pack())
    say(sys.stdout, engine.register_memory(memory).pack())
    engine.register_remote(hear(sys.stdin))
    return engine, memory


def computing_target(backend, n):
    engine, memory = target(backend, n)
    total, end = 0, time.monotonic() + 60
    while not memory[-1] and time.monotonic() < end:  # in Python all the time, and not one call of rdma
        total += sum(range(10_000))
    assert engine.pop_inbound("initiator", 1, 30).succeeded
    assert (memory == 7).all()
    assert engine.pop_inbound("initiator", 2, 30).succeeded  # of a read
    print("passive side is fine", flush=True)


def the_target_computes_meanwhile(backend):
    n = 1 << 20
    child, engine, remote = start(backend, computing_target, n)
    source = np.full(n, 7, np.uint8)
    local = engine.register_memory(source)
    begun = time.monotonic()
    assert engine.write(local, 0, remote, 0, n, uid=1).wait(30).succeeded
    source[:] = 0
    assert engine.read(local, 0, remote, 0, n, uid=2).wait(30).succeeded and (source == 7).all()
    print(child.stdout.readline(), end="")
    assert child.wait(30) == 0
    while not engine.write(local, 0, remote, 0, n).wait(30).failed:
        assert time.monotonic() - begun < 60


def waiting_target(backend, n, fork=False):
    """Be there until a line comes, or be killed; a forked child may stay longer."""
    _open = target(backend, n)
    if fork and os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    sys.stdin.readline()
    os._exit(0)


def a_peer_that_dies(backend, how):
    n = 64 << 20
    child, engine, remote = start(backend, waiting_target, n, how == "fork")
    source = np.ones(n, np.uint8)
    local = engine.register_memory(source)
    session = engine.create_session(local, remote)
    assert session.write(0, 0, 8, uid=1).wait(30).succeeded
    statuses = [getattr(session, "read" if i % 2 else "write")(0, 0, n, uid=i) for i in range(100)]
    if how == "fork":
        child.stdin.write("\n")
        child.stdin.flush()
    else:
        os.kill(child.pid, signal.SIGKILL)
    begun = time.monotonic()
    rdma.wait_all(statuses, 30)
    took = time.monotonic() - begun
    assert took < 25, took
    failed = [status for status in statuses if status.failed]
    assert failed and statuses[-1].failed
    assert all(status.code == rdma.StatusCode.ERR_RDMA_OP and '"target"' in status.message for status in failed), failed
    status = session.write(0, 0, 8).wait(30)
    assert status.failed and "no connection" in status.message, status
    assert session.alive  # it is registered still, and may come again
    engine.deregister_memory(local)
    source[:] = 2
    engine.close()
    assert (source == 2).all()
    os.killpg(child.pid, signal.SIGKILL)
    print("told")


def a_peer_that_is_stopped(backend):
    n = 8 << 20
    child, engine, remote = start(backend, waiting_target, n)
    local = engine.register_memory(bytearray(n))
    assert engine.write(local, 0, remote, 0, 8).wait(30).succeeded
    os.kill(child.pid, signal.SIGSTOP)
    statuses = [engine.write(local, 0, remote, 0, n) for i in range(20)]
    try:
        rdma.wait_all(statuses, 0.3)
    except rdma.TimedOut:
        print("timed out")
    begun = time.monotonic()
    other = engine.register_memory(bytearray(n))
    waiting = engine.write(other, 0, remote, 0, n)
    engine.deregister_memory(other)  # it does not wait for the peer for ever
    assert waiting.wait(30).failed, waiting
    assert time.monotonic() - begun < 28
    rdma.wait_all(statuses, 30)
    assert statuses[-1].failed
    os.kill(child.pid, signal.SIGCONT)
    end = time.monotonic() + 30
    while not (last := engine.write(local, 0, remote, 0, n).wait(30)).succeeded:
        assert time.monotonic() < end, last
    os.kill(child.pid, signal.SIGSTOP)
    statuses = [engine.write(local, 0, remote, 0, n) for i in range(20)]
    engine.close()
    assert all(status.done for status in statuses)
    os.kill(child.pid, signal.SIGKILL)
    print("went on")


def ctrl_c_ends_waiting(backend):
    global child, engine, local, status  # open when the interpreter ends
    child, engine, remote = start(backend, waiting_target, 8)
    local = engine.register_memory(bytearray(8))
    silent = socket.create_server(("127.0.0.1", 0))
    address = "{}:{}".format(*silent.getsockname())
    desc = dataclasses.replace(engine.desc(), name="silent", id=bytes(16), address=address)
    engine.register_remote(desc)
    status = engine.write(local, 0, dataclasses.replace(remote, engine="silent", engine_id=bytes(16)), 0, 8)
    for wait in (status.wait, lambda: rdma.wait_all([status]), lambda: engine.pop_inbound("target", 1, None)):
        try:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            wait()
        except KeyboardInterrupt:
            print("interrupted")
    status.wait(30)
    assert "timeout" in status.message, status
