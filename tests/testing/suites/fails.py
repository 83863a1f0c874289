"""Tests that fail in all ways, on two ranks and three, and between them tests that pass: the ranks are usable again."""

import ctypes
import os
import time
import warnings

import pytest

from gormapy import MPI

world = MPI.COMM_WORLD
pytestmark = pytest.mark.mpi


def test_one_rank_fails(comm):
    print("printed on", comm.rank)
    assert comm.rank != 1, "this rank alone"


def test_others_wait_for_it(comm):
    if comm.rank == 1:
        raise ValueError("wrong on rank 1")
    comm.recv(source=1, tag=7)


def test_usable(comm):
    assert comm.allreduce(1) == comm.size


def test_all_fail_in_one_place(comm):
    comm.Barrier()
    raise KeyError("the same")


def test_all_fail_with_other_values():
    assert world.rank == 17


def test_different_places(comm):
    if comm.rank == 0:
        raise ValueError("first")
    raise TypeError("second")


@pytest.fixture
def broken_on_one():
    if world.rank == 1:
        raise OSError("no such thing")
    yield
    world.Barrier()  # which rank 1 never reaches


def test_setup_fails(broken_on_one):
    world.Barrier()


def test_usable_again(comm):
    assert comm.allreduce(1) == comm.size


@pytest.fixture
def broken_in_the_end():
    yield
    assert world.rank != 1, "in teardown"


def test_teardown_fails(broken_in_the_end):
    pass


def test_deadlock(comm):
    print("before the deadlock")
    comm.recv(source=1 - comm.rank, tag=3)


@pytest.mark.parallel(nprocs=3)
def test_deadlock_of_one_rank():
    if world.rank == 2:
        world.Barrier()


def test_usable_after_the_deadlock(comm):
    assert comm.allreduce(1) == comm.size


def test_dies(comm):
    print("last words of", comm.rank)
    if comm.rank == 1:
        os.kill(os.getpid(), 9)
    comm.Barrier()


def test_faults(comm):
    if comm.rank == 1:
        ctypes.string_at(8)
    comm.Barrier()


def test_leaves(comm):
    if comm.rank == 1:
        os._exit(3)
    comm.Barrier()


def test_usable_after_a_death(comm):
    assert comm.allreduce(1) == comm.size


def test_skipped_on_all():
    pytest.skip("nothing to do")


def test_skipped_on_one(comm):
    if comm.rank == 1:
        pytest.skip("not here")


def test_import_or_skip():
    pytest.importorskip("there_is_no_such_module")


@pytest.mark.xfail(strict=True, reason="known")
def test_expected_to_fail(comm):
    if comm.rank == 1:
        raise ValueError("expected")
    comm.Barrier()


@pytest.mark.xfail(strict=True, reason="wrongly")
def test_passes_although():
    pass


def test_message_is_left():
    if world.rank == 0:
        world.send("old", 1, 5)
    world.Barrier()
    while world.rank == 1 and not world.Iprobe(0, 5):
        pass


def test_message_is_not_there():
    assert not world.Iprobe()


def test_warns():
    warnings.warn("on all ranks", UserWarning, stacklevel=1)


def test_much_output_and_unicode(comm):
    print("ä☃" * 900_000 if comm.rank == 0 else "wenig")
    assert comm.rank == 0


def test_finalizes():
    MPI.Finalize()


def test_usable_after_finalize(comm):
    assert comm.allreduce(1) == comm.size


def test_breakpoint():
    breakpoint()


def test_exits_by_system_exit():
    raise SystemExit(2)


def test_own_interrupt(comm):
    if comm.rank == 0:
        raise KeyboardInterrupt
    comm.Barrier()


def test_last(comm):
    assert comm.allreduce(1) == comm.size
    time.sleep(0)
