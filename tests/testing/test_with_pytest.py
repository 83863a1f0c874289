"""pytest's own options, and other plugins, with tests on ranks."""

import importlib.util
import json
import signal
import time

import pytest

FOUR = """
import pytest
from gormapy import MPI
def test_a(comm):
    assert comm.rank == 0
def test_b(comm):
    print("b on", comm.rank)
def test_c(comm):
    assert comm.size == 7
@pytest.mark.parallel([1, 2])
def test_d():
    pass
def test_here():
    assert MPI.COMM_WORLD.size == 1
"""


def until(condition, within=60.0):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_selections(suite):
    suite.write("test_four.py", FOUR)
    suite("--mpi", "-n", 2, "-x").check(1, failed=1)
    suite("--mpi", "-n", 2, "--maxfail=2", "--keep-cache").check(1, failed=2, passed=1)
    done = suite("--mpi", "-n", 2, "--lf", "-v").check(1, failed=2)
    assert "test_four.py::test_a FAILED" in done.out and "test_four.py::test_c FAILED" in done.out
    assert set(suite("--mpi", "-n", 2, "-k", "b or here").check(passed=2).cases) == {"test_b", "test_here"}
    assert set(suite("--mpi", "-n", 2, "-m", "parallel[1]").check(passed=2).cases) == {"test_d[nprocs=1]", "test_here"}
    assert set(suite("--mpi", "-n", 2, "test_four.py::test_d").check(passed=2).cases) == {
        "test_d[nprocs=1]",
        "test_d[nprocs=2]",
    }
    done = suite("--mpi", "-n", 2, "-s", "-k", "test_b").check(passed=1)
    assert "[0] b on 0\n" in done.out and "[1] b on 1\n" in done.out, str(done)


def test_plan_of_setup(suite):
    """The tests are not run, on ranks neither."""
    suite.write("test_a.py", "def test_a(comm, tmp_path):\n    assert False\n")
    done = suite("--mpi", "-n", 2, "--setup-plan")
    assert done.status == 0 and "SETUP    F comm" in done.out and "no tests ran" in done.out, str(done)


@pytest.mark.parametrize(
    "args, size",
    [
        (("--mpi", "-n", 3), 3),
        (("--mpi", "-n", 3, "-p", "no:xdist"), 3),
        (("--mpi-ranks", 3), 3),
        (("--mpi",), 2),
        (("--mpi", "-c", "other.ini"), 4),
    ],
    ids=["n", "n without xdist", "ranks", "nothing", "setting"],
)
def test_number_of_ranks(suite, args, size):
    suite.write("other.ini", "[pytest]\nmpi_ranks = 4\n")
    suite.write("test_size.py", f"def test_size(comm):\n    assert comm.size == {size}\n")
    suite(*args).check(passed=1)


@pytest.mark.parametrize(
    "args, words",
    [
        (("--mpi", "-n", "auto"), "-n is the number of ranks"),
        (("--mpi", "-n", 0), "takes 1 or more"),
        (("-n", 2, "-p", "no:xdist"), "-n is for --mpi"),
        (("--mpi", "--pdb"), "can't ask on ranks"),
        (("--mpi", "--setup-only"), "--setup-plan shows"),
        (("--mpi", "-k", "wrong"), "numbers of ranks are whole"),
    ],
    ids=["auto", "zero", "n alone", "pdb", "setup only", "mark"],
)
def test_refused(suite, args, words):
    suite.write(
        "test_a.py", "import pytest\n@pytest.mark.mpi('four')\ndef test_wrong(): pass\ndef test_a(comm): pass\n"
    )
    done = suite(*args)
    assert done.status in (2, 4) and words in done.out, str(done)


CONFTEST = """
import pytest
@pytest.fixture(autouse=True)
def of_NAME(request):
    request.node.seen = [*getattr(request.node, "seen", []), "NAME"]
@pytest.fixture(scope="session")
def number_of_NAME(times={}):
    times["NAME"] = times.get("NAME", 0) + 1
    return times["NAME"]
"""


@pytest.mark.parametrize("args", [(), ("a", "b"), ("a/test_2.py", "b")], ids=["all", "folders", "file and folder"])
def test_conftest_of_folders(suite, args):
    """Every file of a folder has the fixtures of its conftest.py, whichever file was collected first."""
    suite.write("pytest.ini", "[pytest]\n")
    for folder, seen in (("a", ["a"]), ("a/deep", ["a", "deep"]), ("b", ["b"])):
        name = seen[-1]
        suite.write(f"{folder}/conftest.py", CONFTEST.replace("NAME", name))
        for k in (1, 2):
            test = f"def test_{name}{k}(comm, request, number_of_{name}):\n"
            test += f"    assert request.node.seen == {seen} and number_of_{name} == 1\n"
            suite.write(f"{folder}/test_{k}.py", test)
    suite("--mpi", "-n", 2, "--import-mode=importlib", *args).check(passed=3 if "a/test_2.py" in args else 6)


def test_ranks_that_do_not_start(suite):
    """They are tried twice, not for each test."""
    suite.write(
        "conftest.py",
        "import os\n"
        "from gormapy import MPI\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    open(f'try-{os.getpid()}', 'w').close()\n"
        "    raise RuntimeError('not here')\n",
    )
    suite.write("test_a.py", "".join(f"def test_{k}(comm): pass\n" for k in range(5)) + "def test_here(): pass\n")
    done = suite("--mpi", "-n", 2).check(1, error=5, passed=1)
    assert len(list(suite.folder.glob("try-*"))) == 2
    assert "RuntimeError: not here" in done.text("test_0") and "not started again" not in done.text("test_1")
    assert "RuntimeError: not here" in done.text("test_4") and "not started again" in done.text("test_4")


def test_brackets_in_a_folders_name(suite):
    """pytest takes such a name in no argument, but in the path of the folder in which it is started."""
    suite.folder = suite.folder / "suite [1]"
    suite.write("test_a.py", "def test_a(comm): assert comm.size == 2\n")
    suite("--mpi", "-n", 2, "test_a.py").check(passed=1)


def test_not_on_a_rank(suite):
    suite.write("test_a.py", "def test_a(comm): pass\n")
    done = suite("--mpi", env={"PMI_RANK": "0"})
    assert done.status == 4 and "run pytest without mpiexec" in done.out, str(done)


def test_without_mpi(suite):
    suite.write(
        "test_a.py",
        "import pytest\n"
        "@pytest.mark.mpi(4)\ndef test_four(): pass\n"
        "@pytest.mark.parallel\ndef test_parallel(): pass\n"
        "def test_comm(comm): assert comm.size == 1\n"
        "def test_other(): pass\n",
    )
    done = suite("-rs", "--strict-markers").check(passed=2, skipped=2)
    assert "runs on ranks, by pytest --mpi" in done.out
    suite.write("pytest.ini", "[pytest]\nmarkers =\n    mpi: ours\n    parallel: ours, too\n")
    suite().check(passed=4)  # marks of these names that the project has itself are not the plugin's


def test_nothing_is_imported(suite):
    """The plugin costs nothing where it is not used: neither NumPy nor MPI is imported."""
    suite.write(
        "test_a.py",
        "import sys\n"
        "def test_a():\n"
        "    there = {n for n in sys.modules if n.split('.')[0] in ('numpy', 'gormapy', 'mpi4py')}\n"
        "    assert 'gormapy.testing.plugin' in there\n"
        "    assert 'numpy' not in there and 'gormapy.MPI' not in there and 'gormapy._ext' not in there\n"
        "    assert 'gormapy.testing.controller' not in there\n",
    )
    suite.write("numpy.py", "raise ImportError('NumPy is broken here')\n")
    suite().check(passed=1)


def test_several_files(suite):
    """Fixtures of sessions and packages are made once, and end; conftest.py and imports are as pytest has them."""
    suite.write("pytest.ini", "[pytest]\naddopts = --mpi -n 2\n")
    suite.write(
        "conftest.py",
        "import pytest, os\n"
        "from gormapy import MPI\n"
        "rank = lambda: MPI.COMM_WORLD.rank\n"
        "made = []\n"
        "@pytest.fixture(scope='session')\n"
        "def session():\n"
        "    made.append('session')\n"
        "    yield made\n"
        "    open(f'ended-{rank()}', 'a').write('session ')\n"
        "@pytest.fixture(autouse=True)\n"
        "def each(request):\n"
        "    yield\n"
        "    open(f'ended-{rank()}', 'a').write(request.node.name + ' ')\n",
    )
    suite.write("helper_of_tests.py", "VALUE = 3\n")
    for name in ("test_one.py", "sub/test_two.py"):
        suite.write(
            name,
            "import helper_of_tests\n"
            "def test_a(comm, session):\n"
            "    assert session == ['session'] and helper_of_tests.VALUE == 3\n"
            "def test_b(comm, session): test_a(comm, session)\n"
            "def test_here(session): assert session == ['session']\n",
        )
    suite("test_one.py", "sub/test_two.py").check(passed=6)
    # Rank 0 and the process of pytest, which is a rank of its own, write to one file.
    assert (suite.folder / "ended-1").read_text().split() == ["test_a", "test_b", "test_a", "test_b", "session"]
    assert (suite.folder / "ended-0").read_text().split().count("session") == 2


def test_module_that_can_not_be_collected(suite):
    suite.write("test_broken.py", "raise ImportError('everywhere')\n")
    suite.write(
        "test_on_ranks.py",
        "import sys\n"
        "from gormapy import MPI\n"
        "if MPI.COMM_WORLD.rank == 1: raise ImportError('on rank 1')\n"
        "def test_a(comm): comm.Barrier()\n",
    )
    suite.write(
        "test_other_parameters.py",
        "import pytest\n"
        "from gormapy import MPI\n"
        "@pytest.mark.parametrize('x', [MPI.COMM_WORLD.rank])\n"
        "def test_b(comm, x): comm.Barrier()\n"
        "def test_c(comm): comm.Barrier()\n",
    )
    done = suite("--mpi", "-n", 2, "--continue-on-collection-errors")
    assert done.status == 1 and "ImportError: everywhere" in done.out, str(done)
    assert "rank 1:" in done.text("test_a") and "ImportError: on rank 1" in done.text("test_a"), str(done)
    assert "rank 0 still waited in communicator creation for rank 1" in done.text("test_a"), str(done)
    assert "rank 1 of 2 has collected no test of this id" in done.text("test_b[0]"), str(done)
    assert done.kind("test_c") == "passed"


def test_conftest_that_fails_on_ranks(suite):
    suite.write(
        "conftest.py", "from gormapy import MPI\nif MPI.COMM_WORLD.size > 1: raise ValueError('no ranks here')\n"
    )
    suite.write("test_a.py", "def test_a(comm): pass\ndef test_here(): pass\n")
    done = suite("--mpi", "-n", 2)
    assert done.status == 1 and "pytest did not start on 2 ranks" in done.text("test_a"), str(done)
    assert "no ranks here" in done.text("test_a") and done.kind("test_here") == "passed", str(done)


def test_ctrl_c(suite):
    suite.write(
        "test_a.py",
        "import os, time\n"
        "def test_a(comm):\n"
        "    open(f'there-{comm.rank}', 'w').close()\n"
        "    time.sleep(600) if comm.rank else comm.Barrier()\n"
        "def test_b(comm): pass\n",
    )
    process = suite.start("--mpi", "-n", 2)
    until(lambda: all((suite.folder / f"there-{rank}").exists() for rank in range(2)))
    process.send_signal(signal.SIGINT)
    done = suite.finish(process)
    assert done.status == 2 and "KeyboardInterrupt" in done.out, str(done)


def test_pytest_is_killed(suite):
    suite.write("test_a.py", "import os, signal\ndef test_a(comm):\n    comm.Barrier()\n    os.kill(os.getppid(), 0)\n"
                "    open(f'there-{comm.rank}', 'w').close()\n    comm.recv(source=comm.rank)\n")  # fmt: skip
    process = suite.start("--mpi", "-n", 2, "--mpi-deadlock", 0)
    until(lambda: all((suite.folder / f"there-{rank}").exists() for rank in range(2)))
    process.kill()
    suite.finish(process)


def test_exit_on_a_rank(suite):
    suite.write("test_a.py", "import pytest\ndef test_a(comm): pytest.exit('enough')\ndef test_b(comm): pass\n")
    done = suite("--mpi", "-n", 2)
    assert "enough (on a rank)" in done.out and "test_b" not in done.cases, str(done)


def test_workers_of_xdist(suite):
    suite.write("test_four.py", FOUR).take("passes")
    done = suite("-n", 2, "--dist", "load", "--mpi-ranks", 2).check(1, failed=2, passed=15)
    assert "rank 1:" in done.text("test_a") and "assert 1 == 0" in done.text("test_a"), str(done)
    assert "FAILED test_four.py::test_a - assert 1 == 0" in done.out


def test_mpi4py_is_gormapy(suite):
    suite.write(
        "test_a.py",
        "from mpi4py import MPI\nimport mpi4py.util.pkl5\ndef test_a(comm):\n    assert isinstance(comm, MPI.Comm)\n"
        "    assert MPI.__name__ == 'gormapy.MPI'\n",
    )
    suite("--mpi", "-n", 2).check(passed=1)


def test_parallel_assert(suite):
    suite.write(
        "test_a.py",
        "from gormapy.testing import parallel_assert\nfrom gormapy import MPI\nimport pytest\n"
        "@pytest.mark.parallel\ndef test_a():\n    assert MPI.COMM_WORLD.size == 3\n"
        "    parallel_assert(True)\n    parallel_assert(False, participating=False)\n"
        "    parallel_assert(MPI.COMM_WORLD.rank != 1, 'not one')\n",
    )
    done = suite("--mpi").check(1, failed=1)
    assert "ranks 0-2:" in done.text("test_a")
    assert "the assertion is false on ranks [1]: not one" in done.text("test_a"), str(done)


COVERED = """
def called_on(rank):
    if rank == 0:
        return "first"
    if rank == 1:
        return "second"
    return "not reached"
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_coverage(suite, workers):
    """What each rank has executed is in the report."""
    if importlib.util.find_spec("pytest_cov") is None:
        pytest.skip("pytest-cov is not installed")
    suite.write("covered.py", COVERED)
    suite.write("test_a.py", "import covered\ndef test_a(comm):\n    assert covered.called_on(comm.rank)\n")
    args = ["-n", workers, "--mpi-ranks", 2] if workers else ["--mpi", "-n", 2]
    suite(*args, "--cov=covered", "--cov-report=json", "--cov-report=term").check(passed=1)
    measured = json.loads((suite.folder / "coverage.json").read_text())["files"]["covered.py"]
    assert measured["missing_lines"] == [7], measured
    assert not list(suite.folder.glob(".coverage.*"))
