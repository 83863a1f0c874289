"""The one-sided programs of the OSU micro-benchmarks: the same loops, counts, sizes and columns, from Python.

What is measured, as in OSU 7: with the passive ways (lock, lock_all, flush, flush_local) rank 0 accesses rank 1,
which waits in a barrier. With fence and pscw the latency programs are half a round trip, in which both ranks are the
origin in turn. Bandwidth is that of windows of 64 operations, each at a place of its own, between synchronisations.

What differs: every size is checked; the percentiles are over batches of calls, since a clock read at every call would
cost as much as the call; Accumulate works on MPI.SIGNED_CHAR, for which a sum is defined, and not on MPI.CHAR.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from time import perf_counter

import numpy as np

from .label import label
from .timing import absent, row
from .windows import FLAVOURS, own_memory, window

PASSIVE = ("lock", "lock_all", "flush", "flush_local")
ACTIVE = ("fence", "pscw")
SYNCS = (*PASSIVE, *ACTIVE)

DEPTH = 64  # operations between synchronisations where bandwidth is measured
LARGE = 8192  # above, OSU counts less
COUNTS = {"latency": ((10_000, 100), (1_000, 10)), "bw": ((100, 10), (20, 2))}  # calls and warm-up, small and large
SIZES = tuple(1 << i for i in range(23))
BATCHES = 100
TYPES = {"char": "b", "int": "i", "long": "l", "float": "f", "double": "d"}


@dataclass(frozen=True)
class Program:
    """One of OSU's programs."""

    kind: str  # latency or bw
    operation: str
    both: bool = False  # both ranks are origins at the same time
    sizes: tuple = SIZES
    syncs: tuple = SYNCS
    sync: str = "flush"  # unless the user says otherwise

    @property
    def depth(self):
        """Return how many operations there are between synchronisations."""
        return DEPTH if self.kind == "bw" else 1


PROGRAMS = {
    "put_latency": Program("latency", "Put"),
    "get_latency": Program("latency", "Get"),
    "acc_latency": Program("latency", "Accumulate"),
    "get_acc_latency": Program("latency", "Get_accumulate"),
    "fop_latency": Program("latency", "Fetch_and_op", sizes=(8,)),
    "cas_latency": Program("latency", "Compare_and_swap", sizes=(8,)),
    "put_bw": Program("bw", "Put"),
    "get_bw": Program("bw", "Get"),
    "put_bibw": Program("bw", "Put", both=True, syncs=ACTIVE, sync="pscw"),
}


@dataclass(frozen=True)
class Settings:
    """What the user may choose for each program."""

    iterations: int | None = None  # in place of OSU's
    budget: float | None = None  # seconds after which a size ends early
    check: bool = True
    type: str = "char"


class Transfer:
    """The operations of a program at one size: their data, and what is there when `count` of them are done."""

    def __init__(self, MPI, made, program, size, settings, rank):
        self.program, self.made, self.rank, self.peer = program, made, rank, 1 - rank
        self.letter = TYPES[settings.type] if program.operation in ("Accumulate", "Get_accumulate") else "b"
        if program.operation in ("Fetch_and_op", "Compare_and_swap"):
            self.letter = "l"
        self.total = size * program.depth
        count = self.total // np.dtype(self.letter).itemsize
        self.origin, self.result = np.ones(count, self.letter), np.full(count, -7, self.letter)
        self.start(MPI)
        parts = zip(*(np.split(data, program.depth) for data in (self.origin, self.result)))
        start = made.starts[self.peer]
        self.calls = [self._call(MPI, *part, start + i * size) for i, part in enumerate(parts)]

    def start(self, MPI):
        """Give all memory its values before the first operation."""
        with own_memory(MPI, self.made.win, self.rank):
            self.made.memory[:] = pattern(self.total, self.rank) if self.program.operation == "Get" else 0
        if self.program.operation == "Put":
            self.origin[:] = pattern(self.total, self.rank)

    def _call(self, MPI, origin, result, disp):
        win, operation = self.made.win, self.program.operation
        target = disp or None  # as a program would write it: without a target where it is the begin
        if operation in ("Put", "Get"):
            memory = result if operation == "Get" else origin
            place = () if target is None else (target,)
            return partial(getattr(win, operation), memory, self.peer, *place)
        if operation == "Accumulate":
            return partial(win.Accumulate, origin, self.peer, target, MPI.SUM)
        if operation == "Get_accumulate":
            return partial(win.Get_accumulate, origin, result, self.peer, target, MPI.SUM)
        if operation == "Fetch_and_op":
            return partial(win.Fetch_and_op, origin, result, self.peer, disp, MPI.SUM)
        return partial(win.Compare_and_swap, origin, np.zeros(1, "l"), result, self.peer, disp)

    def right(self, MPI, own, peers):
        """Tell whether memory is as it must be after `own` operations by this rank and `peers` by the other one."""
        operation = self.program.operation
        with own_memory(MPI, self.made.win, self.rank):
            shown = self.made.memory.copy()
        shown = shown.view(self.letter)
        if operation == "Get":
            return own == 0 or np.array_equal(self.result, pattern(self.total, self.peer))
        if operation == "Put":
            return np.array_equal(shown, pattern(self.total, self.peer) if peers else np.zeros(self.total, "b"))
        swap = operation == "Compare_and_swap"  # only the first one finds what it expects
        there = np.array([min(peers, 1) if swap else peers]).astype(self.letter)
        before = np.array([min(own - 1, 1) if swap else own - 1]).astype(self.letter)
        fetched = own == 0 or operation == "Accumulate" or bool((self.result == before).all())
        return bool((shown == there).all()) and fetched


def nothing():
    """Do nothing, where a way to synchronise needs nothing."""


def pattern(size, rank):
    """Return bytes that differ by rank and by place: their period divides no size."""
    return np.resize(np.arange(251, dtype="u1") + np.uint8(rank + 1), size).view("b")


@dataclass
class Loop:
    """What a rank does in each iteration, if anything, before and after all of them, and when it is done with that."""

    turn: Callable | None = None
    enter: Callable = nothing
    leave: Callable = nothing
    release: Callable = nothing
    parts: int = 1  # of a turn: two, where both ways are in it

    def run(self, calls):
        """Make calls that are not measured."""
        if self.turn:
            self.enter()
            for _ in repeat(None, calls):
                self.turn()
            self.leave()


def loop(MPI, pair, program, sync, made, operate):
    """Return the Loop of this rank."""
    win, first, peer = made.win, pair.rank == 0, 1 - pair.rank
    begin, end = _epoch(MPI, win, sync, pair, peer)
    if sync in PASSIVE:
        if not first:
            return Loop()
        if sync in ("lock", "lock_all"):
            return Loop(_around(begin, operate, end))
        flush = partial(win.Flush if sync == "flush" else win.Flush_local, peer)
        return Loop(_around(operate, flush), partial(win.Lock, peer, MPI.LOCK_SHARED), partial(win.Unlock, peer))
    if sync == "fence":
        # The last one leaves no epoch open, so that what follows may lock.
        leave = partial(win.Fence, MPI.MODE_NOSUCCEED)
        if program.both or (program.kind == "bw" and first):
            return Loop(_around(begin, operate, end), leave=leave)
        if program.kind == "bw":
            return Loop(_around(begin, end), leave=leave)
        order = (begin, operate, end, end) if first else (begin, end, operate, end)
        return Loop(_around(*order), leave=leave, parts=2)
    group = pair.Get_group().Incl([peer])
    start, post = partial(win.Start, group), partial(win.Post, group)
    access, exposure = (start, operate, win.Complete), (post, win.Wait)
    if program.both:
        order = (post, start, operate, win.Complete, win.Wait)
    elif program.kind == "bw":
        order = access if first else exposure
    else:
        order = (*access, *exposure) if first else (*exposure, *access)
    return Loop(_around(*order), release=group.Free, parts=2 if program.kind == "latency" else 1)


def _epoch(MPI, win, sync, pair, peer):
    """Return the calls that begin and end an epoch."""
    if sync == "lock":
        return partial(win.Lock, peer, MPI.LOCK_SHARED), partial(win.Unlock, peer)
    if sync == "lock_all":
        return win.Lock_all, win.Unlock_all
    return win.Fence, win.Fence


def _around(*calls):
    """Return a function that makes calls in order, without a loop for the usual numbers of them."""
    if len(calls) == 2:
        one, two = calls

        def turn():
            one()
            two()

    elif len(calls) == 3:
        one, two, three = calls

        def turn():
            one()
            two()
            three()

    elif len(calls) == 4:
        one, two, three, four = calls

        def turn():
            one()
            two()
            three()
            four()

    else:

        def turn():
            for call in calls:
                call()

    return turn


def counts(program, size, settings):
    """Return how many calls OSU makes at a size, and how many before it measures."""
    calls, skip = COUNTS[program.kind][size > LARGE]
    if settings.iterations:
        calls, skip = settings.iterations, min(skip, settings.iterations)
    if settings.budget:
        skip = min(skip, 10)
    return calls, skip


def measure(pair, turn, calls, skip, active, budget):
    """Call `turn` and return the seconds per call of each batch on rank 0, and how many calls there were in all."""
    for _ in repeat(None, skip):
        turn()
    if budget:
        begin = perf_counter()
        for _ in repeat(None, min(skip, 10)):
            turn()
        once = max((perf_counter() - begin) / min(skip, 10), 1e-8)
        skip += min(skip, 10)
        calls = max(1, min(calls, int(budget / once)))
        calls = pair.bcast(calls) if active else calls
    times = []
    parts = min(calls, BATCHES)
    for part in range(parts):
        count = calls * (part + 1) // parts - calls * part // parts
        begin = perf_counter()
        for _ in repeat(None, count):
            turn()
        times.append((perf_counter() - begin) / count)
    return times, calls, skip + calls


def one_size(MPI, pair, name, flavour, sync, size, settings):
    """Measure one size and return its row, which means something on rank 0."""
    program = PROGRAMS[name]
    with window(MPI, pair, flavour, size * program.depth) as made:
        transfer = Transfer(MPI, made, program, size, settings, pair.rank)
        operations = transfer.calls
        operate = operations[0] if len(operations) == 1 else partial(_each, operations)
        mine = loop(MPI, pair, program, sync, made, operate)
        pair.Barrier()
        times, calls, done = [], 0, 0
        if mine.turn:
            mine.enter()
            calls, skip = counts(program, size, settings)
            times, calls, done = measure(pair, mine.turn, calls, skip, sync in ACTIVE, settings.budget)
            mine.leave()
        pair.Barrier()
        found = _row(name, flavour, sync, size, times, mine.parts, calls) if times else {}
        if settings.check:
            if transfer.letter == "b" and program.operation in ("Accumulate", "Get_accumulate"):
                # So many would not fit, and libraries differ in what they do then: Open MPI stays at 127.
                done = 100 if mine.turn else 0
                transfer.start(MPI)
                pair.Barrier()
                mine.run(done)
                pair.Barrier()
            found["valid"] = all(pair.allgather(checked(MPI, pair, program, transfer, done)))
        mine.release()
    return found


def checked(MPI, pair, program, transfer, done):
    """Tell whether this rank's memory is right after `done` iterations in which it took part."""
    one_way = program.kind == "bw" and not program.both  # rank 1 synchronises at most
    own = 0 if one_way and pair.rank else done
    return bool(transfer.right(MPI, own, pair.allgather(own)[1 - pair.rank]))


def _each(calls):
    for call in calls:
        call()


def _row(name, flavour, sync, size, times, parts, calls):
    program = PROGRAMS[name]
    times = [t / parts / program.depth for t in times]
    mean = sum(times) / len(times)
    found = row(f"osu {name}, {flavour}, {sync}, {label(size)}", times)
    found.update(size=size, program=name, window=flavour, sync=sync, iterations=calls)
    for key, value in (("mean", mean), ("min", min(times)), ("max", max(times)), ("p99", percentile99(times))):
        found[key] = round(1e6 * value, 3)
    if program.kind == "bw":
        found["MB/s"] = round((2 if program.both else 1) * size / mean / 1e6, 2)
    return found


def percentile99(values):
    """Return the value below which 99 % of the values lie."""
    return sorted(values)[(len(values) * 99 + 99) // 100 - 1]


def sizes_of(program, sizes, settings):
    """Return the sizes that a program can be run with, of those asked for."""
    if len(program.sizes) == 1:
        return program.sizes
    item = np.dtype(TYPES[settings.type]).itemsize if "ccumulate" in program.operation else 1
    return tuple(size for size in sizes or program.sizes if size % item == 0)


def combinations(names, flavours, syncs):
    """Yield the programs with the windows and synchronisations that they are to be run with."""
    for name in names:
        program = PROGRAMS[name]
        for flavour in flavours:
            for sync in syncs or (program.sync,):
                if sync in program.syncs:
                    yield name, flavour, sync


def osu(MPI, comm, wanted, sizes, settings):
    """Run programs on ranks 0 and 1, one after the other, and yield a row for each size."""
    if comm.size < 2:
        raise SystemExit("osu: it takes 2 ranks, and there is 1: use -n 2")
    pair = comm.Split(0 if comm.rank < 2 else MPI.UNDEFINED)
    for name, flavour, sync in wanted:
        if comm.rank < 2:
            try:
                for size in sizes_of(PROGRAMS[name], sizes, settings):
                    yield one_size(MPI, pair, name, flavour, sync, size, settings)
            except NotImplementedError as error:
                what = f"osu {name}, {flavour}, {sync}"
                yield {**absent(what, error), "program": name, "window": flavour, "sync": sync}
    if pair != MPI.COMM_NULL:
        pair.Free()
    comm.Barrier()


# What OSU calls them in its heading.
WINDOW_CALLS = {
    "create": "MPI_Win_create",
    "allocate": "MPI_Win_allocate",
    "dynamic": "MPI_Win_create_dynamic",
    "shared": "MPI_Win_allocate_shared",
}
SYNC_CALLS = {
    "lock": "MPI_Win_lock/unlock",
    "lock_all": "MPI_Win_lock_all/unlock_all",
    "flush": "MPI_Win_flush",
    "flush_local": "MPI_Win_flush_local",
    "fence": "MPI_Win_fence",
    "pscw": "MPI_Win_post/start/complete/wait",
}
assert set(WINDOW_CALLS) == set(FLAVOURS) and set(SYNC_CALLS) == set(SYNCS)


class Printer:
    """Writes rows as OSU does, with more columns."""

    def __init__(self, library, python, check):
        self.about, self.check, self.last = f"{library}, Python {python}", check, None

    def __call__(self, found):
        """Print a row, after the heading if it is the first one of its kind."""
        kind = found["program"], found["window"], found["sync"]
        if kind != self.last:
            self.last = kind
            self._heading(*kind)
        if "problem" in found:
            print(f"{found['problem']}: {found['detail']}", flush=True)
            return
        rate = [f"{found['MB/s']:>18.2f}"] if "MB/s" in found else []
        times = [found["mean"], found["min"], found["us"], found["p99"], found["max"]]
        line = f"{found['size']:<10}" + "".join(rate) + "".join(f"{us:>14.3f}" for us in times)
        if self.check:
            line += "Pass".rjust(12) if found["valid"] else "Fail".rjust(12)
        print(line, flush=True)

    def _heading(self, name, flavour, sync):
        program = PROGRAMS[name]
        what = {"latency": "latency", "bw": "bandwidth"}[program.kind]
        if program.both:
            what = f"bi-directional {what}"
        print(f"# osu_{name}: MPI_{program.operation} {what}, {self.about}")
        print(f"# Window creation: {WINDOW_CALLS[flavour]}")
        print(f"# Synchronization: {SYNC_CALLS[sync]}")
        # Times of bandwidth programs are those of one operation of a window.
        columns = ["Bandwidth (MB/s)".rjust(18)] if program.kind == "bw" else []
        columns += [text.rjust(14) for text in ("Latency (us)", "Min", "P50", "P99", "Max")]
        print("# Size".ljust(10) + "".join(columns) + ("Validation".rjust(12) if self.check else ""), flush=True)
