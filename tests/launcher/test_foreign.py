"""Launchers of others: those that can be used give a world of all, the others an error that names them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.mpirun import ANY, arguments, environment
from support.programs import beside

program = beside(__file__)

WHO = "from gormapy import MPI\nw = MPI.COMM_WORLD\nprint('who', w.rank, w.size, flush=True)\n"

# What each launcher sets, as far as it is needed to tell it by.
FOREIGN = {
    "pmix": ({"PMIX_NAMESPACE": "prterun-host-123@1", "PMIX_RANK": "1", "PMIX_SERVER_URI41": "x"}, "PMIx"),
    "openmpi": (
        {
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_RANK": "1",
            "PMIX_NAMESPACE": "prterun-host-123@1",
            "PMIX_RANK": "1",
        },
        "Open MPI",
    ),
    "slurm": (
        {
            "SLURM_JOB_ID": "17",
            "SLURM_STEP_ID": "0",
            "SLURM_PROCID": "1",
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_NTASKS": "2",
            "SLURM_LOCALID": "1",
        },
        "srun",
    ),
}


@pytest.mark.parametrize("launcher", FOREIGN)
def test_launcher_that_cannot_be_used_is_named(mpirun, launcher):
    env, name = FOREIGN[launcher]
    result = mpirun.alone(WHO, env=env, expect=ANY)
    assert result.status != 0, f"a singleton was made of a rank of {name}\n{result}"
    assert "who" not in result.stdout
    assert name.lower() in result.stderr.lower(), str(result)


def test_settings_are_not_taken_for_a_launch(mpirun):
    result = mpirun.alone(WHO, env={"OMPI_MCA_btl": "self", "GORMAPY_EXAMPLE": "1", "SLURM_JOB_ID": "17"})
    assert result.lines == ["who 0 1"]


def test_job_that_is_gone_is_an_error(mpirun):
    env = {
        "GORMAPY_JOB_SEGMENT": "/proc/999999999/fd/5",
        "GORMAPY_JOB_RANK": "0",
        "GORMAPY_JOB_SIZE": "2",
        "GORMAPY_JOB_ID": "0" * 32,
    }
    result = mpirun.alone(WHO, env=env, expect=ANY)
    assert result.status != 0, str(result)
    assert "who" not in result.stdout


def run_hydra(mpich, source, n, tmp_path, timeout=60):
    return subprocess.run(
        [str(mpich / "mpiexec.hydra"), "-n", str(n), sys.executable, *map(str, arguments(source, tmp_path))],
        env=environment({"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def test_hydra_gives_every_rank(mpich, tmp_path):
    done = run_hydra(mpich, WHO + "assert w.allreduce(w.rank) == 6\nw.Barrier()\n", 4, tmp_path)
    assert done.returncode == 0, done
    assert sorted(done.stdout.split("\n"))[1:] == [f"who {r} 4" for r in range(4)]


@pytest.mark.parametrize("end", ["sys.exit(3)", "1 / 0", "os._exit(3)", "os.kill(os.getpid(), 9)", "w.Abort(5)"])
def test_failure_under_hydra_ends_the_job(mpich, tmp_path, end):
    source = WHO + f"import os, sys\nif w.rank == 1:\n    {end}\nw.recv(source=(w.rank + 1) % 3)\n"
    done = run_hydra(mpich, source, 3, tmp_path)
    assert done.returncode != 0, done
    if end == "1 / 0":
        assert done.stderr.count("Traceback") == 1, done.stderr


# Not os._exit: a process that ends without a word is Hydra's to notice, which it rarely misses.
@pytest.mark.parametrize("end", ["sys.exit(3)", "sys.exit('bad input')", "1 / 0", "w.Abort(3)"])
def test_failure_under_hydra_ends_ranks_that_compute(mpich, tmp_path, end):
    source = WHO + f"import os, sys, time\nw.Barrier()\nif w.rank == 1:\n    {end}\ntime.sleep(20)\n"
    done = run_hydra(mpich, source, 3, tmp_path)
    if end in ("sys.exit(3)", "w.Abort(3)"):
        assert done.returncode == 3, done
    assert done.returncode != 0, done
    said = {"1 / 0": "ZeroDivisionError", "sys.exit('bad input')": "bad input"}
    assert said.get(end, "") in done.stderr, done


def test_clean_end_under_hydra_waits_for_the_others(mpich, tmp_path):
    done = run_hydra(mpich, program.clean_end_waits_for_the_others, 3, tmp_path)
    assert done.returncode == 0, done
    assert sorted(done.stdout.split()) == ["0", "1", "2", "done", "done", "done"], done


def test_hydra_several_programs(mpich, tmp_path):
    path = tmp_path / "program.py"
    path.write_text("from gormapy import MPI; w = MPI.COMM_WORLD; print(w.rank, w.size, w.Get_attr(MPI.APPNUM))\n")
    command = [
        str(mpich / "mpiexec.hydra"),
        "-n",
        "1",
        sys.executable,
        str(path),
        ":",
        "-n",
        "2",
        sys.executable,
        str(path),
    ]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == ["0 3 0", "1 3 1", "2 3 1"]


def test_hydra_one_sided(mpich, tmp_path):
    done = run_hydra(mpich, program.one_sided, 3, tmp_path)
    assert done.returncode == 0, done
