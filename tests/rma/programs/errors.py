"""Every mistake is found before anything moves, with its class and a text; the window is as good as before.

With HANDLER=function in the environment, errors are heard by a function of the program too.
"""

import os

import numpy as np
from onesided import MPI, Window, case, fails, main, node_ranks, once, rank, same, size, world

right, left = (rank + 1) % size, (rank - 1) % size
COUNT = 8  # doubles in the window of each rank
HEARD = []
BY_FUNCTION = os.environ.get("HANDLER") == "function"
# Ranks of one node are reached as those of others are, if a network is chosen.
NETWORK = os.environ.get("GORMAPY_FABRIC", "auto") not in ("auto", "shm")


class Epoch:
    """How an epoch begins and ends, for all ranks."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end


EPOCHS = {
    "none": Epoch(lambda win: None, lambda win: None),
    "fence": Epoch(lambda win: win.Fence(), lambda win: win.Fence(MPI.MODE_NOSUCCEED)),
    "lock": Epoch(lambda win: win.Lock(right, MPI.LOCK_SHARED), lambda win: win.Unlock(right)),
    "exclusive": Epoch(lambda win: win.Lock(right), lambda win: win.Unlock(right)),
    "lock all": Epoch(lambda win: win.Lock_all(), lambda win: win.Unlock_all()),
    "start": Epoch(
        lambda win: (win.Post(only(left)), win.Start(only(right))), lambda win: (win.Complete(), win.Wait())
    ),
    "post": Epoch(lambda win: win.Post(only(left)), lambda win: (win.Start(only(right)), win.Complete(), win.Wait())),
}


def only(r):
    return world.Get_group().Incl([r])


def synchronisation():
    """Calls that need an epoch, in none or in one of another kind, and calls that must not come in one."""
    SYNC = MPI.ERR_RMA_SYNC
    one, old = np.ones(1), np.ones(1)
    number, other = np.ones(1, "i8"), np.zeros(1, "i8")
    operations = {
        "Put": lambda w: w.win.Put(one, right, w.at(right)),
        "Get": lambda w: w.win.Get(old, right, w.at(right)),
        "Accumulate": lambda w: w.win.Accumulate(one, right, w.at(right)),
        "Get_accumulate": lambda w: w.win.Get_accumulate(one, old, right, w.at(right)),
        "Fetch_and_op": lambda w: w.win.Fetch_and_op(one, old, right, w.at(right)),
        "Compare_and_swap": lambda w: w.win.Compare_and_swap(number, other, other, right, w.at(right)),
    }
    with_requests = {
        "Rput": lambda w: w.win.Rput(one, right, w.at(right)),
        "Rget": lambda w: w.win.Rget(old, right, w.at(right)),
        "Raccumulate": lambda w: w.win.Raccumulate(one, right, w.at(right)),
        "Rget_accumulate": lambda w: w.win.Rget_accumulate(one, old, right, w.at(right)),
    }
    flushes = {
        "Flush": lambda w: w.win.Flush(right),
        "Flush_local": lambda w: w.win.Flush_local(right),
        "Flush_all": lambda w: w.win.Flush_all(),
        "Flush_local_all": lambda w: w.win.Flush_local_all(),
    }
    for call in (operations | with_requests).values():
        yield "none", SYNC, ["epoch" if call in operations.values() else str(right)], call
        yield "post", SYNC, [], call
    for epoch in ("fence", "start"):
        for call in with_requests.values():
            yield epoch, SYNC, ["Lock"], call
        for name, call in flushes.items():
            yield epoch, SYNC, [name.replace("_local", "")], call
    for name, call in flushes.items():
        yield "none", SYNC, [name.replace("_local", "")], call
    if size > 1:
        for call in (operations | with_requests).values():
            yield "lock", SYNC, [rank], lambda w, c=call: others(w, c)
        for epoch in ("start",):
            yield epoch, SYNC, [rank], lambda w: w.win.Put(one, rank, w.at(rank)) if size > 1 else None
    # locks
    for epoch in ("lock", "exclusive"):
        yield epoch, SYNC, [right], lambda w: w.win.Lock(right)
        yield epoch, SYNC, [right], lambda w: w.win.Lock(right, MPI.LOCK_SHARED)
        yield epoch, SYNC, [], lambda w: w.win.Lock_all()
        yield epoch, SYNC, [], lambda w: w.win.Unlock_all()
        yield epoch, SYNC, [], lambda w: w.win.Complete()
        yield epoch, SYNC, [], lambda w: w.win.Start(only(right))
    yield "none", SYNC, [right], lambda w: w.win.Unlock(right)
    yield "none", SYNC, ["Unlock_all"], lambda w: w.win.Unlock_all()
    yield "fence", SYNC, [right], lambda w: w.win.Unlock(right)
    yield "lock all", SYNC, ["Lock_all"], lambda w: w.win.Lock(right)
    yield "lock all", SYNC, ["Lock_all"], lambda w: w.win.Lock_all()
    yield "lock all", SYNC, ["Unlock_all"], lambda w: w.win.Unlock(right)
    yield "lock all", SYNC, [], lambda w: w.win.Start(only(right))
    # general active target
    yield "none", SYNC, ["Start"], lambda w: w.win.Complete()
    yield "none", SYNC, ["Post"], lambda w: w.win.Wait()
    yield "none", SYNC, ["Post"], lambda w: w.win.Test()
    yield "start", SYNC, ["Start"], lambda w: w.win.Start(only(right))
    yield "start", SYNC, [], lambda w: w.win.Lock(right)
    yield "start", SYNC, [], lambda w: w.win.Lock_all()
    yield "start", SYNC, [], lambda w: w.win.Unlock(right)
    yield "start", SYNC, ["Post"], lambda w: w.win.Post(only(left))
    yield "post", SYNC, ["Post"], lambda w: w.win.Post(only(left))
    # fences and Free
    for epoch in ("lock", "exclusive", "lock all", "start", "post"):
        yield epoch, SYNC, ["Fence"], lambda w: w.win.Fence()
        yield epoch, SYNC, ["Free"], lambda w: w.win.Free()


def others(w, call):
    """Make a call for a target that is not the one that is locked."""
    kept = globals()["right"]
    globals()["right"] = rank
    try:
        call(w)
    finally:
        globals()["right"] = kept


def arguments(flavour):
    """Ranks, displacements, counts, lock types, assertions, types and ops."""
    a, b, long = np.ones(2), np.ones(2), np.zeros(COUNT + 1)
    number, other, old = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    mixed = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT64_T]).Commit()
    pair = MPI.DOUBLE.Create_contiguous(2).Commit()
    twice = MPI.Op.Create(lambda x, y, t: None)
    calls = {
        "Put": lambda w, r, t: w.win.Put(a, r, t),
        "Get": lambda w, r, t: w.win.Get(b, r, t),
        "Accumulate": lambda w, r, t: w.win.Accumulate(a, r, t),
        "Get_accumulate": lambda w, r, t: w.win.Get_accumulate(a, b, r, t),
        "Rput": lambda w, r, t: w.win.Rput(a, r, t),
        "Rget": lambda w, r, t: w.win.Rget(b, r, t),
        "Raccumulate": lambda w, r, t: w.win.Raccumulate(a, r, t),
        "Rget_accumulate": lambda w, r, t: w.win.Rget_accumulate(a, b, r, t),
    }
    singles = {
        "Fetch_and_op": lambda w, r, d: w.win.Fetch_and_op(a[:1], b[:1], r, d),
        "Compare_and_swap": lambda w, r, d: w.win.Compare_and_swap(number, other, old, r, d),
    }
    there = [8 * COUNT, f"rank {right}"] if flavour != "dynamic" else [f"rank {right}"]
    for call in (*calls.values(), *singles.values()):
        for bad in (size, size + 100, -77):
            yield "lock all", MPI.ERR_RANK, [bad], lambda w, c=call, r=bad: c(w, r, 0)
        yield "lock", MPI.ERR_RMA_RANGE, there, lambda w, c=call: c(w, right, w.at(right, COUNT))
        yield "lock", MPI.ERR_RMA_RANGE, there, lambda w, c=call: c(w, right, w.at(right, COUNT + 1000))
        yield "lock", MPI.ERR_RMA_RANGE, [], lambda w, c=call: c(w, right, 2**62)
        yield "lock", MPI.ERR_DISP, [-1], lambda w, c=call: c(w, right, -1)
    for call in calls.values():
        yield "lock", MPI.ERR_RMA_RANGE, there, lambda w, c=call: c(w, right, w.at(right, COUNT - 1))
        yield "lock", MPI.ERR_COUNT, [-2], lambda w, c=call: c(w, right, (w.at(right), -2, MPI.DOUBLE))
        yield "lock", MPI.ERR_TYPE, [], lambda w, c=call: c(w, right, (w.at(right), 3, MPI.DOUBLE))
        yield "lock", MPI.ERR_TYPE, [], lambda w, c=call: c(w, right, (w.at(right), 1, MPI.DATATYPE_NULL))
    for call in (w_put, w_get):
        yield "lock", MPI.ERR_RMA_RANGE, there, lambda w, c=call: c(w, long, right, w.at(right))
        yield "lock", MPI.ERR_TYPE, [], lambda w, c=call: c(w, [a, 1, MPI.DATATYPE_NULL], right, w.at(right))
    # ops and types of accumulates
    for op in (MPI.BAND, MPI.LOR, MPI.MINLOC, MPI.NO_OP, MPI.OP_NULL, twice):
        yield "lock", MPI.ERR_OP, [], lambda w, o=op: w.win.Accumulate(a, right, w.at(right), o)
    for op in (MPI.BXOR, MPI.MAXLOC, MPI.OP_NULL, twice):
        yield "lock", MPI.ERR_OP, [], lambda w, o=op: w.win.Get_accumulate(a, b, right, w.at(right), o)
        yield "lock", MPI.ERR_OP, [], lambda w, o=op: w.win.Fetch_and_op(a[:1], b[:1], right, w.at(right), o)
        yield "lock", MPI.ERR_OP, [], lambda w, o=op: w.win.Raccumulate(a, right, w.at(right), o)
    yield "lock", MPI.ERR_TYPE, [], lambda w: w.win.Accumulate([a, 1, mixed], right, (w.at(right), 1, mixed))
    yield "lock", MPI.ERR_TYPE, [], lambda w: w.win.Accumulate(a, right, (w.at(right), 2, MPI.INT64_T))
    yield (
        *("lock", MPI.ERR_TYPE, []),
        lambda w: w.win.Get_accumulate([a, 2, MPI.DOUBLE], [old, 1, MPI.INT64_T], right, (w.at(right), 2, MPI.DOUBLE)),
    )
    yield "lock", MPI.ERR_TYPE, [], lambda w: w.win.Compare_and_swap(a[:1], b[:1], b[:1], right, w.at(right))
    yield "lock", MPI.ERR_TYPE, [], lambda w: w.win.Fetch_and_op([a, pair], [b, pair], right, w.at(right))
    # locks and assertions
    for bad in (77, 0, -1):
        yield "none", MPI.ERR_LOCKTYPE, [bad], lambda w, t=bad: w.win.Lock(right, t)
    for bad in (1, 1 << 20, -1):
        yield "none", MPI.ERR_ASSERT, [bad], lambda w, t=bad: w.win.Lock(right, MPI.LOCK_SHARED, t)
        yield "none", MPI.ERR_ASSERT, [bad], lambda w, t=bad: w.win.Lock_all(t)
        yield "none", MPI.ERR_ASSERT, [bad], lambda w, t=bad: w.win.Fence(t)
        yield "none", MPI.ERR_ASSERT, [bad], lambda w, t=bad: w.win.Post(only(left), t)
        yield "none", MPI.ERR_ASSERT, [bad], lambda w, t=bad: w.win.Start(only(right), t)
    for bad in (size, -55):
        yield "none", MPI.ERR_RANK, [bad], lambda w, r=bad: w.win.Lock(r)
        for call in ("Unlock", "Flush", "Flush_local"):
            yield "lock all", MPI.ERR_RANK, [bad], lambda w, r=bad, c=call: getattr(w.win, c)(r)
    yield "none", MPI.ERR_GROUP, [], lambda w: w.win.Post(MPI.GROUP_NULL)
    yield "none", MPI.ERR_GROUP, [], lambda w: w.win.Start(MPI.GROUP_NULL)
    # what belongs to another flavour
    if flavour == "dynamic":
        yield "none", MPI.ERR_RMA_ATTACH, [], lambda w: w.win.Detach(np.zeros(3))
        yield "none", MPI.ERR_RMA_ATTACH, ["overlap"], lambda w: w.win.Attach(w.memory[8:16])
        yield "lock", MPI.ERR_RMA_RANGE, ["ttach"], lambda w: w.win.Put(a, right, 4096)
    else:
        yield "none", MPI.ERR_RMA_FLAVOR, ["Create_dynamic"], lambda w: w.win.Attach(np.zeros(3))
        yield "none", MPI.ERR_RMA_FLAVOR, ["Create_dynamic"], lambda w: w.win.Detach(np.zeros(3))


def w_put(w, origin, target, place):
    w.win.Put(origin, target, place)


def w_get(w, origin, target, place):
    w.win.Get(origin, target, place)


def still_usable(w, content):
    """Check that nothing has moved, and put and get in every kind of epoch."""
    same(w.mine, content)
    world.Barrier()
    values, got = np.arange(COUNT) + 10.0 * rank, np.zeros(COUNT)
    w.win.Lock(right)
    w.win.Put(values, right, w.at(right))
    w.win.Flush(right)
    w.win.Get(got, right, w.at(right))
    w.win.Unlock(right)
    same(got, values)
    w.win.Fence(MPI.MODE_NOPRECEDE)
    same(w.mine, values + 10.0 * (left - rank))
    w.win.Fence(MPI.MODE_NOSTORE | MPI.MODE_NOSUCCEED)
    w.mine[:] = content
    w.win.Fence(MPI.MODE_NOPRECEDE | MPI.MODE_NOSUCCEED)


def try_all(flavour, mistakes):
    """Make each mistake in its epoch."""
    content = 100.0 + np.arange(COUNT) + 1000 * rank
    problems = []
    with Window(flavour, COUNT) as w:
        if BY_FUNCTION:
            w.win.Set_errhandler(MPI.Win.Create_errhandler(lambda win, code: HEARD.append(MPI.Get_error_class(code))))
        w.mine[:] = content
        world.Barrier()
        for i, (epoch, error_class, words, call) in enumerate(mistakes):
            EPOCHS[epoch].begin(w.win)
            HEARD.clear()
            # What is attached on another node only that node knows.
            late = flavour == "dynamic" and error_class == MPI.ERR_RMA_RANGE and (NETWORK or right not in node_ranks)
            where = f"mistake {i} (in epoch: {epoch}; line {call.__code__.co_firstlineno})"
            try:
                with fails(error_class, *([f"rank {right}"] if late else words)):
                    made = call(w)
                    if late:
                        w.win.Flush(right) if made is None else made.Wait()
                if BY_FUNCTION:
                    same(HEARD, [error_class], "what the handler heard")
                same(w.mine, content)
            except Exception as error:
                problems.append(f"{where}: {error!r:.300}")
            EPOCHS[epoch].end(w.win)
            w.mine[:] = content
            if i % 7 == 0 or epoch in ("start", "post", "none"):
                still_usable(w, content)
        still_usable(w, content)
        assert not problems, "\n".join(problems)


@case
def wrong_synchronisation(flavour):
    try_all(flavour, synchronisation())


@case
def wrong_arguments(flavour):
    try_all(flavour, arguments(flavour))


@case
def buffers_that_do_not_do(flavour):
    """What is no memory, can't be written, or has gaps, is refused by Python's exceptions."""
    readonly = np.ones(2)
    readonly.flags.writeable = False
    gaps = np.ones((4, 4))[:, 0]
    fine, number = np.ones(2), np.ones(1, "i8")
    content = np.arange(COUNT) + 1.5
    calls = [
        (BufferError, lambda w: w.win.Get(readonly, right, w.at(right))),
        (BufferError, lambda w: w.win.Get(b"12345678", right, w.at(right))),
        (BufferError, lambda w: w.win.Rget(readonly, right, w.at(right))),
        (BufferError, lambda w: w.win.Get_accumulate(fine, readonly, right, w.at(right))),
        (BufferError, lambda w: w.win.Rget_accumulate(fine, readonly, right, w.at(right))),
        (BufferError, lambda w: w.win.Fetch_and_op(fine[:1], readonly[:1], right, w.at(right))),
        (BufferError, lambda w: w.win.Put(gaps, right, w.at(right))),
        (BufferError, lambda w: w.win.Get(gaps, right, w.at(right))),
        (BufferError, lambda w: w.win.Rput(gaps, right, w.at(right))),
        (BufferError, lambda w: w.win.Accumulate(gaps, right, w.at(right))),
        (TypeError, lambda w: w.win.Put(1.5, right, w.at(right))),
        (TypeError, lambda w: w.win.Put("text", right, w.at(right))),
        (TypeError, lambda w: w.win.Rput(object(), right, w.at(right))),
        (TypeError, lambda w: w.win.Put(fine, "1", w.at(right))),
        (TypeError, lambda w: w.win.Put(fine, 0.5, w.at(right))),
        (TypeError, lambda w: w.win.Put(fine)),
        (ValueError, lambda w: w.win.Put(fine, right, (1, 2, MPI.INT, 4))),
        (ValueError, lambda w: w.win.Put([fine, -1, MPI.DOUBLE], right, w.at(right))),
        (ValueError, lambda w: w.win.Put([fine, 1, 2, 3, 4], right, w.at(right))),
        (ValueError, lambda w: w.win.Fetch_and_op(fine, fine, right, w.at(right))),
        (ValueError, lambda w: w.win.Fetch_and_op(fine[:1], number, right, w.at(right))),
        (ValueError, lambda w: w.win.Compare_and_swap(number, fine[:1], number, right, w.at(right))),
    ]
    with Window(flavour, COUNT) as w:
        w.mine[:] = content
        world.Barrier()
        w.win.Lock_all()
        for i, (kind, call) in enumerate(calls):
            try:
                call(w)
            except kind as error:
                assert str(error), i
            else:
                raise AssertionError(f"{kind.__name__} expected of call {i}")
        w.win.Unlock_all()
        still_usable(w, content)


@once
def windows_that_can_not_be():
    """Each rank is told, at once, and the communicator stays usable."""
    readonly = np.ones(2)
    readonly.flags.writeable = False
    for kind, memory in (
        (BufferError, readonly),
        (BufferError, np.ones((4, 4))[:, 0]),
        (TypeError, 5),
        (TypeError, "no"),
    ):
        try:
            MPI.Win.Create(memory, comm=MPI.COMM_SELF)
        except kind:
            pass
        else:
            raise AssertionError(memory)
    good = np.zeros(4)
    for comm in (MPI.COMM_SELF, world):
        for error_class, make in [
            (MPI.ERR_DISP, lambda c: MPI.Win.Create(good, 0, comm=c)),
            (MPI.ERR_DISP, lambda c: MPI.Win.Create(good, -8, comm=c)),
            (MPI.ERR_DISP, lambda c: MPI.Win.Allocate(8, 0, comm=c)),
            (MPI.ERR_SIZE, lambda c: MPI.Win.Allocate(-1, comm=c)),
            (MPI.ERR_SIZE, lambda c: MPI.Win.Allocate_shared(-8, comm=c)),
        ][: 4 if len(node_ranks) < comm.size else None]:
            with fails(error_class):
                make(comm)
    for make in (
        lambda c: MPI.Win.Create(good, comm=c),
        lambda c: MPI.Win.Allocate(8, comm=c),
        lambda c: MPI.Win.Allocate_shared(8, comm=c),
        lambda c: MPI.Win.Create_dynamic(comm=c),
    ):
        with fails(MPI.ERR_COMM):
            make(MPI.COMM_NULL)
    with fails(MPI.ERR_SIZE, 1 << 47):
        MPI.Win.Allocate(1 << 47, comm=world)
    assert world.allreduce(1) == size
    win = MPI.Win.Allocate(8, comm=world)
    win.Free()


@case
def freed_windows(flavour):
    """Every call on a freed window and on WIN_NULL."""
    w = Window(flavour, COUNT)
    freed = w.win
    alias = MPI.Win(freed)
    w.free()
    one, number = np.ones(1), np.ones(1, "i8")
    calls = [
        ("Put", one, 0),
        ("Get", one, 0),
        ("Accumulate", one, 0),
        ("Get_accumulate", one, one, 0),
        ("Fetch_and_op", one, one, 0),
        ("Compare_and_swap", number, number, number, 0),
        ("Rput", one, 0),
        ("Rget", one, 0),
        ("Raccumulate", one, 0),
        ("Rget_accumulate", one, one, 0),
        ("Lock", 0),
        ("Unlock", 0),
        ("Lock_all",),
        ("Unlock_all",),
        ("Fence",),
        ("Flush", 0),
        ("Flush_all",),
        ("Flush_local", 0),
        ("Flush_local_all",),
        ("Sync",),
        ("Post", MPI.GROUP_EMPTY),
        ("Start", MPI.GROUP_EMPTY),
        ("Complete",),
        ("Wait",),
        ("Test",),
        ("Attach", one),
        ("Detach", one),
        ("Free",),
        ("Get_info",),
        ("Get_group",),
        ("Shared_query", 0),
        ("Get_attr", MPI.WIN_BASE),
        ("Get_errhandler",),
        ("Set_errhandler", MPI.ERRORS_RETURN),
        ("tomemory",),
    ]
    for win in (freed, alias, MPI.WIN_NULL):
        for name, *given in calls:
            if win is alias and name.endswith("errhandler"):
                continue  # it has one of its own, and that is all it is asked for
            try:
                with fails(MPI.ERR_WIN):
                    getattr(win, name)(*given)
            except Exception as error:
                raise AssertionError(f"{name} of {win}") from error


main()
