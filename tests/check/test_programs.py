"""The programs for the checker run without it: they neither crash nor hang, and the clean ones find what they expect."""

import labels
import pytest
from support.programs import Program


def runs(label):
    """Report whether a program ends well by itself."""
    return "hangs" not in label.flags and not ("raises" in label.flags and "caught" not in label.flags)


def parameters():
    """Return the programs that end well; those with shared windows need ranks on one node."""
    near = pytest.mark.one_node("has a shared window over all ranks"), pytest.mark.shm("has a shared window")
    return [
        pytest.param(label, id=str(label), marks=near if "near" in label.flags else ())
        for label in labels.every()
        if runs(label)
    ]


@pytest.mark.parametrize("label", parameters())
def test_program(ranks, label):
    ranks(label.n, Program(label.file, label.name))
