"""Ranks that authenticate or encrypt what they send, and ranks of which only some do."""

import pytest
from support.programs import beside

program = beside(__file__)

UNSET = {"GORMAPY_TLS": None, "GORMAPY_TCP_MAC": None}
NETWORKS = {
    "one host": {"GORMAPY_FABRIC": "tcp", "GORMAPY_JOB_NODES": None, **UNSET},
    "two nodes": {"GORMAPY_JOB_NODES": "2", **UNSET},
}
BOTH = "all ranks of a job need the same GORMAPY_TLS and GORMAPY_TCP_MAC"


@pytest.mark.parametrize(
    ("network", "name", "value", "says"),
    [
        ("one host", "GORMAPY_TLS", "1", f"authenticated and encrypted: {BOTH}|authenticated nor encrypted: {BOTH}"),
        ("one host", "GORMAPY_TCP_MAC", "1", f"is authenticated: {BOTH}|authenticated nor encrypted: {BOTH}"),
        (
            "one host",
            "GORMAPY_TLS",
            "yes",
            'GORMAPY_FABRIC=tcp: GORMAPY_TLS is "yes", which it can\'t be: choose from 0, 1',
        ),
        (
            "two nodes",
            "GORMAPY_TLS",
            "1",
            "this rank has GORMAPY_TLS=0 and rank 1 has 1: all must have the same|GORMAPY_TLS=1 and rank 0 has 0",
        ),
        (
            "two nodes",
            "GORMAPY_TCP_MAC",
            "0",
            "this rank has GORMAPY_TCP_MAC=auto and rank 1 has 0|GORMAPY_TCP_MAC=0 and rank 0 has auto",
        ),
        ("two nodes", "GORMAPY_TCP_MAC", "off", 'GORMAPY_TCP_MAC is "off", which it can\'t be: choose from auto, 1, 0'),
    ],
)
def test_ranks_that_differ(mpirun, network, name, value, says):
    """The job ends with a sentence, and no rank sends anything in another way than it was told."""
    result = mpirun(2, program.that_differ, name, value, env=NETWORKS[network], expect=1)
    assert any(text in result.stderr for text in says.split("|")), result
