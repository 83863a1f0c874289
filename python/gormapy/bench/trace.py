"""The cost of recording: the same calls with a recording off and on, in turns, so that noise affects both alike."""

from time import perf_counter, sleep, thread_time

import numpy as np

from .pair import pair_of
from .timing import BUDGET, percentile, row

CALLS = 20_000  # a batch: more than the pages that a recording has from its start


def trace(MPI, comm, budget=BUDGET):
    """Time 8-byte Put and Send/Recv while gormapy.trace records and while it does not."""
    if not MPI.__name__.startswith("gormapy"):
        raise SystemExit("trace: gormapy's own recording is measured, not another library")
    pair = pair_of(MPI, comm, "trace")
    if pair != MPI.COMM_NULL:
        yield from _put(MPI, pair, budget)
        yield from _alone(MPI, pair, budget)
        yield from _pingpong(pair, budget)
        pair.Free()
    comm.Barrier()


def _put(MPI, pair, budget):
    memory = np.zeros(1)
    win = MPI.Win.Allocate(8, 8, comm=pair)
    if pair.rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        put = win.Put

        def calls():
            for _ in range(CALLS):
                put(memory, 1)

        yield from _rows("Put 8 B, Win.Allocate", _turns(calls, budget, None))
        win.Unlock(1)
    pair.Barrier()
    win.Free()


def _alone(MPI, pair, budget):
    memory, comm = np.zeros(1), MPI.COMM_SELF
    send, recv = comm.Send, comm.Recv

    def calls():
        for _ in range(CALLS):
            send(memory, 0)
            recv(memory, 0)

    if pair.rank == 0:
        yield from _rows("Send and Recv 8 B, to itself", _turns(calls, budget, None))
    pair.Barrier()


def _pingpong(pair, budget):
    memory = np.zeros(1)
    send, recv, peer = pair.Send, pair.Recv, 1 - pair.rank

    def calls():
        if pair.rank == 0:
            for _ in range(CALLS):
                send(memory, peer)
                recv(memory, peer)
        else:
            for _ in range(CALLS):
                recv(memory, peer)
                send(memory, peer)

    found = _turns(calls, budget, pair)
    if pair.rank == 0:
        yield from _rows("Send/Recv 8 B, there and back", found)


def _turns(calls, budget, pair):
    """Return the seconds per call of batches without and with a recording, and the events per call.

    A round trip is the calls of both ranks one after the other, so the events of both are counted.
    """
    from gormapy import trace
    from gormapy._ext import fast

    off, on, events = [], [], 0

    def timed():
        if pair is not None:
            pair.Barrier()
        # A thread that waits for no other rank is timed by its processor time, which other processes do not change.
        clock = thread_time if pair is None else perf_counter
        begin = clock()
        calls()
        return (clock() - begin) / CALLS

    once = timed()
    repeat = max(5, min(50, int(budget / max(2 * once * CALLS, 1e-8))))
    if pair is not None:
        repeat = pair.bcast(repeat)
    for _ in range(repeat):
        off.append(timed())
        trace.start()
        sleep(0.03)  # as in a program that does something between its calls: pages are made meanwhile
        before = fast.trace_mark()
        on.append(timed())
        events = (fast.trace_mark() - before) / CALLS
        if pair is not None:
            events = pair.allreduce(events)
        trace.stop()
    return off, on, events


def _rows(what, found):
    off, on, events = found
    # Disturbances make a batch longer, never shorter: the undisturbed ones are compared.
    without, recorded = percentile(off, 10), percentile(on, 10)
    yield row(f"{what}, not recorded", off)
    extra = (recorded - without) * 1e9
    yield row(
        f"{what}, recorded",
        on,
        ratio=round(recorded / without, 3),
        events=round(events, 2),
        event_ns=round(extra / max(events, 1e-9), 1),
    )
