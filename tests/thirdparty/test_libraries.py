"""Programs that use libraries of others pass on gormapy if they pass on mpi4py over MPICH."""

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from catalogue import PROGRAMS
from conftest import ENVIRONMENT
from support import leftovers
from support.mpirun import ANY, environment, mpiexec

FOLDER = Path(__file__).parent / "programs"
PYTHON = str(ENVIRONMENT / "bin" / "python")
LIMIT = 240  # seconds, of a run
CHECKED = "checked"  # is printed by a program that has checked its results: Abort(0) is no success

pytestmark = [pytest.mark.thirdparty, pytest.mark.timeout(4 * LIMIT)]


@dataclass
class Run:
    """How a program ended."""

    passed: bool
    seconds: float
    text: str


def on_mpich(program, n, folder):
    """Run a program by mpi4py over MPICH."""
    script = [*program.module, str(FOLDER / f"{program.name}.py")]
    started = [PYTHON, *script, str(n)] if program.alone else [mpich("mpiexec"), "-n", str(n), PYTHON, *script]
    env = {**environment(), "PATH": path(mpich("")), "PYTHONPATH": ""}
    begun = time.monotonic()
    job = subprocess.Popen(
        started, env=env, cwd=folder, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    text = ""
    try:
        text, _ = job.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        text = f"stopped after {LIMIT} s"
    finally:  # an interrupt, too, ends the job
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGTERM)  # mpiexec ends its ranks
            try:
                job.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                job.communicate()
    return Run(job.returncode == 0 and CHECKED in text, time.monotonic() - begun, text)


def on_gormapy(program, n, mpirun):
    """Run a program by gormapy.run. The launcher that a program finds is gormapy's."""
    script = FOLDER / f"{program.name}.py"
    python = (PYTHON, "-m", "gormapy.run", *program.module)
    env = {"PATH": path(Path(mpiexec()).parent, mpich(""))}
    # Not clean: files of other programs, which may run for minutes beside these, would be taken for the job's.
    if program.alone:
        result = mpirun.alone(script, str(n), python=python, env=env, timeout=LIMIT, expect=ANY, clean=False)
    else:
        result = mpirun.command(n, *python, script, env=env, timeout=LIMIT).finish(expect=ANY, clean=False)
    left = leftovers.after(mpirun.jobs[-1].mark, leftovers.names())
    assert not left, f"processes were left behind: {left}\n{result}"
    return Run(result.status == 0 and CHECKED in result.stdout, result.duration, str(result))


def why(text):
    """Return the line of a job's output that says best why it has failed."""
    lines = text.strip().splitlines() or ["without a message"]
    return next(
        (line for line in reversed(lines) if re.match(r"\w*(Error|Exception|stopped after)|.*EXIT STRING", line)),
        lines[-1],
    )


def path(*folders):
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])


def mpich(name):
    return str(ENVIRONMENT / "bin" / name)


@pytest.mark.parametrize(("program", "n"), [pytest.param(p, n, id=f"{p.name}-{n}") for p in PROGRAMS for n in p.sizes])
def test_program(installed, table, mpirun, tmp_path, program, n):
    if installed[program.name]:
        table(program, n, None, None, "can't be installed")
        pytest.skip(f"can't be installed: {installed[program.name]}")
    (tmp_path / "mpich").mkdir()
    compared = on_mpich(program, n, tmp_path / "mpich")
    if not compared.passed:
        # With more ranks than cores, MPICH kills a rank now and then that has done its work.
        compared = on_mpich(program, n, tmp_path / "mpich")
    if not compared.passed:
        reason = why(compared.text)
        table(program, n, compared, None, reason[:80])
        pytest.skip(f"does not pass on MPICH: {reason}")
    try:
        found = on_gormapy(program, n, mpirun)
    except AssertionError:  # it has left something behind, or does not end
        table(program, n, compared, Run(False, LIMIT, ""))
        raise
    table(program, n, compared, found)
    assert found.passed, found.text


def test_every_program_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {program.name for program in PROGRAMS}
