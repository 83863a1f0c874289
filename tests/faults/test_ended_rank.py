"""A rank that ends cleanly while others wait for it gives them MPI_ERR_PROC_FAILED."""

import pytest

WAITS = {
    "recv": "world.Recv(np.zeros(1), source=1)",
    "pickled": "world.recv(source=1)",
    "irecv": "world.Irecv(np.zeros(1), source=1).Wait()",
    "persistent": "r = world.Recv_init(np.zeros(1), source=1); r.Start(); r.Wait()",
    "waitall": "MPI.Request.Waitall([world.Irecv(np.zeros(1), source=1) for i in range(3)])",
    "probe": "world.Probe(source=1)",
    "ssend": "world.Ssend(np.zeros(1), dest=1)",
    "rendezvous": "world.Send(np.zeros(1_000_000), dest=1)",
    "sendrecv": "world.Sendrecv(np.zeros(1), 1, 0, np.zeros(1), 1, 0)",
    "barrier": "world.Barrier()",
    "bcast": "world.Bcast(np.zeros(1), root=1)",
    "gather": "world.gather(rank, root=0); world.Barrier()",
    "allreduce": "world.Allreduce(np.ones(1), np.zeros(1))",
    "alltoall": "world.alltoall(list(range(size)))",
    "fence": "win.Fence()",
    "split": "world.Split(0)",
    "dup": "world.Dup()",
    "create": "MPI.Win.Create(np.zeros(4), comm=world)",
    "allocate": "MPI.Win.Allocate(64, comm=world)",
    "free": "win.Free()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_others_get_an_error(mpirun, wait):
    result = mpirun(
        3,
        f"""
        import os, time
        import numpy as np
        from rankside import *
        win = MPI.Win.Allocate(8, 1, comm=world)
        world.Barrier()
        if rank == 1:
            time.sleep(0.3)
            stamp("leaving")
            sys = __import__("sys")
            sys.exit(0)
        with fails(MPI.ERR_PROC_FAILED):
            try:
                {WAITS[wait]}
            except MPI.Exception as error:
                say("text", error)
                raise
        stamp(f"rank{{rank}}")
        # the error leaves a process that can go on by itself
        assert MPI.COMM_SELF.allreduce(7) == 7
        """,
    )
    texts = [line for line in result.lines if line.startswith("text ")]
    assert len(texts) == 2, str(result)
    assert all("rank 1" in text for text in texts), str(result)
    left = result.since("leaving")
    for r in (0, 2):
        assert left - result.since(f"rank{r}") < 3, str(result)


def test_messages_of_an_ended_rank_can_still_be_received(mpirun):
    mpirun(
        2,
        """
        import time
        import numpy as np
        from rankside import *
        if rank == 1:
            for i in range(10):
                world.Send(np.full(4, i), dest=0, tag=i)
        else:
            time.sleep(0.7)
            for i in range(10):
                a = np.zeros(4, int)
                world.Recv(a, source=1, tag=i)
                assert (a == i).all()
            with fails(MPI.ERR_PROC_FAILED, "rank 1"):
                world.Recv(a, source=1)
        """,
    )


def test_uninvolved_ranks_go_on(mpirun):
    mpirun(
        3,
        """
        import sys, time
        import numpy as np
        from rankside import *
        a = np.zeros(1)
        if rank == 1:
            sys.exit(0)
        time.sleep(0.5)
        other = 2 - rank
        for i in range(200):
            world.Sendrecv(np.ones(1), other, 0, a, other, 0)
        assert a[0] == 1
        """,
    )


def test_any_source_when_nobody_is_left(mpirun):
    mpirun(
        3,
        """
        import time
        import numpy as np
        from rankside import *
        if rank == 0:
            with fails(MPI.ERR_PROC_FAILED):
                world.Recv(np.zeros(1), source=MPI.ANY_SOURCE)
        else:
            time.sleep(0.2 * rank)
        """,
    )


def test_lock_held_by_an_ended_rank(mpirun):
    # one of those who wait is told that the holder's updates may be incomplete; nobody hangs
    result = mpirun(
        3,
        """
        import os, time
        import numpy as np
        from rankside import *
        win = MPI.Win.Allocate(8, 1, comm=world)
        if rank == 1:
            win.Lock(0)
            world.Barrier()
            os._exit(0)  # no finalisation: the lock stays where it is
        world.Barrier()
        begun = time.monotonic()
        try:
            win.Lock(0)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            say("told", error)
            win.Lock(0)  # it is free now
        win.Unlock(0)
        assert time.monotonic() - begun < 3
        """,
    )
    told = [line for line in result.lines if line.startswith("told")]
    assert len(told) == 1, str(result)
    assert "rank 1" in told[0], str(result)


def test_end_without_finalisation(mpirun):
    mpirun(
        2,
        """
        import os
        import numpy as np
        from rankside import *
        if rank == 1:
            os._exit(0)
        with fails(MPI.ERR_PROC_FAILED, "rank 1"):
            world.Recv(np.zeros(1), source=1)
        """,
    )


def test_rank_that_ends_without_ever_joining(mpirun):
    mpirun(
        3,
        """
        import os, sys
        if os.environ["GORMAPY_JOB_RANK"] == "1":
            sys.exit(0)
        import numpy as np
        from rankside import *
        for call in (
            lambda: world.Barrier(),
            lambda: world.Recv(np.zeros(1), source=1),
            lambda: world.Ssend(np.zeros(1), dest=1),
            lambda: world.Send(np.zeros(1_000_000), dest=1),
            lambda: MPI.Win.Allocate(8, comm=world),
        ):
            with fails(MPI.ERR_PROC_FAILED, "rank 1"):
                call()
            world.sendrecv(0, 2 - rank, source=2 - rank)
        """,
    )


def test_put_to_an_ended_rank(mpirun):
    mpirun(
        3,
        """
        import os, time
        import numpy as np
        from rankside import *
        a = np.zeros(1000)
        shared, private = MPI.Win.Allocate(8000, 8, comm=world), MPI.Win.Create(a, 8, comm=world)
        world.Barrier()
        if rank == 1:
            os._exit(0)
        time.sleep(0.5)
        with fails(MPI.ERR_PROC_FAILED, "rank 1"):
            private.Lock(1, MPI.LOCK_SHARED)
            private.Put(np.ones(1000), 1)
            private.Flush(1)
        # what lives still works
        other = 2 - rank
        shared.Lock(other)
        shared.Put(np.full(1000, 3.0), other)
        shared.Unlock(other)
        private.Lock(other)
        private.Accumulate(np.full(1000, 3.0), other)
        private.Unlock(other)
        world.sendrecv(0, 2 - rank, source=2 - rank)
        """,
    )


def test_lock_at_an_ended_rank_that_a_living_one_holds(mpirun):
    mpirun(
        3,
        """
        import os, time
        from rankside import *
        win = MPI.Win.Allocate(8, 8, comm=world)
        if rank == 0:
            win.Lock(1)
        world.Barrier()
        if rank == 1:
            time.sleep(0.3)
            os._exit(0)
        if rank == 2:
            with fails(MPI.ERR_PROC_FAILED, "rank 1"):
                win.Lock(1)
        world.sendrecv(0, 2 - rank, source=2 - rank)
        """,
        timeout=10,
    )
