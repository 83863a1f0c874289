"""A pool of schwimmbad maps a function over the workers."""

import sys

from schwimmbad import MPIPool


def cube(x):
    return x**3


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    assert list(pool.map(cube, range(50))) == [x**3 for x in range(50)]
    print("checked")
