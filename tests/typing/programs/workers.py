"""Tasks on other ranks: executors, futures made of others, pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gormapy import MPI
from gormapy.futures import (
    Future,
    MPICommExecutor,
    MPIPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
    collect,
    compose,
    get_comm_workers,
    wait,
)
from gormapy.futures.aplus import ThenableFuture, catch, then
from gormapy.util.pool import AsyncResult, MapResult, ThreadPool
from gormapy.util.pool import Pool as Processes


def square(x: int) -> int:
    return x * x


def joined(a: str, b: str = "", *, times: int = 1) -> str:
    return (a + b) * times


def size_of_workers() -> int:
    return get_comm_workers().Get_size()


def tasks(executor: MPIPoolExecutor) -> int:
    one: Future[int] = executor.submit(square, 3)
    two: Future[str] = executor.submit(joined, "a", b="b", times=2)
    squares: Iterator[int] = executor.map(square, range(4), chunksize=2, timeout=60)
    texts = list(executor.starmap(joined, [("a", "b"), ("c", "d")], unordered=True))
    assert two.result() == "abab" and sorted(texts) == ["ab", "cd"]
    both: Future[list[int]] = collect([one, executor.submit(square, 4)])
    done, pending = wait([one, executor.submit(square, 5)], timeout=60)
    assert len(done) == 2 and not pending and all(future.done() for future in as_completed(done))
    total: Future[int] = compose(both, sum)
    text: Future[str] = compose(total, str)
    safe = compose(one, excepthook=str)
    found: int | str = safe.result()
    assert text.result() == "25" and found == 9
    return sum(squares) + total.result()


def chained(executor: MPIPoolExecutor) -> str:
    first = executor.submit(square, 5)
    second: Future[str] = then(first, str)
    third = catch(second, repr)
    future: ThenableFuture[int] = ThenableFuture()
    following = future.then(lambda x: x + 1).catch(lambda error: 0)
    future.set_result(1)
    assert following.result() == 2 and third.result() == "25"
    return second.result()


def started() -> list[int]:
    """Start processes: not called by main, which is run where there may be none to start."""
    with MPIPoolExecutor(2, initializer=print, initargs=("ready",), globals={"a": "1"}, path=["."]) as executor:
        executor.bootup(wait=True)
        assert executor.num_workers == 2
        return list(executor.map(square, [1, 2], buffersize=1))


def pools() -> list[int]:
    with ThreadPool(2) as pool:
        found = pool.map(square, [1, 2, 3])
        result: AsyncResult[str] = pool.apply_async(joined, ("a",), {"times": 2}, callback=print)
        several: MapResult[int] = pool.map_async(square, range(3), chunksize=1)
        each: Iterator[int] = pool.imap_unordered(square, [1])
        assert result.get(timeout=60) == "aa" and several.get() == [0, 1, 4] and list(each) == [1]
        assert result.ready() and result.successful() and pool.apply(joined, ("x",)) == "x"
        assert pool.starmap(joined, [("a", "b")]) == ["ab"]
        return found


def processes(number: int | None = None) -> list[int]:
    """Start processes, as above."""
    with Processes(number) as pool:
        return pool.map(square, range(3))


def main() -> None:
    with ThreadPoolExecutor(max_workers=1) as threads:
        assert tasks(threads) == 14 + 25 and chained(threads) == "25"
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
        found: Any = executor
        if found is not None:
            assert list(found.map(square, range(3))) == [0, 1, 4]
    assert pools() == [1, 4, 9]


if __name__ == "__main__":
    main()
