"""Sources of lessons: what becomes a cell, and what is refused."""

import ast

import pytest
from lessons import buffers, notebook, source

HEAD = "# 7 · Shared memory\n\nWhat it is\nabout. And more.\n\n<!-- first cell -->\n\n"


@pytest.fixture
def read(tmp_path):
    def read(text, head=HEAD, name="07-shared-memory.md"):
        path = tmp_path / name
        path.write_text(head + text)
        return source.read(path)

    return read


EXERCISE = """
### Exercise 1 ★

Do it.

```exercise
x = 1
```

```hint
Think, with `x`.
```

```solution
y = x + 1
```

```solution
y + 1
```

## Next

Text.
"""


def test_cells(read):
    lesson = read("Text.\n\n```console\n$ ls\n```\n\nMore.\n```python\nx = 1\n\ny = 2\n```\n---\nA\n\n---\nB\n## C\n")
    assert lesson.title == "7 · Shared memory" and lesson.summary == "What it is about."
    assert [(cell.kind, cell.text) for cell in lesson.cells[1:]] == [
        ("first", ""),
        ("text", "Text.\n\n```console\n$ ls\n```\n\nMore."),
        ("python", "x = 1\n\ny = 2"),
        ("text", "A"),
        ("text", "B"),
        ("text", "## C"),
    ]
    assert [cell.line for cell in lesson.cells] == [1, 6, 8, 15, 21, 24, 25]


def test_a_fence_in_a_fence(read):
    lesson = read("````py\n```python\nx\n```\n````\n")
    assert [cell.kind for cell in lesson.cells] == ["text", "first", "text"]


def test_what_runs_with_gormapy_only(read):
    lesson = read(
        "```python gormapy\n%%mpi\nx\n```\n```output gormapy\n1\n```\n```output\n2\n```\n"
        "```python gormapy\ny\n```\n```python\nz\n```\n```output\n3\n```\n```error gormapy\n1\n```\n"
    )
    x, y, z, wrong = lesson.cells[2:]
    assert [cell.only for cell in (x, y, z, wrong)] == [True, True, False, False]
    assert wrong.expected == "gormapy"
    assert (x.lines, x.portable, z.portable) == (["1", "2"], ["2"], ["3"])
    shown = ["".join(cell["source"]) for cell in notebook.make(lesson, teacher=False)["cells"][2:]]
    assert shown == ["%%mpi\n# Runs with gormapy only.\nx", "# Runs with gormapy only.\ny", "z", "1"]


def test_a_lesson_that_runs_with_gormapy_only(read):
    lesson = read(f"{source.GORMAPY_ONLY}\n```python\nx\n```\n```output\n1\n```\n{EXERCISE}")
    assert all(cell.only for cell in lesson.cells if cell.kind in ("python", "exercise", "solution"))
    shown = ["".join(cell["source"]) for cell in notebook.make(lesson, teacher=True)["cells"]]
    assert "x" in shown and "<!--" not in "".join(shown[2:])


@pytest.mark.parametrize(
    "program",
    [
        "win.Put(np.ones(1), 1)",
        "win.Put([np.ones(1), MPI.DOUBLE], 1)",
        "win.Put(a + b, 1)",
        "win.Put(origin=np.array([1]), target_rank=1)",
        "win.Get(np.empty(4)[1:], 1)",
        "win.Accumulate(bytearray(4), 1)",
        "win.Get_accumulate(one, np.empty(1), 1)",
        "win.Fetch_and_op(one, np.empty(1), 1)",
        "win.Compare_and_swap(one, np.zeros(1), was, 1)",
        "for i in range(3):\n    a = np.full(1, i)\n    win.Put(a, i)\nwin.Flush_all()",
        "for i in range(3):\n    a, b = np.full(1, i), i\n    win.Put(a, b)",
        "while more():\n    a = b * 2\n    if x:\n        win.Put([a, 1, MPI.INT], 0)",
    ],
)
def test_memory_that_nobody_keeps(program):
    assert len(list(buffers.temporary(ast.parse(program)))) == 1


@pytest.mark.parametrize(
    "program",
    [
        "win.Put(a, 1)",
        "win.Put([a[2:], 1, MPI.INT], 1)",
        "win.Put(self.rows[0], 1)",
        "win.Put(None, 1)",
        "win.Fetch_and_op(one, was, 1, op=MPI.SUM)",
        "win.Compare_and_swap(one, zero, was, 0)",
        "request = win.Rput(np.ones(1), 1)",
        "comm.Isend(np.ones(1), 1)",
        "for i in range(3):\n    a = np.full(1, i)\n    win.Put(a, i)\n    win.Flush_local(i)",
        "for i in range(3):\n    win.Put(a[i:], i)",
        "print(Put(1))",
        "info.Get('accumulate_ops')",
    ],
)
def test_memory_that_is_kept(program):
    assert not list(buffers.temporary(ast.parse(program)))


def test_students_have_no_solutions(read):
    lesson = read(EXERCISE)
    student, teacher = (notebook.make(lesson, teacher=who) for who in (False, True))
    text = ["".join(cell["source"]) for cell in student["cells"]]
    assert (
        "x = 1" in text
        and "y = x + 1" not in text
        and "Do it.\n\n<details><summary>Hint</summary>\n\nThink, with `x`." in text[2]
    )
    kept = [cell for cell in teacher["cells"] if "solution" not in cell["metadata"].get("tags", [])]
    assert kept == student["cells"] and len(teacher["cells"]) == len(student["cells"]) + 3


def test_ids_stay_and_are_unique(read):
    before = notebook.make(read("```python\nx\n```\n"), teacher=False)
    after = notebook.make(read("New.\n```python\nx\n```\n```python\nx\n```\n"), teacher=False)
    assert before["cells"][-1]["id"] == after["cells"][-2]["id"]
    assert len({cell["id"] for cell in after["cells"]}) == len(after["cells"])


def test_outputs_are_those_of_the_run_and_counted_anew(read):
    lesson = read(EXERCISE + "```error ZeroDivisionError\n1 / 0\n```\n")
    ran = notebook.make(lesson, teacher=True)
    for count, cell in enumerate((c for c in ran["cells"] if c["cell_type"] == "code"), 1):
        cell["execution_count"] = count
        cell["outputs"] = [{"output_type": "error", "traceback": [f"\x1b[32mIn[{count}]\x1b[39m"]}]
    student = notebook.with_outputs(notebook.make(lesson, teacher=False), ran, teacher=False)
    code = [cell for cell in student["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3]
    assert code[2]["outputs"][0]["traceback"] == ["\x1b[32mIn[3]\x1b[39m"]
    assert notebook.without_outputs(student) == notebook.without_outputs(notebook.make(lesson, teacher=False))


@pytest.mark.parametrize(
    "text, says",
    [
        ("```python\nx = \n```\n", ":9: invalid syntax"),
        ("```python\nx = 1\n", ":8: the block that begins here has no end"),
        ("```error\n1 / 0\n```\n", "names what the failure shows"),
        ("```python now\nx\n```\n", "takes no word but 'gormapy'"),
        ("```python\nx\n```\n```output now\nx\n```\n", ":11: '```output' takes no word but 'gormapy'"),
        ("```python\nx = 1\nwin.Put(np.ones(1), 0)\n```\n", ":10: Put is given a buffer that nobody keeps"),
        ("```solution\nx\n```\n", ":8: a solution goes below an exercise"),
        ("A\n```exercise\nx\n```\n## Next\n```solution\nx\n```\n", "a solution goes below an exercise"),
        ("```exercise\nx\n```\n", ":8: above an exercise goes text"),
        ("A\n```exercise\nx\n```\n", ":9: this exercise has no solution"),
        ("A\n```exercise\nx\n```\nB\n```exercise\ny\n```\n```solution\nz\n```\n", ":9: this exercise has no solution"),
        (EXERCISE + "```python\nprint(y)\n```\n", "'y' comes from the solution of line 21, which students don't have"),
        ("<!-- first cell -->\n", "has to be there once"),
        ("```python\nx\n```\n```output\n1\n\n 2\n```\n", ""),
    ],
)
def test_what_is_refused(read, text, says):
    if not says:
        assert read(text).cells[2].lines == ["1", " 2"]
        return
    with pytest.raises(source.SourceError) as refused:
        read(text)
    assert says in str(refused.value) and "07-shared-memory.md" in str(refused.value)


@pytest.mark.parametrize(
    "head, says",
    [
        ("", "begins with its number and name: '# 7 · Name'"),
        ("# 8 · Shared memory\n\nA\n", "'# 7 · Name'"),
        ("# 7 · Shared memory\n", "a paragraph that says what the lesson is about"),
        ("```output\n1\n```\n", "an output block belongs below a cell with code"),
        ("# 7 · Shared memory\n\nA\n", "'<!-- first cell -->' has to be there once"),
    ],
)
def test_heads_that_are_refused(read, head, says):
    with pytest.raises(source.SourceError) as refused:
        read("", head=head)
    assert says in str(refused.value)


def test_a_later_cell_may_define_what_a_solution_does(read):
    read(EXERCISE + "```python\n%%mpi\ny = 2\n```\n```python\n%mpi stop\nprint(y)\n```\n")
