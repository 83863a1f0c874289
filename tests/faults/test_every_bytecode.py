"""KeyboardInterrupt at every bytecode boundary of the calls that are written in Python; see rankside/boundaries.py.

make test tries some boundaries of each call with one length of message, `make interrupts` all of them with two.
"""

import os

import pytest
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive

WHOLE = os.environ.get("INTERRUPTS") == "whole"

SIZES = {"short": 64, "long": 1 << 14}
TRIALS = [(call, size) for call in program.keys_of("CALLS") for size in SIZES]


@pytest.mark.parametrize(("call", "size"), TRIALS if WHOLE else TRIALS[::2][::2] + TRIALS[1::2][1::2])
def test_interrupted_everywhere(mpirun, call, size):
    most = 10_000 if WHOLE else 12
    result = mpirun(2, program.interrupted_everywhere, call, SIZES[size], most, timeout=900 if WHOLE else 150)
    print(result.stdout.strip())
    assert "tried" in result.stdout
