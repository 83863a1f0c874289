"""Programs in the style of those of mpi4py are accepted by type checkers in their strictest mode, and run.

They are accepted as programs of mpi4py, too, with its own stubs. Of wrong calls, a checker reports each.
"""

import re
from pathlib import Path

import pytest
import typecheckers

PROGRAMS = Path(__file__).parent / "programs"
WRONG = "wrong_calls.py"
RUN = sorted(path.name for path in PROGRAMS.glob("*.py") if path.name != WRONG)
CHECKERS = [
    pytest.param("mypy", marks=pytest.mark.slow),
    pytest.param("pyright", marks=pytest.mark.exhaustive),
]


@pytest.fixture(params=["gormapy", "mpi4py"])
def package(request):
    """The package that programs import."""
    return request.param


def as_programs_of(package, folder):
    """Write the programs, with the name of another package, into a folder."""
    folder.mkdir()
    for path in PROGRAMS.glob("*.py"):
        (folder / path.name).write_text(re.sub(r"\bgormapy\b", package, path.read_text(encoding="utf-8")))
    return folder


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_and_wrong_calls(checker, package, packages, tmp_path):
    folder = as_programs_of(package, tmp_path / f"programs-of-{package}")
    found = typecheckers.CHECKERS[checker]().check(folder, getattr(packages, package))
    lines = (PROGRAMS / WRONG).read_text(encoding="utf-8").splitlines()
    wrong = {(WRONG, number) for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 40
    right = {place: texts for place, texts in found.items() if place not in wrong}
    assert not right, typecheckers.report(right)
    accepted = wrong - found.keys()
    assert not accepted, "\n".join(lines[number - 1] for _, number in sorted(accepted))


@pytest.mark.slow
@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 12), (3, 13)], ids=str)
def test_for_every_python(version, packages, tmp_path):
    folder = as_programs_of("gormapy", tmp_path / "programs-of-gormapy")
    (folder / WRONG).unlink()
    found = typecheckers.Mypy().check(folder, packages.gormapy, version)
    assert not found, typecheckers.report(found)


@pytest.mark.parametrize("program", RUN)
def test_they_run(mpirun, program):
    mpirun(2, PROGRAMS / program, timeout=60)
