"""The first minute: from pip install of the wheel to the first output of a %%mpi cell, and the files that other places read.

`make test-wheels PLACES="docker apptainer"` builds the containers of docs/containers.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
from support.mpirun import WITHOUT_COPIES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "notebook"))

from kernels import Kernel  # noqa: E402
from test_on_colab import prefix  # noqa: E402

PAGE = (ROOT / "docs" / "first-minute.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^```ipython\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]
# Much more than it takes, on a machine that runs other tests, too; the figures are printed.
BOUND = 300.0


def first_output(kernel):
    """Run the cells of the page; assert what they show."""
    load, cell = CELLS
    kernel.run(load, timeout=BOUND).check()
    out = kernel.run(cell, timeout=BOUND).check()
    assert [out.of(rank) for rank in range(4)] == [[f"rank {text}"] for text in SHOWN]


def conditions(name):
    """Return the words before the kernel's command."""
    if name == "like Colab":
        if os.getuid() != 0:
            pytest.skip("only root may have a /dev/shm of its own")
        return prefix()
    return [sys.executable, str(WITHOUT_COPIES)] if name == "copies refused" else []


def unless_impossible(words):
    """Skip where the words can't start a program here."""
    tried = subprocess.run([*words, shutil.which("true")], capture_output=True, text=True, timeout=30)
    if tried.returncode:
        pytest.skip(f"not possible here: {tried.stderr.strip() or tried.returncode}")
    return words


# What an environment has before anybody installs something; that of Colab is no empty one.
THERE = {"like Colab": ["numpy", "ipython", "ipykernel"]}


def installed(folder, wheel, env, there=()):
    """Install as the page says into a new environment; return its Python, and the seconds that pip took and computed."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for words in filter(None, [there, [f"{wheel}[notebook]", "ipykernel"]]):
        began, computed = time.monotonic(), of_children()
        done = subprocess.run([*pip, *words], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return str(python), time.monotonic() - began, of_children() - computed


def of_children():
    """Return the seconds of processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.exhaustive  # one worker of pytest-xdist makes the wheel for all of them
@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["bare Jupyter", "like Colab", "copies refused"])
def test_from_the_wheel_to_the_first_output(built, bare, tmp_path, where, capsys):
    words = unless_impossible(conditions(where))
    installed(tmp_path / "warm", built, bare)  # fills pip's cache
    python, pip, computed = installed(tmp_path / "user", built, bare, THERE.get(where, ()))
    began = time.monotonic()
    with Kernel(
        tmp_path, env={"PATH": bare["PATH"], "PYTHONPATH": ""}, load=False, prefix=words, python=python
    ) as kernel:
        started = time.monotonic() - began
        first_output(kernel)
        shown = time.monotonic() - began
    with capsys.disabled():
        later = f"kernel {started:.1f} s, %%mpi {shown - started:.1f} s: {pip + shown:.1f} s"
        print(f"\n{where}: pip {pip:.1f} s ({computed:.1f} s of processor), {later}")
    assert pip + shown < BOUND


def test_cells_of_the_page_where_copies_are_refused(tmp_path):
    """As in containers of Docker before 23."""
    words = unless_impossible(conditions("copies refused"))
    with Kernel(tmp_path, load=False, prefix=words) as kernel:
        first_output(kernel)


def test_recipes_of_the_page_are_those_of_the_folder():
    for kind, file in (("dockerfile", "Dockerfile"), ("singularity", "gormapy.def")):
        (shown,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        assert shown == (ROOT / "docs" / "containers" / file).read_text(encoding="utf-8")


def pip_words(command):
    """Return what a command of pip installs."""
    start = "pip install "
    assert command.startswith(start)
    return command[len(start) :].replace("'", "").split()


def extras_exist(requirement):
    options = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("optional-dependencies]")[2]
    declared = re.findall(r"^(\w+) = \[.*\] # ", options, re.MULTILINE)
    found = re.fullmatch(r"\.\[([\w,]+)\]", requirement)
    assert found and set(found[1].split(",")) <= set(declared), requirement


def test_the_container_of_codespaces():
    config = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert {"image", "postCreateCommand"} <= set(config)
    here, kernel = pip_words(config["postCreateCommand"])
    extras_exist(here)
    assert kernel == "ipykernel"


def test_the_files_of_binder():
    folder = ROOT / ".binder"
    lines = (folder / "requirements.txt").read_text().splitlines()
    (requirement,) = [line for line in lines if line and not line.startswith("#")]
    extras_exist(requirement)
    runtime = re.fullmatch(r"python-3\.(\d+)\n", (folder / "runtime.txt").read_text())
    assert runtime and 10 <= int(runtime[1]) <= 14


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_binder_builds(source_distribution, bare, tmp_path):
    """What repo2docker runs for .binder, in the root of a clone, runs without a compiler."""
    shutil.unpack_archive(source_distribution, tmp_path)
    (clone,) = tmp_path.glob("gormapy-*")
    shutil.copytree(ROOT / ".binder", clone / ".binder", dirs_exist_ok=True)
    venv.create(tmp_path / "user", with_pip=True)
    python = tmp_path / "user" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", ".binder/requirements.txt"]
    done = subprocess.run(pip, cwd=clone, env=bare, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    program = "import gormapy, IPython, matplotlib; print(gormapy.__file__)"
    done = subprocess.run([python, "-c", program], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=60)
    assert str(tmp_path / "user") in done.stdout, done.stderr
