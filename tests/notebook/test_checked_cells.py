"""%%mpi --check: what is found is shown under the cell."""

import pytest

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

SETUP = """%%mpi -n 2 --check
import numpy as np
from gormapy import MPI
world = MPI.COMM_WORLD
win = MPI.Win.Allocate(64, 8, comm=world)
mine = np.ones(4)"""

RACE = """%%mpi
win.Lock_all()
if world.rank == 0:
    win.Put(mine, 1)
    mine[1] = 5
win.Unlock_all()"""

UNFLUSHED = """%%mpi
part = np.frombuffer(win, "f8")
win.Lock_all()
if world.rank == 0:
    win.Put(mine, 1, 2)
world.Barrier()
if world.rank == 1:
    seen = part[3]
win.Unlock_all()"""


def test_findings_are_shown_once_under_their_cell(kernel):
    first = kernel.run(SETUP).check()
    assert "gormapy-finding" not in first.html
    race = kernel.run(RACE).check()
    assert race.html.count('class="gormapy-finding"') == 1
    assert 'data-class="origin-reuse"' in race.html
    assert "rank 0: Put of mine" in race.html
    assert "rank 0: store of mine" in race.html
    assert "In [3], line 4" in race.html and "In [3], line 5" in race.html
    assert "mine[1] = 5" in race.text
    other = kernel.run(UNFLUSHED).check()
    assert 'data-class="flush-missing"' in other.html and "origin-reuse" not in other.html
    assert "<svg" in other.html and "the part of rank 1: 64 bytes" in other.html
    both = '<rect x="180.0" y="14" width="60.0" height="5" fill="#d0483a"/>'  # what both touch: no lane covers it
    assert both in other.html
    assert "bytes 24 to 32 of rank 1" in other.text
    clean = kernel.run("%%mpi\nwin.Free()").check()
    assert "gormapy-finding" not in clean.html


def test_ranks_that_are_not_checked_are_replaced(kernel):
    kernel.run("%%mpi -n 2\nfrom gormapy import MPI\nx = 1").check()
    assert "Starting 2 ranks that are checked" in kernel.run("%%mpi --check\nfrom gormapy import MPI").check().text
    kernel.run("%%mpi\nx").check("MPICellError")


def test_after_a_failure_nothing_of_before_is_held_against_later_cells(kernel):
    kernel.run(SETUP).check()
    cell = "%%mpi\nwin.Lock_all()\nif world.rank == 0:\n    win.Put(mine, 1)\n    1 / 0\nworld.Barrier()"
    assert "Communication was put back" in kernel.run(cell).check("MPICellError").text
    cell = "%%mpi\nmine[1] = 5\nworld.Barrier()\nworld.bcast(1, 0)\nworld.Allreduce(np.ones(1), np.ones(1));"
    assert kernel.run(cell).check().text == ""
    cell = "%%mpi\nwin.Lock_all()\nwin.Put(mine, world.rank)\nwin.Unlock_all()\nwin.Fence()\nwin.Fence()"
    assert kernel.run(cell).check().text == ""
    race = kernel.run(RACE.replace("%%mpi", "%%mpi\nworld.Barrier()")).check()
    assert race.html.count('class="gormapy-finding"') == 1 and 'data-class="origin-reuse"' in race.html


@pytest.mark.parametrize("option", ["", "--trace"])
def test_deadlocks_name_the_call_of_the_program(kernel, option):
    kernel.run(SETUP).check()
    kernel.run("%config MPIMagics.deadlock_after = 0.3").check()
    for call in ("reduce(1, root=0)", "barrier()"):
        stuck = kernel.run(f"%%mpi {option}\nif world.rank == 0: world.{call}").check("Deadlock")
        assert f"rank 0 waits in {call.partition('(')[0]} for rank 1" in stuck.value
