"""What README.md shows works as it is printed there."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lessons import buffers
from support.mpirun import environment, mpiexec

from gormapy.bench import peers

README = Path(__file__).resolve().parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PROGRAMS = [code for kind, code in BLOCKS if kind == "python"]  # cells are "ipython": tests/notebook
# The others use modules of gormapy.
PORTABLE = [i for i, code in enumerate(PROGRAMS) if not re.search(r"^import gormapy|MPI, ", code, re.MULTILINE)]
CONSOLES = [
    [line[2:].partition("#")[0].strip() for line in code.splitlines() if line.startswith("$ ")]
    for kind, code in BLOCKS
    if kind == "console"
]

# Commands that take minutes or change the machine, and what runs them in their place.
ELSEWHERE = {"pip install .": "tests/packaging/test_install.py"}
SHORTER = {"python -m gormapy.bench": "--sizes 8,4096 --budget 0.02 --sync flush"}


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(mpirun, number, n):
    mpirun(n, PROGRAMS[number])


@pytest.mark.parametrize("number", PORTABLE)
@pytest.mark.parametrize("mpi", peers.WHEELS)
def test_program_on_another_mpi(tmp_path, mpi, number):
    library = peers.peer(mpi)
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[number].replace("from gormapy import MPI", "from mpi4py import MPI"))
    for ranks in (1, 2, 4):
        command = library.ranks(ranks, str(program))
        done = subprocess.run(
            command, cwd=tmp_path, env=library.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_most_programs_run_everywhere():
    assert len(PORTABLE) == 4


def test_programs_keep_their_buffers():
    cells = [re.sub("^%.*", "pass", code, flags=re.MULTILINE) for kind, code in BLOCKS if kind == "ipython"]
    programs = {f"program {i} of README.md": code for i, code in enumerate(PROGRAMS + cells)}
    folder = README.parent / "python" / "gormapy" / "examples"
    programs |= {str(path): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    for name, code in programs.items():
        assert not list(buffers.temporary(ast.parse(code))), f"{name}: a one-sided call has an array without a name"


def test_output_of_the_first_program(mpirun):
    (shown,) = (code for kind, code in BLOCKS if kind == "console" and "mpiexec -n 4 python hello.py" in code)
    assert mpirun(4, PROGRAMS[0]).stdout.count("\n") == 4
    assert mpirun(4, PROGRAMS[0]).lines == shown.splitlines()[1:]


@pytest.mark.parametrize("commands", CONSOLES, ids=[commands[0] for commands in CONSOLES])
def test_console(commands, tmp_path):
    """The lines of a console work, one after the other, or are run by another test."""
    (tmp_path / "hello.py").write_text(PROGRAMS[0])
    for command in commands:
        for_mpi4py = "gormapy.run" in command
        (tmp_path / "script.py").write_text(
            PROGRAMS[0].replace("from gormapy", f"from {'mpi4py' if for_mpi4py else 'gormapy'}")
        )
        run(command, tmp_path)


def run(command, folder):
    program, *arguments = shlex.split(command)
    if program == "make":
        makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^([\w-]+ )*{target}\b.*:", makefile, re.MULTILINE) for target in arguments)
        return
    if command in ELSEWHERE:
        assert (README.parent / ELSEWHERE[command]).exists()
        return
    for start, shorter in SHORTER.items():
        arguments += shlex.split(shorter) if command.startswith(start) else []
    names = {"python": [sys.executable], "mpiexec": [mpiexec(), "--timeout", "60"]}
    words = [*names[program], *(sys.executable if word == "python" else word for word in arguments)]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout or list(folder.glob("*.png")), f"{command} shows nothing"


def test_missing_calls_are_missing(mpirun):
    """The right-hand column of the table names calls that raise NotImplementedError."""
    rows = re.findall(r"^\| (windows|synchronisation|collectives|communicators) \| (.*?) \|(.*)\|$", TEXT, re.MULTILINE)
    assert len(rows) == 4
    there, missing = ([], [])
    for what, works, does_not in rows:
        owner = "MPI.Intracomm" if what in ("collectives", "communicators") else "MPI.Win"
        there += [f"{owner}.{name}" for name in calls(works)]
        missing += [f"{owner}.{name}" for name in calls(does_not)]
    assert len(there) > 25 and missing
    mpirun(
        1,
        f"""
        from gormapy import MPI
        from gormapy.MPI import missing
        def absent(call):
            _, owner, name = call.split(".")
            first = next(cls for cls in getattr(MPI, owner).__mro__ if name in vars(cls))
            return first.__module__ == missing.__name__
        assert not [c for c in {there} if absent(c)], [c for c in {there} if absent(c)]
        assert not [c for c in {missing} if not absent(c)], [c for c in {missing} if not absent(c)]
        """,
    )


def calls(cell):
    """Return the names of calls in a cell of the table."""
    return [name for code in re.findall(r"`([^`]*)`", cell) for name in code.split()]


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        if "://" not in target:
            assert (README.parent / target).exists(), target


def test_examples_and_measurements_exist():
    from gormapy.bench.loops import LOOPS

    for name in LOOPS:
        assert f"`{name}`" in TEXT
    shown = " ".join(re.findall(r"gormapy\.examples\.NAME` with\s((?:`\w+`(?:, )?)+)", TEXT))
    folder = README.parent / "python/gormapy/examples"
    there = {p.stem for p in folder.glob("[a-z]*.py")} | {p.parent.name for p in folder.glob("*/__main__.py")}
    assert set(re.findall(r"`(\w+)`", shown)) == there
