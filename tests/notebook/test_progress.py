"""The line that says what the ranks of a cell do while it runs, and is gone when it ends."""

import json
import re
import time

import pytest

from gormapy._resident.diagnosis import Sighting
from gormapy.magic import progress

SETUP = """%%mpi -n 4
from gormapy import MPI
import os, time
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
def wait_for(path):
    while not os.path.exists(path): time.sleep(0.02)"""


@pytest.fixture
def four(shared):
    """The module's kernel with 4 ranks."""
    shared.run(SETUP).check()
    shared.run("%config MPIMagics.progress_after = 2.0").check()
    return shared


def sight(rank, wait=None, **state):
    sighting = Sighting(rank, **state)
    place = {"cell": 3, "line": 5, "label": "In [3], line 5", "text": ""}
    call = {"call": wait[0] if wait else "", "main": True, "all": False, "peer": wait[1] if wait else -3, "members": [],
            "holders": [], "tag": -1, "on": "", "seconds": 1.0, "context": 0}  # fmt: skip
    sighting.answer = {"waits": [call] if wait else [], "place": place, "method": None}
    return sighting


def test_what_the_line_says():
    ranks = [sight(0), sight(1, ("Recv", 0)), sight(2, ("Recv", 0)), sight(3, running=False), sight(4, running=False)]
    ranks += [sight(5, running=False, failed=True), sight(6), Sighting(7), sight(8, ("Recv", -1))]
    assert progress.line(7.9, ranks[:5]) == (
        "7 s: rank 0 runs In [3], line 5; ranks 1, 2 wait in Recv for rank 0; ranks 3, 4 have finished"
    )
    assert progress.line(125, ranks[5:8], silent=[6]) == "2 min 5 s: rank 5 has failed; ranks 6, 7 do not answer"
    assert progress.line(3, [ranks[0], ranks[8]]).endswith("rank 8 waits in Recv for rank 0")


def seeing(pattern, then):
    """Return a function for `during` that makes a file when the text of the cell has a pattern, and what was seen."""
    seen = []

    def during(out, passed):
        if re.search(pattern, out.text):
            seen.append((out.text, out.html))
            then.touch()
            return True

    return during, seen


@pytest.mark.parametrize("printed", ["", "print('first', flush=True)\n"])
def test_the_line_comes_after_two_seconds_and_goes_with_the_end(four, tmp_path, printed):
    go = tmp_path / "go"
    during, seen = seeing(r"\d+ s: ranks 0, 2, 3 wait in Barrier for rank 1; rank 1 runs In \[\d+\], line \d", go)
    begun = time.monotonic()
    asked = four.begin(f"%%mpi\n{printed}if rank == 1: wait_for({str(go)!r})\ncomm.Barrier()")
    out = four.finish(asked, during=during).check()
    assert seen and "gormapy-progress" in seen[0][1] and time.monotonic() - begun >= 2
    assert out.lines == (["[0-3] first"] if printed else []) and "gormapy-progress" not in out.html
    assert out.clears == (not printed) and len(out.outputs) == bool(printed)
    if printed:
        assert seen[0][0].startswith("[0] first\n[1] first\n")


def test_short_cells_never_have_it(four):
    found = []
    out = four.run("%%mpi\ntime.sleep(0.9)\nprint('x')", during=lambda out, passed: found.append(out.html)).check()
    assert "gormapy-progress" not in "".join(found) and out.clears == 0


def test_the_order_of_output_is_that_without_it(four, tmp_path):
    go = tmp_path / "go"
    during, seen = seeing("4 s: ", go)
    out = four.run(
        f"%%mpi --fresh\nimport os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)", during=during
    )
    assert seen and out.check().lines == ["Starting 4 new ranks; what the old ones had is gone."] and out.clears
    four.run(SETUP).check()
    out = four.run("%%mpi --timeout 4 --allow-errors\ntime.sleep(50)").check()
    kinds = [next(iter(o)) for o in out.outputs]
    assert "gormapy-progress" not in out.html and kinds[0] == "image/svg+xml", out.outputs
    out = four.run("%%mpi --allow-errors\ncomm.recv(source=(rank + 1) % size)").check()
    assert "Deadlock" in out.text and out.clears == 0  # it is told before a line would help


def test_it_can_be_turned_off_and_clears_nothing_of_others(four):
    four.run("%config MPIMagics.progress_after = 0.5").check()
    out = four.run("print('mine')\nget_ipython().run_cell_magic('mpi', '', 'time.sleep(1.5)')").check()
    assert out.text == "mine" and out.clears == 0
    out = four.run("%%mpi --local\nimport time\nprint('both', flush=True)\ntime.sleep(1.2)").check()
    assert out.lines == ["both", "[0-3] both"] and out.clears == 0
    assert four.run("%%mpi\ntime.sleep(1.5)").check().clears == 1
    four.run("%config MPIMagics.progress_after = 0").check()
    assert four.run("%%mpi\ntime.sleep(1.5)").check().clears == 0


def test_saved_notebooks_do_not_have_it(tmp_path):
    import nbclient
    import nbformat

    cells = ["%load_ext gormapy\n%config MPIMagics.progress_after = 0.3", "%%mpi -n 2\nimport time\ntime.sleep(1.5)",
             "%%mpi\nprint(1, flush=True)\ntime.sleep(1.5)\nprint(2)"]  # fmt: skip
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(
        book, timeout=60, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    assert [len(cell.outputs) for cell in book.cells] == [0, 0, 1]
    assert "gormapy-progress" not in json.dumps(book)
    assert book.cells[2].outputs[0]["data"]["text/plain"] == "[0, 1] 1\n[0, 1] 2"
