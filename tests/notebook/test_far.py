"""Connections of ranks on other hosts to the kernel."""

import contextlib
import os
import selectors
import signal
import socket
import threading
import time

import pytest
from kernels import Kernel

from gormapy._resident import far, link

SECRET = b"a secret"


@contextlib.contextmanager
def opened(secret=SECRET):
    """A door, whose kernel takes what comes; yields it and the readers of the ranks that have come."""
    door, readers, over = far.Door(SECRET), [], threading.Event()
    selector = selectors.DefaultSelector()
    selector.register(door.listener, selectors.EVENT_READ, None)

    def serve():
        while not over.is_set():
            for key, _ in selector.select(0.05):
                one = key.data or door.accept()
                if one is None:
                    continue
                if key.data is None:
                    selector.register(one.sock, selectors.EVENT_READ, one)
                    continue
                selector.unregister(one.sock)
                came = door.take(one)
                if came is False:
                    selector.register(one.sock, selectors.EVENT_READ, one)
                elif came is not True:
                    readers.append(came)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield door, readers
    finally:
        over.set()
        thread.join()
        selector.close()
        door.close()
        for reader in readers:
            reader.close()
            for fd in reader.fds:
                os.close(fd)


def wait_for(readers):
    end = time.monotonic() + 10
    while not readers and time.monotonic() < end:
        time.sleep(0.01)
    return readers[0]


def take(reader):
    reader.sock.setblocking(True)
    return reader.next()


def test_messages_and_output():
    with opened() as (door, readers):
        rank, (out, err, life) = far.connect(door.address + ",127.0.0.1/1", SECRET)
        with rank.sock, out, err, life:
            kernel = wait_for(readers)
            for n in range(3):
                link.send(rank.sock, "up", [b"abc" * n, b""], seal=rank.outgoing, n=n)
                link.send(kernel.sock, "down", seal=kernel.outgoing, n=n)
            for n in range(3):
                message = take(kernel)
                assert (message.kind, message.n, message.payloads) == ("up", n, [b"abc" * n, b""])
                assert take(rank).n == n
            out.sendall(b"printed")
            far.passed(out.fileno())
            assert os.read(kernel.fds[0], 100) == b"printed"


def test_a_message_that_is_changed_repeated_or_left_out_is_refused():
    seal = link.Seal(b"key")
    whole = []
    for n in range(2):
        (head,) = link.pack("note", n=n)
        whole.append(head + seal.next(head) + seal.next())
    changed = bytearray(whole[0])
    changed[12] ^= 1
    for name, data in {"changed": changed, "repeated": whole[0] * 2, "left out": whole[1]}.items():
        mine, other = socket.socketpair()
        with mine, other:
            mine.sendall(data)
            reader = link.Reader(other, link.Seal(b"key"))
            reader.fill()
            with pytest.raises((ConnectionError, ValueError)):
                assert reader.take() is not None, name
                reader.take()


def test_who_does_not_know_the_secret_is_not_let_in():
    with opened() as (door, readers):
        with pytest.raises(SystemExit, match="does not reach the notebook's kernel"):
            far.connect(door.address, b"another secret")
        with socket.create_connection(("127.0.0.1", int(door.address.rpartition("/")[2]))) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n" * 20)
            sock.settimeout(10)
            with contextlib.suppress(ConnectionError):
                while sock.recv(1000):
                    pass
        assert not readers


def test_addresses_of_this_host():
    found = far.addresses()
    assert "127.0.0.1" in found and found[-1].startswith(("127.", "::1"))
    assert all(":" in a or a.count(".") == 3 for a in found)


@pytest.mark.parametrize(
    "env, yes",
    [
        ({}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2"}, True),
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "1"}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_NNODES": "2", "SLURM_STEP_ID": "0"}, False),
        ({"FLUX_URI": "x", "FLUX_JOB_NNODES": "3"}, True),
    ],
)
def test_allocations(env, yes):
    assert far.allocated(env) == yes


SETUP = """
%%mpi -n 3 --hosts localhost
from gormapy import MPI
import ctypes, os, time
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
"""


def test_cells_of_ranks_that_are_connected_by_tcp(shared):
    shared.run(SETUP).check()
    out = shared.run("%%mpi\nprint('a', rank)\nos.system('echo b')\nctypes.CDLL(None).puts(b'c')\nrank").check()
    for r in range(3):
        assert sorted(out.of(r)) == sorted([f"a {r}", "b", "c", f"{r}"]), out
    out = shared.run("%%mpi\nfor i in range(20000): print(i)").check()
    out = shared.run("%%mpi\ncomm.recv(source=(rank + 1) % 3)").check("Deadlock")
    assert "ranks 0-2 wait for each other" in out.text, out
    out = shared.run("%%mpi --timeout 1\nif rank == 1: time.sleep(60)\ncomm.Barrier()").check("CellTimeout")
    assert shared.run("%%mpi\nkept = comm.allreduce(rank); kept").check().of(1) == ["3"]
    shared.run("%mpi pull kept").check()
    assert shared.run("kept").check().text == "[3, 3, 3]"
    assert socket.gethostname() in shared.run("%mpi status").check().text
    assert shared.run("%%mpi\n'rank' in globals()").check().of(0) == ["True"], "the hosts stay those of the last cell"


def test_a_figure_is_between_what_is_printed_before_and_after(shared):
    shared.run(SETUP).check()
    out = shared.run("""
        %%mpi --ranks 1
        from IPython.display import display
        for i in range(20):
            print("before", i)
            display(f"shown {i}")
    """).check()
    assert out.of(1) == [line for i in range(20) for line in (f"before {i}", f"'shown {i}'")], out


@pytest.mark.parametrize(
    "busy",
    ["pass", "comm.recv(source=(rank + 1) % size)", "ctypes.PyDLL(None).sleep(600)"],
    ids=["idle", "waiting", "in C code with Python's lock"],
)
def test_a_killed_kernel_leaves_nothing_on_other_hosts(tmp_path, busy):
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP).check()
        asked = kernel.begin(f"%%mpi\n{busy}")
        if busy == "pass":
            kernel.finish(asked)
        time.sleep(0.7)
        assert len(kernel.processes()) >= 4
        os.kill(kernel.pid, signal.SIGKILL)
        assert not kernel.left(8.0)
