"""The programs for the checker without it: they end as their labels say, and the clean ones find what they expect."""

import labels
import pytest
from support.mpirun import ANY
from support.programs import Program

NEAR = pytest.mark.one_node("has a shared window over all ranks"), pytest.mark.shm("has a shared window over all ranks")


def programs(wanted):
    """Return the programs with or without flags, as parameters; those with shared windows need ranks on one node."""
    return [
        pytest.param(label, id=str(label), marks=NEAR if "near" in label.flags else ())
        for label in labels.every()
        if wanted(label.flags)
    ]


def ends_well(flags):
    """Report whether a program with these flags ends by itself, without an error."""
    return not flags & {"hangs", "crashes"} and ("raises" not in flags or "caught" in flags)


@pytest.mark.parametrize("label", programs(ends_well))
def test_ends_well(ranks, label):
    result = ranks(label.n, Program(label.file, label.name))
    assert ("MPI_ERR" in result.stdout) == ("caught" in label.flags)


@pytest.mark.parametrize("label", programs(lambda flags: "raises" in flags and "caught" not in flags))
def test_raises(mpirun, label):
    result = mpirun(label.n, Program(label.file, label.name), expect=ANY)
    assert result.status not in (0, 124)
    assert "MPI_ERR" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("label", programs(lambda flags: "hangs" in flags))
def test_hangs(mpirun, label):
    result = mpirun(label.n, Program(label.file, label.name), expect=ANY, timeout=1.5)
    assert result.status != 0
