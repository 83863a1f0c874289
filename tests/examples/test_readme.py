"""What README.md and the pages of docs/ show works as it is printed there."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from lessons import buffers
from support.mpirun import environment, mpiexec

from gormapy_compare import peers

ROOT = Path(__file__).resolve().parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = [README, *sorted(DOCS.glob("*.md")), DOCS / "measurements" / "README.md"]
# What is on this page needs several hosts: tests/hosts runs jobs under its launchers.
ON_HOSTS = DOCS / "cluster.md"
# The programs on this page are wrong: tests/docs runs them, and compares the reports.
CLASSES = DOCS / "checking-classes.md"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with its number on the page."""

    page: Path
    number: int
    kind: str
    code: str

    def __str__(self):
        return f"{self.page.name}-{self.number}"


def text(page):
    return page.read_text(encoding="utf-8")


def section(page, title):
    """Return the text of a page from a heading of the second level to the next one."""
    return text(page).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def without_code(page):
    """Return the text of a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)


BLOCKS = [
    Block(page, number, kind, code)
    for page in PAGES
    if page not in (ON_HOSTS, CLASSES)
    for number, (kind, code) in enumerate(
        re.findall(r"^```(\w*)\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL), start=1
    )
]
# The tests on this page are run by tests/testing.
TESTS = DOCS / "testing.md"
PROGRAMS = [block for block in BLOCKS if block.kind == "python" and block.page != TESTS]
# Programs that rank 0 runs, with the other ranks as workers.
POOLED = [block for block in PROGRAMS if "MPIPoolExecutor(" in block.code]
CELLS = [block for block in BLOCKS if block.kind == "ipython"]  # tests/notebook runs them
# Programs that import nothing of gormapy but MPI run with mpi4py, too.
GORMAPY_ONLY = re.compile(r"^import gormapy|^from gormapy import (?!MPI$)|^from gormapy\.", re.MULTILINE)
# What is on this page needs an MPI that starts more processes than it was told that there are cores.
SPAWNING = DOCS / "processes.md"
CHECKING = DOCS / "checking.md"  # its program is wrong, and tests/check compares what is found
PORTABLE = [
    block for block in PROGRAMS if not GORMAPY_ONLY.search(block.code) and block.page not in (SPAWNING, CHECKING)
]
WITH_MPI = [block for block in PROGRAMS if re.search(r"import .*\bMPI\b", block.code)]
CONSOLES = {
    tuple(line[2:].partition("#")[0].strip() for line in block.code.splitlines() if line.startswith("$ ")): block
    for block in BLOCKS
    if block.kind == "console"
}
HELLO = PROGRAMS[0].code

# Commands that take minutes or change the machine, and what runs them in their place.
ELSEWHERE = {
    "pip install .": "tests/packaging/test_install.py",
    "pip install 'WHEEL[notebook]' ipykernel": "tests/packaging/test_first_minute.py",
    **dict.fromkeys(
        (
            "pytest --mpi -n 4",
            "pytest --mpi -n 4 test_wrong.py",
            "pytest --mpi -n 2 test_deadlock.py",
            "python -m gormapy.run -m pytest --mpi -n 4",
        ),
        "tests/testing/test_the_page.py",
    ),
}
# Programs that make test does not have; make test-wheels does what the pages show.
CONTAINERS = {"docker": "tests/packaging/wheels/containers.py", "apptainer": "tests/packaging/wheels/containers.py"}
SHORTER = {"python -m gormapy.bench": "--sizes 8,4096 --budget 0.02 --sync flush"}


def test_readme_is_short():
    assert len(text(README).splitlines()) <= 150


def test_every_kind_of_block_is_run():
    """A block of a kind that no test runs would be a promise that nobody keeps."""
    recipes = {"dockerfile", "singularity"}  # tests/packaging/wheels builds them
    assert {block.kind for block in BLOCKS} == {"python", "ipython", "console", "text"} | recipes
    assert [str(block) for block in BLOCKS if block.kind == "text"] == [
        "README.md-1",  # the picture
        "checking.md-1",  # a report, which tests/check compares
    ]
    fences = sum(
        line.startswith("```") for page in PAGES if page not in (ON_HOSTS, CLASSES) for line in text(page).splitlines()
    )
    assert fences == 2 * len(BLOCKS)


@pytest.mark.parametrize("block", WITH_MPI, ids=str)
def test_program(mpirun, block, n):
    timeout = 30
    if "import numba" in block.code:
        pytest.importorskip("numba")
        timeout = 150  # each rank compiles
        if n == 7:
            pytest.skip("seven ranks on two cores compile for half a minute")
    mpirun(n, own_names(block), timeout=timeout)


def own_names(block):
    """Return a program with a published name of its own: there is one of each on a host."""
    return block.code.replace('"solver"', f'"solver-{os.getpid()}"')


@pytest.mark.exhaustive
@pytest.mark.one_node("mpiexec --check needs ranks on one host")
@pytest.mark.parametrize("block", [block for block in WITH_MPI if block.page != CHECKING], ids=str)
def test_program_is_right(mpirun, block):
    if "import numba" in block.code:
        pytest.importorskip("numba")
    said = mpirun(3, own_names(block), launcher=["--check"], timeout=60).stderr
    assert said.strip().endswith("mpiexec --check: nothing was found in this run"), said


@pytest.mark.parametrize("block", [block for block in PROGRAMS if block not in WITH_MPI + POOLED], ids=str)
def test_program_without_mpi(mpirun, block):
    mpirun.alone(block.code)


@pytest.mark.parametrize("block", POOLED, ids=str)
def test_program_on_workers(mpirun, block, n):
    (mpirun.folder / "program.py").write_text(block.code)
    mpirun.command(n, sys.executable, "-m", "gormapy.futures", "program.py").finish()


@pytest.mark.exhaustive
@pytest.mark.parametrize("block", PORTABLE, ids=str)
@pytest.mark.parametrize("mpi", peers.WHEELS)
def test_program_on_another_mpi(tmp_path, mpi, block):
    library = peers.peer(mpi)
    program = tmp_path / "program.py"
    program.write_text(block.code.replace("from gormapy import MPI", "from mpi4py import MPI"))
    for ranks in (1, 2, 4):
        command = library.ranks(ranks, str(program))
        done = subprocess.run(
            command, cwd=tmp_path, env=library.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_first_programs_run_everywhere():
    pages = [block.page.name for block in PORTABLE]
    assert pages == ["README.md"] * 2 + ["migrating-from-mpi4py.md"] + ["programs.md"] * 2 + ["recovery.md"]


def test_programs_keep_their_buffers():
    programs = {str(block): re.sub("^%.*", "pass", block.code, flags=re.MULTILINE) for block in PROGRAMS + CELLS}
    folder = ROOT / "python" / "gormapy" / "examples"
    programs |= {str(path): text(path) for path in folder.rglob("*.py")}
    for name, code in programs.items():
        assert not list(buffers.temporary(ast.parse(code))), f"{name}: a one-sided call has an array without a name"


def test_output_of_the_first_program(mpirun):
    (shown,) = (b.code for b in BLOCKS if b.kind == "console" and b.page == README and "python hello.py" in b.code)
    assert mpirun(4, HELLO).stdout.count("\n") == 4
    assert mpirun(4, HELLO).lines == shown.splitlines()[1:]


def test_cells_of_the_readme_are_those_of_their_page():
    """So that what tests/notebook runs is both."""
    shown = [block.code for block in CELLS if block.page == README]
    there = [block.code for block in CELLS if block.page == DOCS / "notebooks.md"]
    assert shown and shown == there[: len(shown)]
    for page in ("colab.md", "first-minute.md"):
        assert shown == [block.code for block in CELLS if block.page == DOCS / page]
    assert len(CELLS) == 3 * len(shown) + len(there)


@pytest.mark.parametrize("commands", CONSOLES, ids=[commands[0] for commands in CONSOLES])
def test_console(commands, tmp_path):
    """The lines of a console work, one after the other, or are run by another test."""
    (tmp_path / "hello.py").write_text(HELLO)
    for command in commands:
        for_mpi4py = "gormapy.run" in command
        script = POOLED[0].code if "gormapy.futures" in command else HELLO
        (tmp_path / "script.py").write_text(
            script.replace("from gormapy", f"from {'mpi4py' if for_mpi4py else 'gormapy'}")
        )
        run(command, tmp_path)


@cache
def targets():
    """Return the targets of the Makefile."""
    lines = re.findall(r"^([\w -]+):(?!=)", text(ROOT / "Makefile"), re.MULTILINE)
    return {target for line in lines for target in line.split()}


def run(command, folder):
    program, *arguments = shlex.split(command)
    if program == "make":
        assert {word for word in arguments if "=" not in word} <= targets(), command
        return
    if command in ELSEWHERE or program in CONTAINERS:
        assert (ROOT / (ELSEWHERE.get(command) or CONTAINERS[program])).exists()
        return
    for start, shorter in SHORTER.items():
        arguments += shlex.split(shorter) if command.startswith(start) else []
    names = {"python": [sys.executable], "mpiexec": [mpiexec(), "--timeout", "60"]}
    words = [*names[program], *(sys.executable if word == "python" else word for word in arguments)]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout or list(folder.glob("*.png")), f"{command} shows nothing"


def test_commands_exist():
    """Modules and targets that are named within the text are there."""
    named = " ".join(without_code(page) for page in PAGES)
    modules = set(re.findall(r"python -m (gormapy[\w.]*)", named)) - {"gormapy.examples.NAME"}
    for module in modules:
        path = ROOT / "python" / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    made = set(re.findall(r"`make ([\w-]+)`", named))
    assert modules and made
    assert made <= targets()


def calls(cell):
    """Return the names of calls in a cell of the table."""
    return [name for code in re.findall(r"`([^`]*)`", cell) for name in code.split()]


def anchors(page):
    """Return the anchors that GitHub gives the headings of a page."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(anchor + (f"-{found.count(anchor)}" if anchor in found else ""))
    return found


def links(page):
    """Return the links of a page that lead into the project, each as a file and an anchor."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page))
    inside = [target.partition("#") for target in targets if "://" not in target]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in inside]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, anchor in links(page):
        assert target.exists(), f"{target} is not there"
        if anchor:
            assert anchor in anchors(target), f"{target.name} has no heading #{anchor}"


def test_every_page_is_in_the_index():
    index = DOCS / "README.md"
    assert index in [target for target, _ in links(README)]
    there = {target for target, _ in links(index)}
    assert not [page.name for page in PAGES if page != index and page not in there]


def test_examples_and_measurements_exist():
    from gormapy.bench.loops import LOOPS

    for name in LOOPS:
        assert f"`{name}`" in text(DOCS / "benchmarks.md")
    shown = " ".join(
        re.findall(
            r"gormapy\.examples\.NAME` with\s((?:`\w+`(?:, )?)+)", section(DOCS / "programs.md", "Installed examples")
        )
    )
    folder = ROOT / "python/gormapy/examples"
    there = {p.stem for p in folder.glob("[a-z]*.py")} | {p.parent.name for p in folder.glob("*/__main__.py")}
    assert set(re.findall(r"`(\w+)`", shown)) == there


def test_settings_are_all_of_them():
    """The page names each setting, and no page names one that there is not."""
    command = [sys.executable, "-m", "gormapy", "info", "--config", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    table = {row["name"]: row["default"] for row in json.loads(done.stdout)["table"]}
    rows = re.findall(r"^\| (`GORMAPY_.*?) \|(.*?)\|", text(DOCS / "settings.md"), re.MULTILINE)
    shown = {name: default.strip("` ") for names, default in rows for name in calls(names)}
    assert shown == table
    named = {name for page in PAGES for name in re.findall(r"\bGORMAPY_[A-Z_]+[A-Z]\b", text(page))}
    assert named <= set(table)


def test_glossary_is_in_order():
    page = DOCS / "glossary.md"
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| .+? \| (.+?) \|$", text(page), re.MULTILINE)
    terms = [term.lower() for term, _, _ in rows]
    assert len(terms) == text(page).count("\n| **") > 100
    assert terms == sorted(set(terms))
    for term, meaning, places in rows:
        for other in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", meaning):
            assert other in terms, f"{term}: {other} is no entry"
        for place in calls(places):
            folder = ROOT if place.startswith(("python/", "pybind/")) else ROOT / "gocore"
            assert (folder / place).exists(), f"{term}: there is no {place}"
