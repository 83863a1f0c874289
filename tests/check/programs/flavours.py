"""Windows of every flavour in every kind of epoch."""

import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


other = 1 - rank


def _created():
    """Return a window over an array, the array, and the place of its first element at the other rank."""
    part = np.zeros(8)
    return MPI.Win.Create(part, 8, comm=world), part, 0


def _shared():
    win = MPI.Win.Allocate_shared(64, 8, comm=world)
    return win, np.frombuffer(win, "f8"), 0


def _attached():
    part, win = np.zeros(8), MPI.Win.Create_dynamic(comm=world)
    win.Attach(part)
    return win, part, world.allgather(MPI.Get_address(part))[other]


def _group():
    return world.group.Incl([other])


def created_fence_put():  # check: clean n=2
    win, part, first = _created()
    win.Fence()
    win.Put(np.ones(2), other, first + 3)
    assert part[:3].sum() == 0.0
    win.Fence()
    assert part[3:5].tolist() == [1.0, 1.0]
    win.Free()


def created_fence_put_loaded():  # check: local-access n=2
    win, part, first = _created()
    win.Fence()
    win.Put(np.ones(2), other, first + 3)  # 1: Put
    print(part[:4])  # 2: load
    win.Fence()
    win.Free()


def created_started_accumulate():  # check: clean n=2
    win, part, first = _created()
    win.Post(_group())
    win.Start(_group())
    win.Accumulate(np.ones(8), other, first)
    win.Complete()
    win.Wait()
    assert part.sum() == 8.0
    win.Free()


def created_started_accumulate_loaded_after_complete():  # check: local-access n=2
    win, part, first = _created()
    win.Post(_group())
    win.Start(_group())
    win.Accumulate(np.ones(8), other, first)  # 1: Accumulate
    win.Complete()
    print(part.sum())  # 2: load
    win.Wait()
    win.Free()


def created_locked_gets():  # check: clean n=2
    win, part, first = _created()
    got = np.zeros(8)
    win.Lock(other, MPI.LOCK_SHARED)
    win.Get(got, other, first)
    win.Unlock(other)
    assert got.sum() == part.sum() == 0.0
    win.Free()


def created_locked_get_stored():  # check: local-access n=2
    win, part, first = _created()
    got = np.zeros(8)
    win.Lock(other, MPI.LOCK_SHARED)
    win.Get(got, other, first)  # 1: Get
    win.Unlock(other)
    part[7] = 1.0  # 2: store
    win.Free()


def created_all_locked_rput():  # check: clean n=2
    win, part, first = _created()
    win.Lock_all()
    win.Rput(np.full(4, 2.0), other, first + 4).Wait()
    win.Flush(other)
    world.Barrier()
    win.Sync()
    assert part[4:].sum() == 8.0
    win.Unlock_all()
    win.Free()


def created_all_locked_rput_without_flush():  # check: flush-missing n=2
    win, part, first = _created()
    win.Lock_all()
    win.Rput(np.full(4, 2.0), other, first + 4).Wait()  # 1: Rput
    world.Barrier()
    win.Sync()
    print(part[4:].sum())  # 2: load
    win.Unlock_all()
    win.Free()


def shared_fence_put():  # check: clean n=2 near
    win, part, first = _shared()
    win.Fence()
    win.Put(np.ones(2), other, first)
    win.Fence()
    assert part[:2].sum() == 2.0
    win.Free()


def shared_fence_put_stored():  # check: local-access n=2 near
    win, part, first = _shared()
    win.Fence()
    win.Put(np.ones(2), other, first)  # 1: Put
    part[1:3] = 4.0  # 2: store
    win.Fence()
    win.Free()


def shared_started_get():  # check: clean n=2 near
    win, part, first = _shared()
    got = np.zeros(4)
    part[:] = rank
    win.Post(_group())
    win.Start(_group())
    win.Get(got, other, first)
    win.Complete()
    win.Wait()
    assert got.sum() == 4 * other
    win.Free()


def shared_started_get_loaded():  # check: result-early n=2 near
    win, part, first = _shared()
    got = np.zeros(4)
    part[:] = rank
    win.Post(_group())
    win.Start(_group())
    win.Get(got, other, first)  # 1: Get
    print(got.sum())  # 2: load
    win.Complete()
    win.Wait()
    win.Free()


def shared_locked_puts():  # check: clean n=3 near
    win, _part, first = _shared()
    win.Lock(0)
    win.Put(np.full(1, float(rank)), 0, first)
    win.Unlock(0)
    win.Lock(0)
    win.Put(np.full(1, -1.0), 0, first)
    win.Unlock(0)
    win.Free()


def shared_locked_puts_in_shared_locks():  # check: target-conflict n=3 near
    win, _part, first = _shared()
    win.Lock(0, MPI.LOCK_SHARED)
    win.Put(np.full(1, float(rank)), 0, first)  # 1: Put, 2: Put
    win.Unlock(0)
    win.Free()


def shared_all_locked_atomics():  # check: clean n=3 near
    win, _part, _first = _shared()
    old = np.zeros(1, "i8")
    win.Lock_all()
    win.Fetch_and_op(np.ones(1, "i8"), old, 0, 7)
    win.Flush(0)
    print(old)
    win.Unlock_all()
    win.Free()


def shared_all_locked_atomics_beside_a_store():  # check: local-access n=3 near
    win, part, _first = _shared()
    old = np.zeros(1, "i8")
    win.Lock_all()
    if rank > 0:
        win.Fetch_and_op(np.ones(1, "i8"), old, 0, 7)  # 1: Fetch_and_op
    else:
        part[7] = 0.0  # 2: store
    win.Unlock_all()
    win.Free()


def attached_fence_accumulate():  # check: clean n=2
    win, part, first = _attached()
    win.Fence()
    win.Accumulate(np.ones(8), other, first)
    win.Accumulate(np.ones(8), other, first)
    win.Fence()
    assert part.sum() == 16.0
    win.Detach(part)
    win.Free()


def attached_fence_accumulate_and_put():  # check: same-origin-order n=2
    win, part, first = _attached()
    win.Fence()
    win.Accumulate(np.ones(8), other, first)  # 1: Accumulate
    win.Put(np.ones(1), other, first + 56)  # 2: Put
    win.Fence()
    win.Detach(part)
    win.Free()


def attached_started_put():  # check: clean n=2
    win, part, first = _attached()
    win.Post(_group())
    win.Start(_group())
    win.Put(np.ones(4), other, first)
    win.Put(np.zeros(4), other, first + 32)
    win.Complete()
    win.Wait()
    assert part.sum() == 4.0
    win.Detach(part)
    win.Free()


def attached_started_put_overlapping():  # check: same-origin-order n=2
    win, part, first = _attached()
    win.Post(_group())
    win.Start(_group())
    win.Put(np.ones(4), other, first)  # 1: Put
    win.Put(np.zeros(4), other, first + 24)  # 2: Put
    win.Complete()
    win.Wait()
    win.Detach(part)
    win.Free()


def attached_locked_put():  # check: clean n=2
    win, part, first = _attached()
    mine = np.ones(8)
    win.Lock(other)
    win.Put(mine, other, first)
    win.Unlock(other)
    mine[:] = 0.0
    world.Barrier()
    assert part.sum() == 8.0
    win.Detach(part)
    win.Free()


def attached_locked_put_stored():  # check: origin-reuse n=2
    win, part, first = _attached()
    mine = np.ones(8)
    win.Lock(other)
    win.Put(mine, other, first)  # 1: Put
    mine[:] = 0.0  # 2: store
    win.Unlock(other)
    world.Barrier()
    win.Detach(part)
    win.Free()


def attached_all_locked_swap():  # check: clean n=2
    win, part, first = _attached()
    words, old = part.view("i8"), np.zeros(1, "i8")
    win.Lock_all()
    win.Compare_and_swap(np.ones(1, "i8"), np.zeros(1, "i8"), old, other, first)
    win.Flush(other)
    world.Barrier()
    win.Sync()
    assert words[0] == 1
    win.Unlock_all()
    win.Detach(part)
    win.Free()


def attached_all_locked_swap_loaded():  # check: result-early n=2
    win, part, first = _attached()
    old = np.zeros(1, "i8")
    win.Lock_all()
    win.Compare_and_swap(np.ones(1, "i8"), np.zeros(1, "i8"), old, other, first)  # 1: Compare_and_swap
    print(old)  # 2: load
    win.Unlock_all()
    world.Barrier()
    win.Detach(part)
    win.Free()
