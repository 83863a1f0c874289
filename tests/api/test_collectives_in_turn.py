"""Collectives of all kinds one after the other on one communicator, which uses its operations again."""

from support.programs import beside

program = beside(__file__)


def test_mixed(ranks, n):
    ranks(n, program.mixed, timeout=90)


def test_parts(ranks, n):
    ranks(n, program.parts, timeout=90)
