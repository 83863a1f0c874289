"""Operations with requests: every way to complete them, together with flushes and with requests of other kinds."""

import numpy as np
from onesided import MPI, Window, case, main, rank, same, size, world

right, left = (rank + 1) % size, (rank - 1) % size
Request = MPI.Request


@case
def every_form_and_every_wait(flavour):
    count = 8
    waits = {
        "Wait": lambda rs: [r.Wait() for r in rs],
        "Waitall": Request.Waitall,
        "Waitany": lambda rs: sorted(Request.Waitany(rs) for _ in range(len(rs))),
        "Waitsome": lambda rs: some(rs, Request.Waitsome),
        "Test": lambda rs: [until(r.Test) for r in rs],
        "Testall": lambda rs: until(lambda: Request.Testall(rs)),
        "Testany": lambda rs: [until(lambda: any_of(rs)) for _ in rs],
        "Testsome": lambda rs: some(rs, Request.Testsome),
        "wait": lambda rs: [r.wait() for r in rs],
        "waitall": Request.waitall,
    }
    with Window(flavour, count, "i4") as w:
        for name, wait in waits.items():
            values = np.arange(count, dtype="i4") + rank
            theirs = np.arange(count, dtype="i4") + left
            w.win.Lock_all()
            puts = [w.win.Rput(values[i : i + 1], right, w.at(right, i)) for i in range(count)]
            wait(puts)
            assert all(r == MPI.REQUEST_NULL for r in puts), name
            w.win.Flush(right)
            world.Barrier()
            w.win.Sync()
            same(w.mine, theirs, name)
            got = np.full(count, -1, "i4")
            wait([w.win.Rget(got[i : i + 1], right, w.at(right, i)) for i in range(count)])
            same(got, values, name)
            world.Barrier()
            wait([w.win.Raccumulate(values[i : i + 1], right, w.at(right, i)) for i in range(count)])
            w.win.Flush(right)
            old = np.full(count, -1, "i4")
            ones = np.ones(count, "i4")
            wait([
                w.win.Rget_accumulate(ones[i : i + 1], old[i : i + 1], right, w.at(right, i), MPI.PROD)
                for i in range(count)
            ])  # fmt: skip
            same(old, 2 * values, name)
            wait([
                w.win.Rget_accumulate(ones[i : i + 1], old[i : i + 1], right, w.at(right, i), MPI.REPLACE)
                for i in range(count)
            ])  # fmt: skip
            w.win.Unlock_all()
            w.settle()
            same(w.mine, np.ones(count), name)
            world.Barrier()


def until(test):
    while not test():
        world.Iprobe()
    return True


def any_of(requests):
    index, flag = Request.Testany(requests)
    return flag and index != MPI.UNDEFINED


def some(requests, call):
    done = []
    while len(done) < len(requests):
        done += call(requests) or []
    assert sorted(done) == list(range(len(requests)))
    assert call(requests) is None  # none of them is active any more


@case
def completed_by_flush_before_wait(flavour):
    with Window(flavour, 64, "i8") as w:
        w.win.Lock(right, MPI.LOCK_SHARED)
        values = np.arange(64) + rank
        requests = [w.win.Rput(values[i : i + 1], right, w.at(right, i)) for i in range(64)]
        w.win.Flush(right)
        assert Request.Testall(requests)
        got = np.zeros(64, "i8")
        request = w.win.Rget(got, right, (w.at(right), 64, MPI.INT64_T))
        w.win.Flush_local(right)
        same(got, values)
        request.Wait()
        requests = [w.win.Raccumulate(values, right, w.at(right))]
        w.win.Flush_all()
        requests[0].Wait()
        w.win.Unlock(right)
        w.settle()
        same(w.mine, 2 * (np.arange(64) + left))


@case
def waited_for_after_the_epoch(flavour):
    """Unlock completes the operation; the request still has to be waited for."""
    with Window(flavour, 1000, "i8") as w:
        w.win.Lock(right)
        values, got = np.full(1000, rank), np.zeros(1000, "i8")
        put = w.win.Rput(values, right, (w.at(right), 1000, MPI.INT64_T))
        w.win.Unlock(right)
        w.settle()
        same(w.mine, np.full(1000, left))
        w.win.Lock(right, MPI.LOCK_SHARED)
        get = w.win.Rget(got, right, (w.at(right), 1000, MPI.INT64_T))
        w.win.Unlock(right)
        same(got, values)
        status = MPI.Status()
        get.Wait(status)
        put.Wait()
        assert not status.Is_cancelled()
        assert put == get == MPI.REQUEST_NULL


@case
def together_with_other_requests(flavour):
    """One Waitall over one-sided requests, messages, a collective and a null request."""
    with Window(flavour, 2, "i8") as w:
        message, got, total = np.zeros(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
        mine = np.array([rank])
        w.mine[1] = rank + 40
        world.Barrier()
        w.win.Lock_all()
        requests = [
            world.Irecv(message, left, 5),
            w.win.Rput(mine, right, w.at(right)),
            MPI.REQUEST_NULL,
            world.Isend(mine, right, 5),
            w.win.Rget(got, right, w.at(right, 1)),
            world.Iallreduce(mine, total),
        ]
        Request.Waitall(requests)
        same([message[0], got[0], total[0]], [left, right + 40, sum(range(size))])
        w.win.Unlock_all()
        w.settle()
        assert w.mine[0] == left


@case
def nobody_and_nothing(flavour):
    """Requests of operations on PROC_NULL and of zero elements complete."""
    with Window(flavour, 2, "f8") as w:
        one, old, none = np.ones(1), np.full(1, 7.0), np.zeros(0)
        w.win.Lock_all()
        requests = []
        for target, origin, result in ((MPI.PROC_NULL, one, old), (right, none, none.copy())):
            place = 0 if target == MPI.PROC_NULL else w.at(target)
            requests += [
                w.win.Rput(origin, target, place),
                w.win.Rget(result, target, place),
                w.win.Raccumulate(origin, target, place),
                w.win.Rget_accumulate(origin, result, target, place),
            ]
        Request.Waitall(requests)
        w.win.Unlock_all()
        assert old[0] == 7
        w.settle()
        assert not w.mine.any()


@case
def many_at_once(flavour):
    """Hundreds of requests in flight, waited for in the other order."""
    n = 600
    with Window(flavour, n, "i4") as w:
        values = np.arange(n, dtype="i4") + rank
        w.win.Lock_all()
        requests = [w.win.Rput(values[i : i + 1], right, w.at(right, i)) for i in range(n)]
        for request in reversed(requests):
            request.Wait()
        got = np.zeros(n, "i4")
        w.win.Flush(right)
        requests = [w.win.Rget(got[i : i + 1], right, w.at(right, i)) for i in range(n)]
        Request.Waitall(requests)
        same(got, values)
        w.win.Unlock_all()


@case
def their_memory_is_kept(flavour):
    """The origin may be dropped by the program at once: the request keeps it."""
    import gc

    with Window(flavour, 1 << 16, "i8") as w:
        w.win.Lock(right)
        request = w.win.Rput(np.full(1 << 16, rank), right, (w.at(right), 1 << 16, MPI.INT64_T))
        gc.collect()
        np.full(1 << 16, -1)  # where the memory would be now
        request.Wait()
        w.win.Unlock(right)
        w.settle()
        same(w.mine, np.full(1 << 16, left))


@case
def derived_types(flavour):
    column = MPI.INT.Create_vector(4, 1, 4).Commit()
    with Window(flavour, 16, "i4") as w:
        values, got = np.arange(4, dtype="i4"), np.zeros((4, 4), "i4")
        w.win.Lock(right)
        w.win.Rput([values, 4, MPI.INT], right, (w.at(right, 1), 1, column)).Wait()
        w.win.Flush(right)
        w.win.Raccumulate([values, 4, MPI.INT], right, (w.at(right, 1), 1, column)).Wait()
        w.win.Flush(right)
        w.win.Rget([got.reshape(-1)[2:], 1, column], right, (w.at(right, 1), 1, column)).Wait()
        w.win.Unlock(right)
        same(got[:, 2], 2 * values)
        assert got.sum() == 2 * values.sum()
        w.settle()
        same(w.mine.reshape(4, 4)[:, 1], 2 * values)
    column.Free()


main()
