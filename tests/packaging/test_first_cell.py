"""The first cell of a lesson, on a machine where there is only Jupyter: it installs gormapy, and the lesson runs."""

import json
import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest
from lessons import execute, notebook, source

ROOT = Path(__file__).resolve().parents[2]
LESSON = ROOT / "notebooks" / "source" / "00-start-here.md"

# One worker of pytest-xdist makes the wheel for all of them.
pytestmark = pytest.mark.exhaustive


def first_cell(where):
    """Return the first cell with another place to install from."""
    text, count = re.subn(
        r'^GORMAPY_FROM = ".*"$', f'GORMAPY_FROM = "{where}"', notebook.FIRST_CELL, flags=re.MULTILINE
    )
    assert count == 1
    return text


def only_sh(folder):
    """Return environment variables by which nothing is found but the shell, which `!` of a notebook needs."""
    folder.mkdir()
    (folder / "sh").symlink_to(shutil.which("sh"))
    return {"PATH": str(folder), "SHELL": "sh", "PYTHONPATH": ""}


@pytest.fixture(scope="module")
def bare_kernel(bare, tmp_path_factory):
    """A new environment with a kernel and nothing else; what to pass for its environment variables."""
    folder = tmp_path_factory.mktemp("jupyter")
    venv.create(folder / "user", with_pip=True)
    python = folder / "user" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "ipykernel==7.4.0"]
    done = subprocess.run(pip, env=bare, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    spec = folder / "share" / "kernels" / "bare"
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "bare", "language": "python"}))
    return {"JUPYTER_PATH": str(folder / "share"), **only_sh(folder / "bin")}


def run(bare_kernel, monkeypatch, lesson):
    monkeypatch.setenv("JUPYTER_PATH", bare_kernel["JUPYTER_PATH"])
    monkeypatch.setattr(execute, "CELL_LIMIT", 240)  # pip installs NumPy and matplotlib
    return execute.run(lesson, notebook.make(lesson, teacher=True), kernel="bare", env=bare_kernel).notebook


@pytest.mark.timeout(600)
def test_it_says_what_to_do_when_it_fails(bare_kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "FIRST_CELL", first_cell(tmp_path / "nowhere.whl"))
    path = tmp_path / "07-x.md"
    path.write_text("# 7 · X\n\nAbout X.\n\n<!-- first cell -->\n")
    with pytest.raises(execute.LessonError) as failed:
        run(bare_kernel, monkeypatch, source.read(path))
    assert "nowhere.whl" in str(failed.value)
    assert "set GORMAPY_FROM to a wheel or a repository and run this cell again" in str(failed.value)


@pytest.mark.timeout(600)
def test_it_installs_and_the_lesson_runs(built, bare_kernel, monkeypatch):
    """No compiler and no launcher is on PATH."""
    monkeypatch.setattr(notebook, "FIRST_CELL", first_cell(built))
    done = run(bare_kernel, monkeypatch, source.read(LESSON))
    first = next(cell for cell in done["cells"] if cell["cell_type"] == "code")
    assert first["outputs"] == []  # quiet
    assert os.listdir(bare_kernel["PATH"]) == ["sh"]

    # A second time there is nothing to do, not even for a pip that could do nothing.
    monkeypatch.setattr(notebook, "FIRST_CELL", first_cell("/nowhere.whl"))
    again = notebook.make(source.read(LESSON), teacher=False)
    again["cells"] = again["cells"][:4]
    ran = execute.run(source.read(LESSON), again, kernel="bare", env=bare_kernel).notebook
    assert "I am rank 3 of 4." in notebook.texts(ran["cells"][3]["outputs"])
