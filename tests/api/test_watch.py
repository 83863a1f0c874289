"""The hook by which memory that is communicated becomes registered: what its caller must not lose."""

from support.programs import beside

program = beside(__file__)


def test_a_signal_in_it_is_seen(mpirun):
    """Ctrl-C, or a handler's exception, while memory is registered ends the call as at any other time."""
    mpirun(1, program.a_signal_in_it_is_seen)
