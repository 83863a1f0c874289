"""Functions that the counterparts of HiCR's programs share: arguments, and the number of ranks."""

import argparse
import sys


def natural(text):
    """Return a text as a number, which must be at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 is expected, not {text}")
    return number


def require(comm, fits, needed, n=2):
    """Exit with HiCR's error, printed once, and status 1 unless the number of ranks fits; `n` is one that fits."""
    if fits:
        return
    if comm.Get_rank() == 0:
        text = f"[Error] This example requires {needed} HiCR instances to run: mpiexec -n {n} …"
        print(text, file=sys.stderr, flush=True)
    comm.Barrier()  # printed before the first rank ends
    sys.exit(1)
