"""A collective reset, and Free after it, with megabytes under way: nothing touches memory that is the program's again."""

import os

import pytest

# What rank 0 leaves unfinished. The windows' memory is 32 MiB at rank 1, and rank 0 has
# as much in ``mine``.
LEFT = {
    "Rget": "held.append(win.Rget(mine, 1))",
    "Get": "win.Get(mine, 1)",
    "pieces": "[win.Get(mine[i : i + 4096], 1, i) for i in range(0, 4 << 20, 4096)]",
    "Rput": "held.append(win.Rput(mine, 1))",
    "Get_accumulate": "win.Get_accumulate(mine[: 8 << 20], mine[8 << 20 : 16 << 20], 1)",
    "Isend": "held.append(world.Isend(mine, 1))",
    "Issend": "held.extend(world.Issend(mine[i : i + 4096], 1) for i in range(0, 4 << 20, 4096))",
    "many": "held.extend(world.Isend(mine[i : i + 4096], 1) for i in range(0, 8 << 20, 4096))",
    "Irecv": "held.append(world.Irecv(mine, 1))",
    "Iallreduce": "held.append(world.Iallreduce(mine, other))",
}
# What rank 1 does meanwhile.
MEETS = {
    "Irecv": "held.append(world.Isend(mine, 0))",
    "Isend": "held.append(world.Irecv(mine, 0))",
    "Iallreduce": "held.append(world.Iallreduce(mine, other))",
}


@pytest.mark.parametrize("n", [2, 4] if os.environ.get("FAULTS") == "whole" else [2])
@pytest.mark.parametrize("over", ["copies", "messages", "tcp"])
@pytest.mark.parametrize("left", LEFT)
def test_reset_and_free(mpirun, n, over, left):
    env = {"messages": {"GORMAPY_ONE_COPY": "0"}, "tcp": {"GORMAPY_FABRIC": "tcp"}}.get(over, {})
    result = mpirun(
        n,
        f"""
        import mmap
        import numpy as np
        import gormapy
        from rankside import *
        N = 32 << 20

        def pages():
            # Unmapped as soon as it is free, so that who still touches it faults.
            return np.frombuffer(mmap.mmap(-1, N), "u1") if rank < 2 else np.zeros(8, "u1")

        for turn in range(3):
            memory, mine, other, held = pages(), pages(), pages(), []
            win = MPI.Win.Create(memory, 1, comm=world)
            world.Barrier()
            if rank == 0:
                win.Lock(1)
                {LEFT[left]}
            elif rank == 1:
                {MEETS.get(left, "pass")}
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
        """,
        env=env,
        timeout=20,
    )
    assert result.lines == ["done"] * n
