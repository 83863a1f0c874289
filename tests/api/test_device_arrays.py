"""Arrays that say they may be a GPU's: used if the processor can reach their memory, refused if not."""

from support.programs import beside

program = beside(__file__)


def test_reachable_memory_is_used(ranks):
    ranks(
        2,
        program.reachable_memory_is_used,
    )


def test_unreachable_memory_is_refused(mpirun):
    mpirun(
        1,
        program.unreachable_memory_is_refused,
    )
