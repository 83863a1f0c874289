"""Ranks that are killed in the middle of one-sided communication: the others are told, or the job ends, at once."""

import random
import re
import sys

import pytest
from support.windows import PROGRAMS, WAYS

pytestmark = pytest.mark.slow

STATES = {
    "exclusive": "allocate",
    "shared": "create",
    "lock_all": "shared",
    "fence": "dynamic",
    "inside_fence": "create",
    "access": "allocate",
    "exposure": "create",
    "in_wait": "dynamic",
    "complete": "create",
    "large_put": "create",
    "large_get": "allocate",
}

# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)


@pytest.mark.parametrize("state", STATES)
def test_the_others_are_told(mpirun, state):
    flavours = {STATES[state], "allocate"} if state == "large_put" else {STATES[state]}
    for flavour in flavours:
        result = mpirun(3, PROGRAMS / "deaths.py", state, flavour, python=UNNOTICED)
        through = [line for line in result.lines if line.startswith("through")]
        assert through == ["through 0", "through 2"], str(result)


def test_the_others_are_told_by_messages(mpirun):
    for state in ("exclusive", "large_put", "access", "complete"):
        result = mpirun(3, PROGRAMS / "deaths.py", state, "create", python=UNNOTICED, env=WAYS["messages"])
        assert result.stdout.count("through") == 2, str(result)


@pytest.mark.parametrize("state", STATES)
def test_the_job_ends(mpirun, state):
    job = mpirun.start(3, PROGRAMS / "deaths.py", state, STATES[state])
    result = job.finish(expect=137)
    said = [line for line in result.stderr.splitlines() if line.startswith("mpiexec:")]
    assert len(said) == 1, str(result)
    assert re.match(r"mpiexec: rank 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\)", said[0]), str(result)
    assert "Traceback" not in result.stderr, str(result)
    assert result.duration < 25, str(result)


# Where messages carry the updates, the target itself makes them, and it is not killed.
@pytest.mark.parametrize("flavour", ["create", "create over Alloc_mem", "dynamic"])
def test_no_element_is_half_written(mpirun, flavour):
    seed = random.SystemRandom().randrange(1 << 30)
    result = mpirun(7, PROGRAMS / "torn.py", flavour, seed, python=UNNOTICED)
    assert "whole" in result.stdout, f"seed {seed}\n{result}"
