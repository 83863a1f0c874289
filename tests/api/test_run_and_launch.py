"""gormapy.run resolves mpi4py; gormapy.launch starts programs."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.mpirun import environment

RUN = (sys.executable, "-m", "gormapy.run")


def test_unmodified_program(mpirun, n):
    mpirun(
        n,
        Path(__file__).parent / "programs" / "unmodified.py",
        "a",
        "-b",
        python=RUN,
    )


def test_modules_and_code(mpirun, tmp_path):
    (tmp_path / "program_module.py").write_text(
        "import sys\nfrom mpi4py import MPI\nprint(MPI.COMM_WORLD.size, __name__, sys.argv[1:])\n"
    )
    command = [*RUN, "-m", "program_module", "x"]
    result = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert result.stdout == "1 __main__ ['x']\n", str(result)
    command = [*RUN, "-c", "import sys; from mpi4py import MPI; print(MPI.COMM_WORLD.rank, sys.argv)", "y"]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert result.stdout == "0 ['-c', 'y']\n", str(result)


def test_traceback_begins_in_the_program(mpirun):
    result = mpirun.alone("import mpi4py.MPI\nraise ValueError('of the program')", python=RUN, expect=1)
    assert "ValueError: of the program" in result.stderr
    assert "run.py" not in result.stderr and "runpy" not in result.stderr
    result = mpirun.alone("import mpi4py.nosuch", python=RUN, expect=1)
    assert "No module named 'mpi4py.nosuch'" in result.stderr
    mpirun.alone("import importlib.util; assert importlib.util.find_spec('mpi4py.nosuch') is None", python=RUN)


def test_processes_that_a_program_starts(mpirun, tmp_path):
    """They get gormapy for mpi4py, too, also from a source tree."""
    started = "import mpi4py, gormapy.MPI; from mpi4py import MPI; assert MPI is gormapy.MPI; print(mpi4py.__path__)"
    source = f"""
        import subprocess, sys
        import mpi4py
        code = {started!r}
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert out.strip() == str(list(mpi4py.__path__)), out
        out = subprocess.run([sys.executable, "-m", "mpi4py", "-c", code], capture_output=True, text=True, check=True).stdout
        assert out.strip() == str(list(mpi4py.__path__)), out
    """
    mpirun.alone(source, python=RUN)


def test_exit_status(mpirun):
    mpirun.alone("import sys; sys.exit(4)", python=RUN, expect=4)
    mpirun(2, "from mpi4py import MPI; import sys; sys.exit(5 * MPI.COMM_WORLD.rank)", python=RUN, expect=5)


def test_what_cannot_be_run():
    for args, status, text in [
        (["nothing_here.py"], 2, "cannot read nothing_here.py"),
        ([], 2, "usage"),
        (["-x"], 1, "unknown option -x"),
        (["-m"], 1, "-m needs"),
    ]:
        result = subprocess.run([*RUN, *args], env=environment(), capture_output=True, text=True, timeout=60)
        assert result.returncode == status and text in result.stderr, str(result)


def test_launch_starts_python_files(tmp_path):
    program = tmp_path / "hello.py"
    program.write_text("from gormapy import MPI\nprint(MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)\n")
    command = [sys.executable, "-m", "gormapy.launch", "-n", "3", "--timeout", "60", str(program)]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=90)
    assert sorted(result.stdout.splitlines()) == ["0 3", "1 3", "2 3"], str(result)


def test_interpreter_is_put_before_python_files(tmp_path):
    program = tmp_path / "args.py"
    program.write_text("import sys\nprint(sys.executable, *sys.argv[1:])\n")
    for given, lines in [
        (f"--timeout=60 {program} b.py", [f"{sys.executable} b.py"]),
        (f"-x A --mca b c.py echo {program}", [str(program)]),
        (f"-n 1 -x A {program} 1 : echo 2 : -wdir / {program} 3", [f"{sys.executable} 1", f"{sys.executable} 3", "2"]),
    ]:
        command = [sys.executable, "-m", "gormapy.launch", *given.split()]
        result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=90)
        assert sorted(result.stdout.splitlines()) == lines, str(result)


@pytest.mark.parametrize(
    ("module", "args", "said"),
    [
        ("mpi4py", ("--version",), "with the names of mpi4py 4.1.2"),
        ("mpi4py", ("-c", "from mpi4py import MPI; print('size', MPI.COMM_WORLD.size)"), "size 1"),
        ("mpi4py.run", ("-c", "from mpi4py import MPI; print('size', MPI.COMM_WORLD.size)"), "size 1"),
        (
            "mpi4py.futures",
            ("-c", "from mpi4py.futures import MPIPoolExecutor as E; print(E().submit(abs, -3).result())"),
            "3",
        ),
        ("mpi4py.bench", ("helloworld",), "Hello, World! I am process 0 of 1"),
        ("mpi4py.bench", ("ringtest", "-l", "10", "-n", "1000"), "time for 10 loops"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_programs_of_mpi4py(module, args, said):
    """In a process that a program under gormapy.run has started."""
    code = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-m', {module!r}, *{args!r}]).returncode)"
    done = subprocess.run([*RUN, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and said in done.stdout, done


def test_bench_of_mpi4py(mpirun):
    result = mpirun.command(2, *RUN, "-m", "mpi4py.bench", "pingpong", "-n", "8", "-l", "10").finish()
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["#", "1", "2", "4", "8"], result


def test_python_without_docstrings(mpirun):
    source = "from gormapy import MPI, futures, slots, trace, bench; print(MPI.COMM_WORLD.allreduce(1))"
    assert mpirun(2, source, python=(sys.executable, "-OO")).lines == ["2", "2"]
