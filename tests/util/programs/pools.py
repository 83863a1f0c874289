"""The programs of test_pools.py, run at rank 0 by ``python -m gormapy.futures``."""

import os
import sys
import time

from gormapy.util.pool import Pool, ThreadPool


def square(x):
    return x * x


def nap(seconds):
    time.sleep(seconds)
    return seconds


def hold(path):
    """Wait until there is a file."""
    while not os.path.exists(path):
        time.sleep(0.01)
    return path


def fail():
    raise LookupError("nothing here")


def everything():
    for kind in (Pool, ThreadPool):
        with kind(2) as pool:
            assert pool.apply(pow, (2,), {"exp": 3}) == 8
            assert pool.map(square, range(100)) == [x * x for x in range(100)]
            assert pool.starmap(pow, [(2, 3), (3, 2)]) == [8, 9]
            assert list(pool.imap(square, range(50), chunksize=7)) == [x * x for x in range(50)]
            assert sorted(pool.imap_unordered(square, range(50))) == [x * x for x in range(50)]
            found = []
            result = pool.map_async(square, range(9), callback=found.extend)
            assert result.get(10) == found == [x * x for x in range(9)] and result.successful()
            result = pool.apply_async(fail, error_callback=found.append)
            result.wait(10)
            assert not result.successful() and isinstance(found[-1], LookupError)
            path = os.path.abspath(f"go-{kind.__name__}")
            slow = pool.apply_async(hold, (path,))
            try:
                slow.get(0.01)
            except TimeoutError:
                pass
            else:
                raise AssertionError("it was too fast")
            open(path, "w").close()
        assert slow.get() == path
        pool = kind(1)
        results = [pool.apply_async(nap, (0.1,)) for _ in range(200)]
        pool.terminate()
        pool.join()
        results[-1].wait(5)
        assert results[-1].ready() and not results[-1].successful()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
