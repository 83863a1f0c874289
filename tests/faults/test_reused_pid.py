"""The number of a process that has ended is given to another one: nothing of that one is touched.

The kernel takes the numbers in turn, so a job has a PID namespace of its own, in
which the next number can be chosen.
"""

import shutil
import subprocess
import sys

import pytest
from support import mpirun as support
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive


@pytest.fixture
def numbered(mpirun):
    """Run jobs in a PID namespace of their own."""
    command = [shutil.which("unshare") or "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try:
        tried = subprocess.run([*command, "sh", "-c", "echo 99 > /proc/sys/kernel/ns_last_pid"], capture_output=True)
    except OSError as error:
        pytest.skip(f"needs unshare: {error}")
    if tried.returncode:
        pytest.skip(f"needs a PID namespace of its own: {tried.stderr.decode()}")

    def run(*line):
        job = support.Job([*command, *line], support.environment(), mpirun.folder, timeout=30)
        mpirun.jobs.append(job)
        return job.finish()

    return run


def test_put_and_get_after_the_targets_end(numbered, tmp_path):
    """Of a rank that the launcher has started the number stays taken."""
    result = numbered(
        support.mpiexec(),
        "-n",
        2,
        "--timeout",
        20,
        sys.executable,
        *support.arguments(program.origin, tmp_path, [False]),
    )
    assert "kept" in result.lines, str(result)


def test_put_and_get_after_the_end_of_a_target_in_a_wrapper(numbered, tmp_path):
    """A shell gives the number of its child away."""
    wrapper = ("sh", "-c", '"$0" "$@"; status=$?; sleep 2; exit $status', sys.executable)
    result = numbered(
        support.mpiexec(), "-n", 2, "--timeout", 20, *wrapper, *support.arguments(program.origin, tmp_path, [True])
    )
    assert "reused" in result.lines, str(result)


def test_groups_that_the_guardian_kills(numbered, tmp_path):
    """The launcher is killed, its rank ends, and the rank's number is another's before the guardian runs."""
    launcher = [support.mpiexec(), "-n", "1", "sleep", "60"]
    result = numbered(sys.executable, *support.arguments(program.init, tmp_path, launcher))
    assert "alive" in result.lines, str(result)
