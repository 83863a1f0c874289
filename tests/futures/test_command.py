"""``python -m gormapy.futures``: what it runs, and what workers import."""

import sys
import zipfile

import pytest
from support.mpirun import ANY

FUTURES = (sys.executable, "-m", "gormapy.futures")
PROGRAM = """
import sys
from gormapy.futures import MPIPoolExecutor

LIMIT = len(sys.argv)

class Pair:
    def __init__(self, x):
        self.both = x, x

def pair(x):
    return Pair(x + LIMIT)

def name():
    return __name__

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        found = list(executor.map(pair, range(10)))
        assert [p.both for p in found] == [(x + 3, x + 3) for x in range(10)] and type(found[0]) is Pair
        print(executor.submit(name).result(), sys.argv[1:])
"""


def test_script(mpirun, tmp_path, n):
    (tmp_path / "program.py").write_text("import helper\n" + PROGRAM)
    (tmp_path / "helper.py").write_text("")
    result = mpirun.command(n, *FUTURES, tmp_path / "program.py", "one", "two", cwd="/").finish()
    assert result.stdout == f"{'__main__' if n == 1 else '__worker__'} ['one', 'two']\n", result


def test_module(mpirun, tmp_path):
    package = tmp_path / "work"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("from . import part\n" + PROGRAM)
    (package / "part.py").write_text("")
    for module in ("work", "work.__main__"):
        result = mpirun.command(3, *FUTURES, "-m", module, "one", "two", cwd=tmp_path).finish()
        assert result.stdout == "__worker__ ['one', 'two']\n", result


def test_code_and_standard_input(mpirun):
    result = mpirun.command(3, *FUTURES, "-c", PROGRAM, "one", "two").finish()
    assert result.stdout == "__worker__ ['one', 'two']\n", result
    result = mpirun.command(3, *FUTURES, "-", "one", "two", stdin=PROGRAM).finish()
    assert result.stdout == "__worker__ ['one', 'two']\n", result


def test_archive_and_folder(mpirun, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "__main__.py").write_text("import helper\n" + PROGRAM)
    (folder / "helper.py").write_text("")
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        archive.writestr("__main__.py", "import helper\n" + PROGRAM)
        archive.writestr("helper.py", "")
    for path in (folder, tmp_path / "program.zip"):
        result = mpirun.command(3, *FUTURES, path, "one", "two").finish()
        assert result.stdout == "__worker__ ['one', 'two']\n", result


@pytest.mark.parametrize("names", ["mpi4py", "gormapy"])
def test_under_run(mpirun, tmp_path, names):
    (tmp_path / "program.py").write_text(PROGRAM.replace("gormapy", "mpi4py"))
    command = (sys.executable, "-m", "gormapy.run", "-m", f"{names}.futures", "program.py", "one", "two")
    result = mpirun.command(3, *command).finish()
    assert result.stdout == "__worker__ ['one', 'two']\n", result


def test_script_without_guard(mpirun, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace('if __name__ == "__main__":', "if True:"))
    result = mpirun.command(3, *FUTURES, "program.py", "one", "two").finish(expect=1)
    assert "BrokenExecutor" in result.stderr and "put what is for rank 0 only below" in result.stderr, result


def test_script_that_workers_can_not_import(mpirun, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM + "else:\n    raise LookupError('not here')\n")
    result = mpirun.command(2, *FUTURES, "program.py", "one", "two").finish(expect=1)
    assert "the start of a worker has failed: LookupError: not here" in result.stderr, result


def test_without_the_main_module(mpirun, tmp_path):
    (tmp_path / "program.py").write_text(
        "from gormapy.futures import MPIPoolExecutor\n"
        "if __name__ != '__main__': raise LookupError('it was imported')\n"
        "print(MPIPoolExecutor(main=False).submit(abs, -5).result())\n"
    )
    assert mpirun.command(2, *FUTURES, "program.py").finish().stdout == "5\n"


@pytest.mark.parametrize("args", [[], ["--what"], ["-m"], ["-c"], ["no_such_script.py"]])
def test_wrong_commands_are_explained(mpirun, args):
    result = mpirun.command(2, *FUTURES, *args).finish(expect=ANY)
    assert result.status != 0 and "gormapy.futures" in result.stderr and "Traceback" not in result.stderr, result


def test_help(mpirun):
    result = mpirun.command(1, *FUTURES, "--help").finish()
    assert "usage: python -m gormapy.futures" in result.stdout
