"""Calls that the stubs of mpi4py allow are allowed by gormapy's types, and give what those stubs promise: see probes.

The stubs are read when the test runs; it is skipped where they can't be fetched.
"""

import subprocess
import sys

import probes
import pytest
import typecheckers

# What is different on purpose.
DIFFERENT = {
    "__init__.__author__": "says who has written mpi4py",
    "__init__.__credits__": "says who has helped with mpi4py",
    "MPI.Distgraphcomm.Get_dist_neighbors_count": "the stub says int; mpi4py returns three values, too",
    "MPI.Intercomm.Create_from_groups": "the stub says Intracomm; mpi4py returns an Intercomm, too",
    "bench.pingpong": "returns the time of each size, and no deviation",
    "bench.futures": "is not provided",
    "futures.pool.MPICommExecutor.__enter__": "the stub says Self; mpi4py returns the executor, too",
    "util.pkl5.Request is a tuple[MPI.Request, ...]": "stands for its requests, and is no tuple of them",
    "util.pkl5.Message is a tuple[MPI.Message, ...]": "stands for its messages, and is no tuple of them",
    "util.pkl5.Request.__new__": "is not made of several requests",
    "util.pkl5.Message.__new__": "is not made of several messages",
}
# What one of the checkers finds different.
BY_CHECKER = {
    "mypy": {"futures.pool.MPICommExecutor.__exit__": "returns None always, which mypy wants not to be used"},
    "pyright": {},
}

CASES = [
    pytest.param("mypy", (3, 10), marks=pytest.mark.slow),
    pytest.param("mypy", typecheckers.NEWEST, marks=pytest.mark.slow),
    pytest.param("pyright", typecheckers.NEWEST, marks=pytest.mark.exhaustive),
]


def written(programs, folder):
    """Write programs into a folder."""
    folder.mkdir()
    for name, program in programs.items():
        (folder / name).write_text(program.text)
    return folder


def about(programs, errors):
    """Return errors by the names that they are about: {name: [text]}."""
    found = {}
    for (name, number), texts in errors.items():
        found.setdefault(programs[name].subject(number), []).extend(texts)
    return found


@pytest.mark.parametrize("checker, version", CASES)
def test_calls_of_mpi4py_are_allowed(checker, version, packages, tmp_path):
    made = probes.programs(packages.stubs, "gormapy", version)
    names = {subject for program in made.values() for subject in program.subjects}
    assert len(names) > 1000
    folder = written(made, tmp_path / "calls-of-gormapy")
    found = about(made, typecheckers.CHECKERS[checker]().check(folder, packages.gormapy, version))
    expected = {**DIFFERENT, **BY_CHECKER[checker]}
    others = {name: texts for name, texts in found.items() if name not in expected}
    assert not others, "\n".join(f"{name}: {texts[0]}" for name, texts in others.items())
    assert found.keys() == expected.keys(), "what is listed as different is not any more"


@pytest.mark.parametrize("checker, version", CASES[1:])
def test_the_calls_are_allowed_by_the_stubs_themselves(checker, version, packages, tmp_path):
    """Else the programs, and not gormapy, would be wrong."""
    made = probes.programs(packages.stubs, "mpi4py", version)
    folder = written(made, tmp_path / "calls-of-mpi4py")
    found = typecheckers.CHECKERS[checker]().check(folder, packages.mpi4py, version)
    assert not found, typecheckers.report(found)


@pytest.mark.slow
def test_a_difference_is_found(packages, tmp_path):
    """The programs call, by position and by name, and give types back."""
    stub = tmp_path / "stubs"
    (stub / "futures").mkdir(parents=True)
    (stub / "util").mkdir()
    for name in probes.MODULES:
        (stub / f"{name}.pyi").write_text("")
    (stub / "MPI.pyi").write_text(
        "from typing import Any, Final\n"
        "from .typing import BufSpec\n"
        "NOTHING: Final[int] = ...\n"
        "VERSION: Final[str] = ...\n"
        "def Finalize(now: bool = False) -> None: ...\n"
        "def Wtime() -> float: ...\n"
        "class Comm:\n"
        "    def Get_rank(self) -> str: ...\n"
        "    def Get_size(self) -> int: ...\n"
        "    def Send(self, buffer: BufSpec, dest: int, tag: int = 0) -> None: ...\n"
        "    def Recv(self, buf: BufSpec, source: int, tag: int = 0) -> None: ...\n"
        "    def bcast(self, obj: Any, root: str = '') -> Any: ...\n"
        "    rank: str\n"
        "    size: int\n"
        "class Intracomm(Comm):\n"
        "    def Split(self) -> Comm: ...\n"
        "class Win(Comm): ...\n"
    )
    made = probes.programs(stub, "gormapy", typecheckers.NEWEST)
    folder = written(made, tmp_path / "different-calls")
    found = about(made, typecheckers.Mypy().check(folder, packages.gormapy))
    wrong = "NOTHING VERSION Finalize Comm.Get_rank Comm.Send Comm.bcast Comm.rank"
    assert set(found) == {*(f"MPI.{name}" for name in wrong.split()), "MPI.Win is a Comm"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("minor", range(10, typecheckers.NEWEST[1] + 1))
def test_the_package_for_every_python(minor):
    """mpi4py's developers check its package so; the stub is compared with the module by make lint."""
    pytest.importorskip("mypy", reason="mypy is not installed: run 'make lint'")
    version = f"3.{minor}"
    cache = typecheckers.CACHE / "mypy" / f"package-{version}"
    command = [sys.executable, "-m", "mypy", "--python-version", version, "--cache-dir", cache, "-p", "gormapy"]
    done = subprocess.run(command, cwd=typecheckers.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
