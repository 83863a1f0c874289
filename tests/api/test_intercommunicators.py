"""Intercommunicators: two groups of ranks that communicate with each other."""

from support.programs import beside

program = beside(__file__)


def test_groups_and_messages(ranks, n):
    ranks(max(n, 2), program.groups_and_messages)


def test_collectives_of_arrays(ranks, n):
    ranks(max(n, 2), program.collectives_of_arrays)


def test_collectives_of_different_amounts(ranks, n):
    ranks(max(n, 2), program.collectives_of_different_amounts)


def test_reductions(ranks, n):
    ranks(max(n, 2), program.reductions)


def test_collectives_of_objects(ranks, n):
    ranks(max(n, 2), program.collectives_of_objects)


def test_many_at_once(ranks, n):
    ranks(max(n, 2), program.many_at_once)


def test_made_of_others(ranks, n):
    ranks(max(n, 2), program.made_of_others)


def test_made_of_groups(ranks):
    ranks(5, program.made_of_groups)


def test_bytes_and_bytearrays(ranks, n):
    ranks(max(n, 2), program.bytes_and_bytearrays)


def test_conversions(ranks):
    ranks(3, program.conversions)


def test_made_and_freed_again(ranks):
    ranks(4, program.made_and_freed_again)
