"""Slots and copies between them: what arrives, what is counted, what is refused."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_copies(ranks, n):
    ranks(n, program.copies, "any")


def test_copies_over_tcp(ranks):
    ranks(2, program.copies, "network", env={"GORMAPY_FABRIC": "tcp"}, timeout=60)


@pytest.mark.shm("slots in a shared window are mapped")
def test_copies_by_messages(ranks):
    ranks(2, program.copies, "mapped", env={"GORMAPY_ONE_COPY": "0"}, timeout=60)


@pytest.mark.parametrize("n", [1, 4])
def test_refusals(ranks, n):
    ranks(n, program.refusals)


def test_refusals_over_tcp(ranks):
    ranks(2, program.refusals, env={"GORMAPY_FABRIC": "tcp"})


def test_overlapping_slots(ranks):
    ranks(
        2,
        program.overlapping_slots,
    )


def test_promoted_slots_need_no_collective(ranks):
    ranks(2, program.promoted)


def test_promoted_slots_over_tcp(ranks):
    ranks(2, program.promoted, env={"GORMAPY_FABRIC": "tcp"})
