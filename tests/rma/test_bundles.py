"""Short puts to memory of the program, which are gathered and written at once: gocore/rma/bundle.go."""

import pytest
from support.programs import beside
from support.windows import WAYS

program = beside(__file__)
pytestmark = pytest.mark.shm("puts by messages are not gathered")


@pytest.mark.on_ranks(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", program.keys_of("ORDER"))
def test_what_follows_finds_the_puts(ranks, what, way):
    ranks(2, program.order, what, env=WAYS[way])


@pytest.mark.on_ranks(2)
@pytest.mark.parametrize("what", program.keys_of("COMPLETE"))
def test_calls_that_complete(ranks, what):
    ranks(2, program.complete, what)


@pytest.mark.on_ranks(4)
def test_several_targets(ranks):
    ranks(4, program.several_targets)


@pytest.mark.on_ranks(3)
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(ranks, seed):
    ranks(3, program.random_program, str(seed))


@pytest.mark.on_ranks(2)
@pytest.mark.parametrize(
    "what",
    [
        program.threads,
        program.reset,
        program.computes,
        program.windows,
        program.origin_faults,
        program.fault_in_the_middle,
    ],
    ids=lambda what: what.function,
)
def test_two_ranks(mpirun, what):
    mpirun(2, what)


@pytest.mark.on_ranks(3)
@pytest.mark.parametrize("when", ["at once", "late", "after a call"])
@pytest.mark.parametrize("how", ["Flush", "reverse", "Unlock", "all"])
def test_each_target_has_its_error(ranks, how, when):
    ranks(3, program.each_target, how, when)


@pytest.mark.on_ranks(3)
def test_each_thread_finds_its_error(mpirun):
    mpirun(3, program.each_thread)


@pytest.mark.on_ranks(3)
def test_each_compiled_thread_finds_its_error(mpirun):
    pytest.importorskip("numba")
    mpirun(3, program.each_compiled_thread, timeout=240)


@pytest.mark.on_ranks(3)
def test_end_that_nobody_has_judged(mpirun):
    result = mpirun(3, program.undecided, launcher=["--enable-recovery"])
    assert "told" in result.stdout, str(result)


@pytest.mark.on_ranks(2)
def test_interrupt(mpirun):
    mpirun(2, program.interrupted)


@pytest.mark.on_ranks(2)
def test_fork(mpirun):
    mpirun(2, program.forked)


@pytest.mark.on_ranks(2)
def test_end_within_an_epoch(mpirun):
    mpirun(2, program.ends_in_an_epoch)


@pytest.mark.on_ranks(2)
def test_compiled(mpirun):
    pytest.importorskip("numba")
    mpirun(2, program.compiled, timeout=240)


@pytest.mark.on_ranks(2)
@pytest.mark.parametrize(
    "what", [program.killed_target, program.killed_before_the_flush], ids=lambda what: what.function
)
def test_target_that_is_killed(mpirun, what):
    result = mpirun(2, what, launcher=["--enable-recovery"])
    assert "told" in result.stdout, str(result)


@pytest.mark.on_ranks(4)
def test_updates_are_atomic(ranks):
    ranks(4, program.atomic_against_each_other)
