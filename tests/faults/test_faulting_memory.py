"""Every buffer argument of every call on memory that faults at its n-th page: see programs/faulting_memory.py."""

from pathlib import Path

import pytest
from support.programs import beside

waits = beside(__file__, "waits")

pytestmark = pytest.mark.exhaustive

PROGRAM = Path(__file__).parent / "programs" / "faulting_memory.py"


GROUPS = ["messages", "collectives", "onesided", "files", "passive"]


@pytest.mark.parametrize("n", [2, 4, 7])
def test_faulting_memory(mpirun, n):
    mpirun(n, PROGRAM, *GROUPS, timeout=300)


# Providers of libfabric that are software write to a window in C: gocore/fabric/ofi/doc.go.
@pytest.mark.shm("devices see to memory of windows that can't be accessed")
@pytest.mark.parametrize("n", [2, 4])
def test_windows_over_faulting_memory(mpirun, n):
    mpirun(n, PROGRAM, "targets", timeout=300)


@pytest.mark.shm("kernel copies are between ranks that share memory")
@pytest.mark.parametrize("n", [2, 4])
def test_without_copies_by_the_kernel(mpirun, n):
    mpirun(n, PROGRAM, env={"GORMAPY_ONE_COPY": "0"}, timeout=300)


@pytest.mark.parametrize("n", [2, 4])
def test_over_tcp(mpirun, n):
    mpirun(n, PROGRAM, env={"GORMAPY_FABRIC": "tcp"}, timeout=300)


@pytest.mark.parametrize("fabric", ["", "tcp"])
@pytest.mark.parametrize("n", [7, 12, 20])
def test_ranks_that_are_far_ahead_tell_of_it(ranks, fabric, n):
    ranks(3, waits.ranks_that_are_far_ahead_tell_of_it, n, env={"GORMAPY_FABRIC": fabric} if fabric else {})


@pytest.mark.parametrize("later", [7, 8, 9, 20])
def test_late_news_do_not_cover_newer_ones(ranks, later):
    ranks(2, waits.late_news_do_not_cover_newer_ones, later)


@pytest.mark.parametrize("address", [8, 4000, 65_000])
def test_addresses_close_to_zero(ranks, address):
    ranks(2, waits.addresses_close_to_zero, address)


@pytest.mark.parametrize("call", ["Sendrecv", "Isendrecv"])
@pytest.mark.parametrize("pages", [1, 400])
def test_a_receive_does_not_wait_for_what_its_own_send_did_not_send(ranks, call, pages):
    ranks(1, waits.a_receive_does_not_wait_for_what_its_own_send_did_not_send, call, pages)


def test_a_long_sendrecv_ends_with_the_send_that_a_peer_can_not_read(mpirun, tmp_path):
    """After the first slices of its wait, between which Python looks at signals."""
    mpirun(2, waits.a_long_sendrecv_ends_with_the_send_that_a_peer_can_not_read, str(tmp_path))
