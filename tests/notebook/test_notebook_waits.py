"""Cells that don't come to an end: stop, deadlocks, time-outs; the ranks are usable afterwards."""

import re
import time
import xml.etree.ElementTree as ElementTree

import pytest
from kernels import pressing

SETUP = """
%%mpi -n 3
from gormapy import MPI
import numpy as np, time
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
"""

# What is asked of a picture: edges as (from, to), and the state of each rank.
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def three(shared):
    """The module's kernel, with ranks that can communicate."""
    shared.run(SETUP).check()
    yield shared
    out = shared.run("%%mpi\ncomm.allreduce(1), comm.sendrecv(rank, (rank + 1) % 3, source=(rank - 1) % 3)").check()
    assert [out.of(r) for r in range(3)] == [["(3, 2)"], ["(3, 0)"], ["(3, 1)"]]
    assert not re.search("new|lost", out.text)


def edges(out):
    (svg,) = out.mime("image/svg+xml")
    root = ElementTree.fromstring(svg)
    return {(int(e.get("data-from")), int(e.get("data-to"))) for e in root.iter(f"{SVG}path") if e.get("data-from")}


def rows(out):
    (table,) = re.findall(r'<table class="gormapy-waits".*?</table>', out.html)
    return [
        re.findall(r"<td[^>]*>(?:<code>)?(.*?)(?:</code>)?</td>", row) for row in re.findall("<tr class.*?</tr>", table)
    ]


# None of them is a deadlock, which would be found and end the cell if the stop came late.
WAITS = "if rank == 0: time.sleep(60)\nelse: comm.recv(source=0)"
STOPPED = {
    "recv": WAITS,
    "fence": "win = MPI.Win.Allocate(8, comm=comm)\nif rank: win.Fence()\nelse: time.sleep(60)",
    "computing": "while True: pass",
    "sleeping": "time.sleep(60)",
    "one computes": "if rank == 0:\n    while True: pass\ncomm.Barrier()",
}


@pytest.mark.parametrize("what", STOPPED)
def test_stop_leaves_the_ranks_usable(three, what):
    three.run("%%mpi\nkept = rank").check()
    code = f"%%mpi\nprint('here', flush=True)\n{STOPPED[what]}"
    out = three.run(code, during=pressing(three, "here")).check("CellInterrupted")
    assert out.seconds < 30 and "Communication was put back" in out.text
    assert three.run("%%mpi\nkept").check().of(2) == ["2"]


def test_stop_again_and_again(three):
    for _ in range(5):
        code = f"%%mpi\nprint('here', flush=True)\n{WAITS}"
        three.run(code, during=pressing(three, "here")).check("CellInterrupted")
        assert three.run("%%mpi\ncomm.allreduce(1)").check().of(0) == ["3"]


@pytest.mark.exhaustive
def test_code_that_cant_be_interrupted_is_told_and_ended_by_a_second_stop(kernel):
    kernel.run(SETUP).check()
    out = kernel.run(
        """
        %%mpi
        import contextlib, ctypes
        if rank == 1:
            mutex = ctypes.create_string_buffer(64)
            print("here", flush=True)
            while True:
                with contextlib.suppress(KeyboardInterrupt):  # it may come before
                    ctypes.PyDLL(None).pthread_mutex_lock(mutex)  # keeps Python's lock
        comm.Barrier()
        """,
        during=pressing(kernel, "here", "did not react within"),
    ).check("CellInterrupted")
    assert "Rank 1 did not react within 5 s: it runs code that Python can't interrupt" in out.text
    assert "all ranks were ended" in out.text
    assert kernel.run("%%mpi\n1").check().of(2) == ["1"]


def test_a_ring_of_receives(three):
    out = three.run("%%mpi\n# everybody receives first\ncomm.Recv(np.zeros(1), source=(rank + 1) % 3, tag=7)").check(
        "Deadlock"
    )
    assert out.seconds < 20
    assert out.value == (
        "ranks 0-2 wait for each other: rank 0 in Recv for rank 1, rank 1 in Recv for rank 2, rank 2 in Recv for rank 0"
    )
    assert edges(out) == {(0, 1), (1, 2), (2, 0)}
    table = rows(out)
    assert [row[0] for row in table] == ["0", "1", "2"]
    for r, row in enumerate(table):
        assert row[1].startswith("Recv") and row[2] == f"rank {(r + 1) % 3}" and row[3] == "COMM_WORLD, tag 7"
        assert re.fullmatch(r"In \[\d+\], line 3: comm.Recv\(.*", row[4])
    assert "KeyboardInterrupt" not in out.text  # that is our doing


DEADLOCKS = {
    "a barrier without one": ("if rank: comm.Barrier()", {(1, 0), (2, 0)}, "which has come to the end of the cell"),
    "a lock that is not given back": (
        "win = MPI.Win.Allocate(8 * (rank == 0), comm=comm)\nif rank == 1: win.Lock(0)\ncomm.Barrier()\n"
        "if rank == 2: win.Lock(0)",
        {(2, 1)},
        "rank 2 waits in Win.Lock for rank 1",
    ),
    "a long send": (
        "comm.Send(np.zeros(1_000_000), dest=(rank + 1) % 3)",
        {(0, 1), (1, 2), (2, 0)},
        "wait for each other",
    ),
    "any source": ("comm.Recv(np.zeros(1), source=MPI.ANY_SOURCE)", None, "for any of"),
    "itself": ("if rank == 1: comm.Recv(np.zeros(1), source=1)", {(1, 1)}, "rank 1 waits for itself in Recv"),
    "two communicators": (
        "other = comm.Dup()\nif rank == 0: other.Barrier(); comm.Barrier()\nelse: comm.Barrier(); other.Barrier()",
        {(0, 1), (0, 2), (1, 0), (2, 0)},
        "Barrier",
    ),
    "a fence": ("win = MPI.Win.Allocate(8, comm=comm)\nif rank != 1: win.Fence()", {(0, 1), (2, 1)}, "Win.Fence"),
    "start": (
        "win = MPI.Win.Allocate(8, comm=comm)\nif rank == 0: win.Start(comm.group.Incl([2]))",
        {(0, 2)},
        "rank 0 waits in Win.",
    ),
    "bcast without root": ("if rank: comm.Bcast(np.zeros(1), root=0)", {(1, 0), (2, 0)}, "in Bcast"),
    "a pickled message": ("comm.recv(source=(rank + 1) % 3)", {(0, 1), (1, 2), (2, 0)}, "rank 0 in recv for rank 1"),
    "a request": ("if rank == 2: comm.Irecv(np.zeros(1), source=0, tag=3).Wait()", {(2, 0)}, "rank 2 waits in"),
}


@pytest.mark.parametrize("what", DEADLOCKS)
def test_deadlocks(three, what):
    code, arrows, words = DEADLOCKS[what]
    if what == "start":
        code += "; win.Put(np.zeros(1), 2); win.Complete()"
    out = three.run(f"%%mpi\n{code}").check("Deadlock")
    if arrows is not None:
        assert edges(out) == arrows, out
    assert words in out.value and out.seconds < 25
    assert "Communication was put back" in out.text


@pytest.mark.exhaustive
def test_a_deadlock_on_one_and_on_seven_ranks(kernel):
    for n in (1, 7):
        out = kernel.run(
            f"%%mpi -n {n}\nfrom gormapy import MPI\ncomm = MPI.COMM_WORLD\ncomm.recv(source=(comm.rank + 1) % {n})"
        )
        out.check("Deadlock")
        assert edges(out) == {(r, (r + 1) % n) for r in range(n)}
    assert kernel.run("%%mpi\ncomm.allreduce(1)").check().of(6) == ["7"]


def test_a_deadlock_can_be_shown_on_purpose(three):
    out = three.run("%%mpi --allow-errors\ncomm.recv(source=(rank + 1) % 3)").check()
    assert "Deadlock: ranks 0-2 wait for each other" in out.text


GOES_ON = {
    "one sleeps": "if rank == 0: time.sleep(4)\ncomm.Barrier()",
    "one computes": "end = time.monotonic() + 4\nif rank == 0:\n    while time.monotonic() < end: pass\ncomm.Barrier()",
    "one waits for a child": "import subprocess\nif rank == 0: subprocess.run(['sleep', '4'])\ncomm.Barrier()",
    "one reads a pipe": "import os, threading\nif rank == 0:\n    r, w = os.pipe()\n    threading.Timer(4, os.write, (w, b'x')).start()\n    os.read(r, 1)\ncomm.Barrier()",
    "a thread will send": "import threading\ndef later():\n    time.sleep(4)\n    comm.send(1, dest=rank, tag=5)\nt = threading.Thread(target=later); t.start()\ncomm.recv(source=rank, tag=5); t.join()",
    "a long exchange": "big = np.zeros(4_000_000)\nend = time.monotonic() + 4\ngo = True\nwhile go:\n    comm.Allreduce(MPI.IN_PLACE, big)\n    go = comm.bcast(time.monotonic() < end, root=0)",
    "a lock that is held by who sleeps": "win = MPI.Win.Allocate(8, comm=comm)\nif rank == 0:\n    win.Lock(0); comm.Barrier(); time.sleep(4); win.Unlock(0)\nelse:\n    comm.Barrier(); win.Lock(0); win.Unlock(0)",
}


@pytest.mark.parametrize("what", GOES_ON)
def test_no_deadlock_where_somebody_goes_on(three, what):
    out = three.run(f"%%mpi\n{GOES_ON[what]}\nprint('done')").check()
    assert out.lines == ["[0-2] done"] and out.seconds > 3


def test_time_out_shows_what_everybody_does(three):
    code = """
        if rank == 0:
            pass
        elif rank == 1:
            while True: pass
        else:
            comm.Recv(np.zeros(1), source=1, tag=4)
        """
    for timeout in (1.5, 6, 20):  # a busy machine takes long until all are there
        out = three.run(f"\n        %%mpi --timeout {timeout}{code}").check("CellTimeout")
        table = rows(out)
        if table[0][1] == "has finished the cell" and "line 5" in table[1][4] and table[2][1].startswith("Recv"):
            break
    assert out.value == f"ranks 1, 2 did not end within {timeout} s"
    assert table[0][1] == "has finished the cell"
    assert table[1][1].startswith("runs") and "line 5: while True: pass" in table[1][4]
    assert table[2][1].startswith("Recv") and table[2][2] == "rank 1" and "line 7" in table[2][4]
    assert edges(out) == {(2, 1)}


def test_a_cell_within_its_time(three):
    assert three.run("%%mpi --timeout 30\nrank").check().of(1) == ["1"]


def test_an_interrupt_that_the_cell_catches(three):
    out = three.run(
        """
        %%mpi
        try:
            comm.Barrier()  # the others are there, too
            print("here", flush=True)
            if rank == 0: time.sleep(60)
            comm.recv(source=0)
        except KeyboardInterrupt:
            print("caught on", rank)
        """,
        during=pressing(three, "here"),
    ).check("CellInterrupted")
    assert out.of(1) == ["here", "caught on 1"]


def test_stop_while_nothing_runs_on_the_ranks(three):
    code = "import time\nprint('here', flush=True)\ntime.sleep(60)"
    out = three.run(code, during=pressing(three, "here")).check("KeyboardInterrupt")
    assert out.seconds < 30
    begun = time.monotonic()
    three.run("%%mpi\ncomm.Barrier()").check()
    assert time.monotonic() - begun < 20
