"""Where the kernel refuses to copy between processes, messages do it, and nothing else is different."""

import sys

import pytest
from support.mpirun import ANY, WITHOUT_COPIES
from support.windows import PROGRAMS, WAYS

pytestmark = pytest.mark.slow

REFUSED = (sys.executable, WITHOUT_COPIES, sys.executable)

WHICH = """
    import sys
    import numpy as np
    from rankside import *
    from gormapy._ext import core
    win = MPI.Win.Create(np.zeros(4), 8, comm=world)
    print(core.WinPath(win._h, 1 - rank))
    win.Free()
"""


def unless_impossible(result):
    """Skip where the filter can't be installed."""
    if result.status == 77:
        pytest.skip("this kernel installs no seccomp filter")
    assert result.status == 0, str(result)
    return result


@pytest.mark.shm("the kernel copies between ranks that share memory")
def test_which_way(mpirun):
    """The other tests of this folder are about what they say."""
    assert mpirun(2, WHICH).lines == ["copy"] * 2
    assert mpirun(2, WHICH, env=WAYS["messages"]).lines == ["message"] * 2
    assert unless_impossible(mpirun(2, WHICH, python=REFUSED, expect=ANY)).lines == ["message"] * 2


@pytest.mark.parametrize("program", ["access", "atomics", "requests"])
def test_behaviours_where_copies_are_refused(mpirun, program):
    unless_impossible(mpirun(3, PROGRAMS / f"{program}.py", python=REFUSED, expect=ANY, timeout=60))
