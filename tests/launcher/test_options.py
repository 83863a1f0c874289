"""What the options of mpiexec do to programs that use MPI."""

import os
import re
import subprocess
import sys

import pytest
from support.mpirun import environment, mpiexec, program
from support.programs import beside

programs = beside(__file__)

WHO = """
    import sys
    from rankside import *
    assert world.allreduce(1) == size
    say("who", rank, size, world.Get_attr(MPI.APPNUM), *sys.argv[1:])
"""


def test_several_programs_are_one_job(mpirun):
    first = program(WHO, mpirun.folder)
    second = program("from rankside import *\nworld.allreduce(1)\nsay('other', rank, size)\n", mpirun.folder)
    command = [sys.executable, first, "a", ":", "-n", "2", sys.executable, second, ":", sys.executable, first, "b"]
    result = mpirun.command(2, *command).finish()
    assert result.lines == ["other 2 5", "other 3 5", "who 0 5 0 a", "who 1 5 0 a", "who 4 5 2 b"]


@pytest.mark.one_node("several nodes meet when all ranks have begun MPI")
def test_appnum_of_a_child_is_its_own(mpirun):
    child = "from gormapy import MPI; print('child', MPI.COMM_WORLD.size, MPI.COMM_WORLD.Get_attr(MPI.APPNUM))"
    source = f"""
        import subprocess, sys
        from rankside import *
        if rank == 1:
            subprocess.run([sys.executable, "-c", {child!r}], check=True)
    """
    result = mpirun.command(1, "true", ":", sys.executable, program(source, mpirun.folder)).finish()
    assert result.lines == ["child 1 0"]


def test_mpich_programs_know_their_number(mpirun, mpich):
    python = str(mpich / "python")
    code = "from mpi4py import MPI; w = MPI.COMM_WORLD; print('who', w.rank, w.size, w.Get_attr(MPI.APPNUM))"
    result = mpirun.command(1, python, "-c", code, ":", "-n", "2", python, "-c", code).finish()
    assert result.lines == ["who 0 3 0", "who 1 3 1", "who 2 3 1"]


def test_failure_of_one_program_ends_all(mpirun):
    waits = program("from rankside import *\nworld.recv(source=1)\n", mpirun.folder)
    fails = program("from rankside import *\nworld.Barrier\nraise SystemExit(6)\n", mpirun.folder)
    result = mpirun.command(1, sys.executable, waits, ":", sys.executable, fails).finish(expect=6)
    assert "mpiexec: rank 1 " in result.stderr


@pytest.mark.parametrize("factor", [1, 3])
def test_bind_to_core(mpirun, factor):
    n = factor * len(os.sched_getaffinity(0))
    result = mpirun(n, programs.bind_to_core, launcher=["-bind-to", "core", "-v"], timeout=60)
    sets, cpus = map(int, re.fullmatch(r"sets (\d+) cpus (\d+)\n", result.stdout).groups())
    assert cpus == len(os.sched_getaffinity(0)), "all cores are used"
    assert sets <= cpus
    assert (f"{n} ranks share " in result.stderr) == (n > sets)


def test_output_dir(mpirun, tmp_path):
    folder = tmp_path / "a" / "b"
    result = mpirun(2, programs.output_dir, launcher=["--output-dir", str(folder)], expect=1)
    assert result.stdout == ""
    assert re.fullmatch(rf"mpiexec: rank 1 .*; see {folder}/rank\.1\.err\n", result.stderr), str(result)
    assert (folder / "rank.0.out").read_text() == "out 0\n"
    assert (folder / "rank.1.out").read_text() == "out 1\n"
    assert "ValueError: a mistake" in (folder / "rank.1.err").read_text()


def test_stacks_say_whose_they_are(mpirun):
    source = """
        from rankside import *
        def waits_for_nothing():
            world.recv(source=(rank + 1) % size)
        waits_for_nothing()
    """
    result = mpirun.until_timeout(3, source, says={rf"(?m)^\[{r}\] .*in waits_for_nothing$": 1 for r in range(3)})
    for r in range(3):
        assert re.search(rf"^\[{r}\] .*in waits_for_nothing$", result.stderr, re.MULTILINE), str(result)
    stacks = [line for line in result.stderr.splitlines() if "waits_for_nothing" in line]
    assert all(re.match(r"\[[012]\] ", line) for line in stacks)


def test_summary(mpirun):
    result = mpirun(2, programs.summary, launcher=["-v"])
    rows = re.findall(r"^mpiexec: +(\d+)  exit status 0 +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", result.stderr, re.M)
    assert [row[0] for row in rows] == ["0", "1"], str(result)
    wall, user, system, memory = map(float, rows[1][1:])
    assert user + system >= 0.3
    assert wall >= 0.3
    assert memory > 100 > float(rows[0][4])


USE_INSTEAD = {
    "--hostfile hosts": "no such file",
    "-hosts a,b": "pip install mpich",
    "-H elsewhere:2": "pip install mpich",
    "-n 4 -ppn 2": "several hosts",
    "--bind-to socket": "none and core",
    "--output-filename x": "--output-dir",
    "-configfile x": '":"',
    "-np4": "write -np 4",
}


@pytest.mark.parametrize("options", USE_INSTEAD)
def test_what_is_not_served_names_what_is(options):
    command = [mpiexec(), *options.split(), "true"]
    done = subprocess.run(
        command, env=environment({"PATH": "/nowhere", "VIRTUAL_ENV": None}), capture_output=True, text=True, timeout=10
    )
    assert done.returncode == 2, done
    assert re.fullmatch(r"mpiexec: .*\n", done.stderr), done
    assert USE_INSTEAD[options] in done.stderr, done


def test_help_names_every_option_that_has_an_effect():
    text = subprocess.run([mpiexec(), "--help"], capture_output=True, text=True, timeout=10, check=True).stdout
    for option in "-n -np -env -genv -x -wdir -l --output-dir --bind-to --timeout -v --merge-stderr-to-stdout".split():
        assert re.search(rf"(?m)^ .*{option}\b", text), option
    assert max(map(len, text.splitlines())) <= 84
