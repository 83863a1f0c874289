"""Collective operations of ranks on several nodes: by shared memory in a node, and by its leader to others.

The nodes are pretended, so the layouts here replace that of --nodes.
"""

import sys

import pytest
from support.programs import beside

program = beside(__file__)

# of pretended nodes: two by two, a node of one rank, round-robin, a node of one between others
LAYOUTS = {"2": 4, "1+2": 3, "0,1": 5, "3+1+3": 7, "0,1,2,0,0,2": 6}

# The launcher sees how a shell ends, the ranks see how its child does. So the job goes on.
UNNOTICED = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)


def nodes(layout):
    return {"GORMAPY_JOB_NODES": layout}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(3))
def test_random_collectives(ranks, layout, seed):
    """Counts, types, operations that do not commute, roots, and communicators, against a serial model."""
    ranks(LAYOUTS[layout], program.random_collectives, seed, 40, env=nodes(layout), timeout=60)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_several_at_once(ranks, layout):
    ranks(LAYOUTS[layout], program.several_at_once, 1, env=nodes(layout), timeout=60)


@pytest.mark.parametrize("call", program.keys_of("DEATHS"))
@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_death_in_the_middle(mpirun, call, victim):
    """Of a leader and of another rank, on either node."""
    result = mpirun(4, program.death, call, victim, env=nodes("2"), python=UNNOTICED)
    assert result.lines.count("told") == 3, str(result)


@pytest.mark.parametrize("layout", ["2", "0,1", "3+1+3"])
def test_interrupt_and_reset(ranks, layout):
    ranks(LAYOUTS[layout], program.interrupt_and_reset, 0, env=nodes(layout), timeout=60)
