"""The lessons' notebooks: they run, what they show is checked, and nothing of the machine is kept."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lessons import execute, notebook, source

HEAD = "# 7 · Shared memory\n\nWhat it is about.\n\n"


def run(tmp_path, monkeypatch, text):
    """Execute a lesson whose first cell is empty."""
    monkeypatch.setattr(notebook, "FIRST_CELL", "import os, socket, sys")
    path = tmp_path / "07-x.md"
    path.write_text(HEAD + "<!-- first cell -->\n" + text)
    lesson = source.read(path)
    return execute.run(lesson, notebook.make(lesson, teacher=True))


def test_outputs(tmp_path, monkeypatch):
    done = run(
        tmp_path,
        monkeypatch,
        "```python\nprint('one')\nprint('two')\n2 + 1\n```\n```output\none\n3\n```\n```error integer division\n1 // 0\n```\n"
        "```python\nprint(socket.gethostname(), os.getcwd(), sys.prefix)\n```\n",
    )
    printed, failed, names = (cell["outputs"] for cell in done.notebook["cells"][2:])
    assert printed[0]["text"] == ["one\n", "two\n"] and printed[1]["data"]["text/plain"] == ["3"]
    assert failed[0]["ename"] == "ZeroDivisionError"
    assert names[0]["text"] == ["laptop  …\n"]
    assert 0 < done.slowest < done.seconds


@pytest.mark.parametrize(
    "text, says",
    [
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nprint(6 * 7)\n1 / 0\n```\n", "\n42\n"),
        ("```error ValueError\n1 / 0\n```\n", "should fail with 'ValueError'"),
        ("```error ValueError\n1\n```\n", "should fail with 'ValueError'"),
        ("```python\nprint(1)\n```\n```output\n2\n```\n", "should write '2'"),
        ("```python\nimport traceback\ntry:\n    1 / 0\nexcept ValueError: pass\n```\n", "ZeroDivisionError"),
        ("```python\nprint(('x' * 99 + chr(10)) * 20_000)\n```\n", "at most 1,500,000 are kept"),
        ("```python\nprint('/tmp/' + 'lesson-')\n```\n", "an output has '/tmp/lesson-' in it"),
    ],
)
def test_what_fails(tmp_path, monkeypatch, text, says):
    with pytest.raises(execute.LessonError) as failed:
        run(tmp_path, monkeypatch, text)
    assert says in str(failed.value)


def test_a_cell_that_hangs_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "CELL_LIMIT", 2)
    with pytest.raises(execute.LessonError, match="took longer than 2 s"):
        run(tmp_path, monkeypatch, "```python\nimport time\ntime.sleep(600)\n```\n")


def test_a_process_that_lives_on_is_noticed_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "GRACE", 0.5)
    pid = tmp_path / "pid"
    code = (
        "import pathlib, subprocess\nsleep = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(sleep.pid));"
    )
    try:
        with pytest.raises(execute.LessonError, match=r"live on: .*sleep 60"):
            run(tmp_path, monkeypatch, f"```python\n{code}\n```\n")
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_the_notebooks_are_those_of_the_sources():
    tools = Path(execute.__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", "lessons", "check"], cwd=tools, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
