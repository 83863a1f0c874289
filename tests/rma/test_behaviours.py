"""What MPI says of windows: synchronisation, access, nothing to do, requests, algorithms on top."""

import pytest


@pytest.mark.parametrize("program", ["access", "algorithms", "attached", "datatypes", "epochs", "nothing", "requests"])
def test_behaviours(onesided, program):
    onesided(program)
