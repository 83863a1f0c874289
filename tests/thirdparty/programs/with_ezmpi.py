"""ezmpi has a pool, which sends functions by dill if asked."""

from ezmpi import MPIPool

with MPIPool(use_dill=True) as pool:
    if pool.is_master():
        assert pool.map(lambda x: x * x, range(40)) == [x * x for x in range(40)]
        print("checked")
    else:
        pool.wait()
