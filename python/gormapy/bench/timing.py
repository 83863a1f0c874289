"""Timing of calls: warm-up, batches that are long enough for the clock, percentiles over the batches."""

from time import perf_counter

# Seconds that a row takes, unless a caller says otherwise. Each row needs about 0.1 s more to warm up.
BUDGET = 0.3


def percentile(values, p):
    """Return the value below which p percent of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * p // 100)]


def row(what, seconds, **more):
    """Return a result: the median and the 10th and 90th percentile in microseconds."""
    low, mid, high = (round(1e6 * percentile(seconds, p), 3) for p in (10, 50, 90))
    return {"what": what, "us": mid, "p10": low, "p90": high, "samples": len(seconds), **more}


def absent(what, error):
    """Return the substitute of a result if the library does not have a call that the loop needs."""
    return {"what": what, "problem": "not implemented", "detail": str(error)}


def batches(comm, call, budget=BUDGET, batch=0.002, together=True, turns=1):
    """Time `call` in batches on this rank and return the seconds per call of each batch.

    With `together` all ranks of `comm` call it equally often, and begin each batch together; without, only
    this rank does. `budget` is how many seconds it should take, `batch` how many a batch. The calls of a batch are a
    multiple of `turns`: a call with a root, for which the ranks take turns, takes a rank less time when it is not the
    root.
    """

    def run(count):
        begin = perf_counter()
        for _ in range(count):
            call()
        return (perf_counter() - begin) / count

    def agreed(count):
        return comm.bcast(count) if together else count

    run(agreed(10))  # the first calls make connections
    once = run(agreed(20))
    warm = agreed(max(1, int(min(0.05, budget) / max(once, 1e-8))))
    once = run(min(warm, 20_000))
    count = max(1, int(batch / max(once, 1e-8)))
    count = agreed(-(-count // turns) * turns)
    repeat = agreed(max(10, min(200, int(budget / max(count * once, 1e-8)))))
    times = []
    for _ in range(repeat):
        if together:
            comm.Barrier()
        times.append(run(count))
    return times


def alternate(calls, budget=BUDGET, batch=0.002, comm=None):
    """Time several calls on this rank in batches that take turns, so that the machine's noise meets all alike.

    With `comm` all its ranks call it, with calls that belong together, and begin each batch together. `budget` is how
    many seconds each of `calls` should take, `batch` how many a batch. Return the seconds per call of each batch, for
    each of `calls`.
    """

    def run(call, count):
        if comm is not None:
            comm.Barrier()
        begin = perf_counter()
        for _ in range(count):
            call()
        return (perf_counter() - begin) / count

    def agreed(count):
        return count if comm is None else comm.bcast(count)

    counts, longest = [], batch
    for call in calls:
        few = agreed(max(1, min(10, int(10 * batch / max(run(call, 1), 1e-8)))))
        run(call, few)
        once = run(call, few)
        counts.append(agreed(max(1, int(batch / max(once, 1e-8)))))
        longest = max(longest, counts[-1] * once)
    repeat = agreed(max(10, min(200, int(budget / longest))))
    return list(zip(*([run(call, count) for call, count in zip(calls, counts)] for _ in range(repeat))))


def single(call, budget=BUDGET, least=5, most=2.0):
    """Time calls on this rank one by one, where each takes longer than the clock's grain by far.

    There are `least` of them even where that is beyond the budget, unless they take `most` seconds. The first
    one does not count, unless it has taken so long by itself.
    """
    times = []
    begin = perf_counter()
    while (spent := perf_counter() - begin) < budget or (len(times) < 1 + least and spent < most):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return times[1:] or times
