"""Lessons on ranks that are checked: what is found in them is what they say, and nothing else."""

import re
from pathlib import Path

import pytest
from lessons import checked, execute, notebook, source

SOURCES = Path(__file__).resolve().parents[2] / "notebooks" / "source"
HEAD = "# 7 · Shared memory\n\nWhat it is about.\n\n<!-- first cell -->\n\n"


def on_one_host(test):
    """Mark a test that runs ranks which are checked."""
    test = pytest.mark.one_node("mpiexec --check needs ranks on one host")(test)
    return pytest.mark.shm("loads and stores are seen where ranks share memory")(test)


# What is found on purpose, in which lessons. Lesson 18 is made of it: twelve exercises, one of which shows two
# classes, and the report that is explained.
ON_PURPOSE = {
    2: ["collective-mismatch"],
    5: ["wrong-assert"],
    6: ["epoch-missing"],
    8: ["local-access", "local-access", "local-access", "local-access", "local-access (contested)"],
    17: ["collective-mismatch", "epoch-missing"],
    18: (
        "accumulate-mix epoch-nested flush-missing local-access origin-reuse request-lost result-early result-early "
        "same-origin-order shared-access target-conflict target-conflict winsync-missing wrong-assert"
    ).split(),
}


def lesson(number):
    [path] = SOURCES.glob(f"{number:02}-*.md")
    return source.read(path)


def test_what_the_lessons_say_is_found_in_them():
    said = {}
    for path in SOURCES.glob("*.md"):
        if found := sorted(name for cell in source.read(path).cells for name in cell.findings):
            said[int(path.name[:2])] = found
    assert said == ON_PURPOSE


def test_no_solution_has_a_race_on_purpose():
    machine = "def board"  # the machine of lesson 8, with two copies
    for path in SOURCES.glob("*.md"):
        for cell in source.read(path).cells:
            assert cell.kind != "solution" or not cell.findings or machine in cell.text, f"{path}:{cell.line}"


def test_each_program_of_lesson_18_is_short_and_is_checked():
    cells = [cell for cell in lesson(18).cells if cell.kind in ("exercise", "solution")]
    assert [cell.kind for cell in cells] == ["exercise", "solution"] * 12
    for broken, repaired in zip(cells[::2], cells[1::2]):
        assert broken.only and broken.findings and not repaired.only and not repaired.findings
        for cell in (broken, repaired):
            assert cell.text.startswith("%%mpi --check\n")
        assert len(broken.text.splitlines()) - 1 <= 15
    classes = [cell.findings[0] for cell in cells[::2]]
    assert len(set(classes)) == 12


def read(tmp_path, text):
    path = tmp_path / "07-x.md"
    path.write_text(HEAD + text)
    return source.read(path)


def test_findings_of_a_source(tmp_path):
    [_, _, cell] = read(tmp_path, "```python\nx\n```\n```findings\n\nlocal-access: why\nflush-missing\n```\n").cells
    assert cell.findings == ["local-access", "flush-missing"] and not cell.lines
    for text in ("```findings\nx\n```\n", "```python\nx\n```\n```findings now\nx\n```\n"):
        path = tmp_path / "07-x.md"
        path.write_text(HEAD.replace("<!-- first cell -->\n\n", "") + text)
        with pytest.raises(source.SourceError, match="stands alone, below a cell with code"):
            source.read(path)


@pytest.mark.parametrize(
    "before, after",
    [
        (["%%mpi -n 2\n", "x"], ["%%mpi --check -n 2\n", "x"]),
        (["%%mpi\n"], ["%%mpi --check\n"]),
        (["%%mpi --check\n", "x"], ["%%mpi --check\n", "x"]),
        (["%mpi stop"], ["%mpi stop"]),
        ([], []),
    ],
)
def test_every_cell_on_ranks_says_check(before, after):
    book = {"cells": [{"cell_type": "code", "source": before}, {"cell_type": "markdown", "source": ["%%mpi"]}]}
    assert [cell["source"] for cell in checked.everywhere(book)["cells"]] == [after, ["%%mpi"]]


def cell(first, promised, *found):
    shown = [
        {"data": {"text/html": ['<div class="gormapy-finding">'], "text/plain": [f"{name}: why\n", "    a line"]}}
        for name in found
    ]
    return {"source": [first], "metadata": {"gormapy": {"findings": promised}}, "outputs": [{"text": "1"}, *shown]}


@pytest.mark.parametrize(
    "one, everywhere, says",
    [
        (cell("%%mpi\n", []), True, ""),
        (cell("%%mpi\n", ["origin-reuse"]), False, ""),
        (cell("%%mpi\n", ["origin-reuse"], "origin-reuse", "origin-reuse"), True, ""),
        (cell("%%mpi\n", ["local-access (contested)"], "local-access (contested)"), True, ""),
        (cell("%%mpi\n", ["local-access"], "local-access (contested)"), True, "should find 'local-access', and finds"),
        (cell("%%mpi --check\n", ["origin-reuse"]), False, "should find 'origin-reuse', and finds nothing"),
        (cell("%%mpi\n", [], "origin-reuse"), False, "should find nothing, and finds\norigin-reuse: why\n    a line"),
        (cell("%mpi stop", [], "epoch-open"), True, "should find nothing, and finds\nepoch-open"),
    ],
)
def test_surprises(one, everywhere, says):
    found = checked.surprise(one, everywhere)
    assert says in found and bool(says) == bool(found)


def test_what_a_student_is_to_find_is_not_shown(tmp_path):
    exercise = "Task\n```exercise\n%%mpi{}\nx = 1\n```\n```findings\nflush-missing\n```\n```solution\n%%mpi --check\nx = 2\n```\n"
    for option, shown in ((" --check", False), ("", True)):
        made = read(tmp_path, exercise.format(option))
        ran = notebook.make(made, teacher=True)
        for count, one in enumerate((c for c in ran["cells"] if c["cell_type"] == "code"), 1):
            one |= {"execution_count": count, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["x"]}]}
        for teacher in (False, True):
            book = notebook.with_outputs(notebook.make(made, teacher=teacher), ran, teacher=teacher)
            [task] = (c for c in book["cells"] if c["metadata"].get("tags") == ["exercise"])
            assert bool(task["outputs"]) == (shown or teacher) and task["execution_count"] == 2


RACE = """```python
%%mpi -n 2{}
import numpy as np
from gormapy import MPI
win = MPI.Win.Allocate(8, 8, comm=MPI.COMM_WORLD)
mine = np.ones(1)
win.Lock_all()
win.Put(mine, 0)
mine[0] = 2
win.Unlock_all()
win.Free()
```
"""


@on_one_host
@pytest.mark.parametrize("option, check", [("", True), (" --check", False)])
def test_a_lesson_on_checked_ranks(tmp_path, monkeypatch, option, check):
    monkeypatch.setattr(notebook, "FIRST_CELL", "%load_ext gormapy")
    stop = "```python\n%mpi stop\n```\n"
    text = RACE.format(option)
    silent = read(tmp_path, text + stop)
    with pytest.raises(execute.LessonError, match="check should find nothing, and finds"):
        execute.run(silent, notebook.make(silent, teacher=True), check=check)
    honest = read(tmp_path, text + "```findings\norigin-reuse\ntarget-conflict\n```\n" + stop)
    execute.run(honest, notebook.make(honest, teacher=True), check=check)


SETUP = """
import numpy as np
from gormapy import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
win = MPI.Win.Allocate(4 * 4, disp_unit=4, comm=comm)
memory, number = np.frombuffer(win, "i"), np.full(1, rank, "i")
"""


@on_one_host
@pytest.mark.parametrize(
    "begins, ends, found",
    [
        ("win.Fence()\nwin.Put(np.full", "", None),  # gormapy keeps the array
        ("win.Lock_all()\nwin.Put(number", "win.Unlock_all()", "flush-missing"),
        ("box = np.zeros(2)", "", "epoch-missing"),
    ],
)
def test_mistakes_that_lesson_17_shows_as_text(mpirun, begins, ends, found):
    text = "".join(cell.text for cell in lesson(17).cells if cell.kind == "text")
    [program] = (part for part in re.findall(r"```py\n(.*?)```", text, re.DOTALL) if part.startswith(begins))
    said = mpirun(4, f"{SETUP}{program}{ends}", launcher=["--check"], expect=1 if found else 0).stderr
    assert f"mpiexec --check found {found}:" in said if found else "nothing was found" in said
