"""What the counterparts of HiCR's programs have in common: their arguments, and how many ranks they need."""

import argparse
import sys


def natural(text):
    """Return the number that a text says, if it is 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 is expected, not {text}")
    return number


def require(comm, fits, needed, n=2):
    """Leave with HiCR's error, said once, and status 1 unless the number of ranks fits; `n` is one that would."""
    if fits:
        return
    if comm.Get_rank() == 0:
        text = f"[Error] This example requires {needed} HiCR instances to run: mpiexec -n {n} …"
        print(text, file=sys.stderr, flush=True)
    comm.Barrier()  # said before the first one ends
    sys.exit(1)
