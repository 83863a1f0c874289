"""The programs of test_reset.py."""

import mmap

import numpy as np
from rankside import rank, size, world

import gormapy
from gormapy import MPI


# What rank 0 leaves unfinished. The windows' memory is 32 MiB at rank 1, and rank 0 has
# as much in ``mine``.
def partitioned(init, mine, held, parts):
    request = init(mine, 4, 1 - rank, 5)
    request.Start()
    for i in range(parts):
        request.Pready(i)
    held.append(request)


LEFT = {
    "Psend_init": lambda win, mine, other, held: partitioned(world.Psend_init, mine, held, 3),
    "Precv_init": lambda win, mine, other, held: partitioned(world.Precv_init, mine, held, 0),
    "Rget": lambda win, mine, other, held: held.append(win.Rget(mine, 1)),
    "Get": lambda win, mine, other, held: win.Get(mine, 1),
    "pieces": lambda win, mine, other, held: [win.Get(mine[i : i + 4096], 1, i) for i in range(0, 4 << 20, 4096)],
    "Rput": lambda win, mine, other, held: held.append(win.Rput(mine, 1)),
    "Get_accumulate": lambda win, mine, other, held: win.Get_accumulate(mine[: 8 << 20], mine[8 << 20 : 16 << 20], 1),
    "Isend": lambda win, mine, other, held: held.append(world.Isend(mine, 1)),
    "Issend": lambda win, mine, other, held: held.extend(
        world.Issend(mine[i : i + 4096], 1) for i in range(0, 4 << 20, 4096)
    ),
    "many": lambda win, mine, other, held: held.extend(
        world.Isend(mine[i : i + 4096], 1) for i in range(0, 8 << 20, 4096)
    ),
    "Irecv": lambda win, mine, other, held: held.append(world.Irecv(mine, 1)),
    "Iallreduce": lambda win, mine, other, held: held.append(world.Iallreduce(mine, other)),
}


def nothing(mine, other, held):
    pass


# What rank 1 does meanwhile.
MEETS = {
    "Psend_init": lambda mine, other, held: partitioned(world.Precv_init, mine, held, 0),
    "Precv_init": lambda mine, other, held: partitioned(world.Psend_init, mine, held, 2),
    "Irecv": lambda mine, other, held: held.append(world.Isend(mine, 0)),
    "Isend": lambda mine, other, held: held.append(world.Irecv(mine, 0)),
    "Iallreduce": lambda mine, other, held: held.append(world.Iallreduce(mine, other)),
}


def reset_and_free(left):
    def pages():
        """Return memory that is unmapped as soon as it is free, so that who still touches it faults."""
        return np.frombuffer(mmap.mmap(-1, 32 << 20), "u1") if rank < 2 else np.zeros(8, "u1")

    for turn in range(3):
        memory, mine, other, held = pages(), pages(), pages(), []
        win = MPI.Win.Create(memory, 1, comm=world)
        world.Barrier()
        if rank == 0:
            win.Lock(1)
            LEFT[left](win, mine, other, held)
        elif rank == 1:
            MEETS.get(left, nothing)(mine, other, held)
        gormapy.reset()
        if turn:
            win.Free()
        for request in held:
            try:  # it was complete before the reset, or was dropped by it
                request.Wait()
            except MPI.Exception as error:
                assert error.Get_error_class() in (MPI.ERR_PENDING, MPI.ERR_OTHER), error
        if not turn:  # the window of before the reset is as good as new
            win.Fence()
            if rank == 0:
                win.Put(np.full(100, 5, "u1"), 1)
            win.Fence()
            assert rank != 1 or (memory[:100] == 5).all()
            win.Free()
        del memory, mine, other, held, win
        world.Barrier()
        got = np.zeros(2)
        world.Sendrecv(np.full(2, float(rank)), (rank + 1) % size, 0, got, (rank - 1) % size, 0)
        assert (got == (rank - 1) % size).all()
        assert world.allreduce(1) == size
    print("done")
