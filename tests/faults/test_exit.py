"""The end of a rank: what was sent arrives, nothing hangs, statuses are kept."""

import pytest


def test_sent_messages_arrive_after_the_senders_end(mpirun):
    mpirun(
        2,
        """
        import time
        import numpy as np
        from rankside import *
        if rank == 0:
            world.Send(np.arange(10), dest=1, tag=1)
            world.isend("small", dest=1, tag=2)
            requests = [world.Isend(np.full(200_000, i, float), dest=1, tag=3) for i in range(3)]
        else:
            time.sleep(0.5)
            a = np.zeros(10, int)
            world.Recv(a, source=0, tag=1)
            assert (a == np.arange(10)).all()
            assert world.recv(source=0, tag=2) == "small"
            for i in range(3):
                b = np.zeros(200_000)
                world.Recv(b, source=0, tag=3)
                assert (b == i).all()
        """,
    )


def test_exit_with_everything_open(mpirun):
    result = mpirun(
        3,
        """
        import numpy as np
        from rankside import *
        comms = [world.Dup() for _ in range(5)]
        wins = [MPI.Win.Allocate(1000, comm=world), MPI.Win.Create(np.zeros(10), comm=world)]
        request = world.Irecv(np.zeros(1), source=0, tag=50)
        persistent = world.Recv_init(np.zeros(1), source=0, tag=51)
        persistent.Start()
        wins[0].Lock(0, MPI.LOCK_SHARED)
        world.Barrier()
        """,
    )
    assert result.duration < 5
    assert result.stderr == "", str(result)


@pytest.mark.parametrize("call", ["Ssend(np.zeros(1), 0)", "Issend(np.zeros(1), 0)", "Isend(np.zeros(1_000_000), 0)"])
def test_send_that_nobody_receives_does_not_hang_the_exit(mpirun, call):
    statement = f"with interrupted(): world.{call}" if call.startswith("S") else f"request = world.{call}"
    result = mpirun.alone(f"import numpy as np\nfrom rankside import *\n{statement}\nstamp('leaving')\n", timeout=5)
    assert result.since("leaving") < 3, str(result)


def test_explicit_finalize(mpirun):
    mpirun(
        2,
        """
        from rankside import *
        world.Barrier()
        MPI.Finalize()
        assert MPI.Is_finalized()
        try:
            world.Barrier()
        except MPI.Exception as error:
            assert "finalized" in str(error).lower(), error
        else:
            raise AssertionError("a barrier after Finalize")
        """,
    )


def test_no_initialisation_at_import(mpirun):
    mpirun(
        2,
        """
        import gormapy
        gormapy.rc.initialize = False
        from gormapy import MPI
        assert not MPI.Is_initialized()
        MPI.Init()
        assert MPI.COMM_WORLD.allreduce(1) == 2
        MPI.Finalize()
        """,
    )


def test_rank_that_never_uses_mpi(mpirun):
    mpirun(
        2,
        """
        import os
        if os.environ["GORMAPY_JOB_RANK"] == "0":
            from gormapy import MPI
        """,
    )


def test_os_exit_with_zero_is_a_clean_end(mpirun):
    mpirun(2, "import os\nfrom rankside import *\nworld.Barrier()\nos._exit(0)\n")


def test_uncaught_error_of_mpi_names_the_rank_and_ends_the_job(mpirun):
    result = mpirun(
        2,
        """
        from rankside import *
        if rank == 1:
            world.send(1, dest=5)
        world.recv(source=1)
        """,
        expect=1,
    )
    assert result.stderr.count("Traceback") == 1, str(result)
    assert "rank 1:" in result.stderr, str(result)
    assert "MPI_ERR_RANK" in result.stderr, str(result)


def test_interrupt_during_the_end(mpirun):
    result = mpirun.alone(
        """
        import numpy as np
        from rankside import *
        request = world.Issend(np.zeros(1), 0)
        signal_after(0.5)
        stamp("leaving")
        """,
        expect=0,
        timeout=10,
    )
    assert result.since("leaving") < 3, str(result)
