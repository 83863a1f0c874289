"""The end of a rank: what was sent arrives, nothing hangs, statuses are kept."""

import sys

import pytest
from support.programs import beside

program = beside(__file__)


def test_sent_messages_arrive_after_the_senders_end(mpirun):
    mpirun(2, program.sent_messages_arrive_after_the_senders_end)


def test_exit_with_everything_open(mpirun):
    result = mpirun(3, program.exit_with_everything_open)
    assert result.duration < 5
    assert result.stderr == "", str(result)


@pytest.mark.parametrize("call", ["Ssend(np.zeros(1), 0)", "Issend(np.zeros(1), 0)", "Isend(np.zeros(1_000_000), 0)"])
def test_send_that_nobody_receives_does_not_hang_the_exit(mpirun, call):
    statement = f"with interrupted(): world.{call}" if call.startswith("S") else f"request = world.{call}"
    result = mpirun.alone(f"import numpy as np\nfrom rankside import *\n{statement}\nstamp('leaving')\n", timeout=5)
    assert result.since("leaving") < 3, str(result)


def test_explicit_finalize(mpirun):
    mpirun(2, program.explicit_finalize)


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


@pytest.mark.one_node("several nodes meet when all ranks have begun MPI")
def test_rank_that_never_uses_mpi(mpirun):
    mpirun(
        2,
        """
        import os
        if os.environ["GORMAPY_JOB_RANK"] == "0":
            from gormapy import MPI
        """,
    )


def test_exit_with_a_status_waits_for_nobody_on_several_nodes(mpirun):
    """The first rank of a node carries news for its other ranks; it does not stay for them when it has failed."""
    source = """
        import sys, time
        from rankside import *
        world.Barrier()
        if rank == 0:
            sys.exit(3)
        time.sleep(100)
    """
    result = mpirun(3, source, env={"GORMAPY_JOB_NODES": "0,0,1"}, expect=3)
    assert "mpiexec: rank 0 " in result.stderr, str(result)


@pytest.mark.parametrize("how", ["sys.exit(0)", "time.sleep(0.5)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_end_of_the_ranks_of_a_node_is_awaited(mpirun, how):
    """The first rank of a node ends when the others have, however that was."""
    source = f"""
        import os, sys, time
        from rankside import *
        world.Barrier()
        if rank in (1, 2):
            time.sleep(0.3)
            {how}
    """
    unnoticed = ("sh", "-c", '"$@"; exit 0', "sh", sys.executable)
    mpirun(4, source, env={"GORMAPY_JOB_NODES": "0,0,1,1"}, python=unnoticed)


@pytest.mark.parametrize("victim", [0, 2])
def test_another_rank_carries_the_news_of_its_node(mpirun, victim):
    """The first rank of a node ends without waiting for the others of the node, which go on."""
    source = f"""
        import os, time
        from rankside import *
        win = MPI.Win.Allocate(8, comm=world)
        world.Barrier()
        rest = world.Split(rank == {victim}, rank)
        if rank == {victim}:
            MPI.Finalize()
            os._exit(0)
        peers = [r for r in range(4) if r != {victim}]
        begin = time.monotonic()
        while rest.bcast(time.monotonic() - begin < 4):
            for r in peers:
                win.Lock(r)
                win.Unlock(r)
            assert rest.allreduce(1) == 3
        assert not any(MPI.COMM_WORLD.iprobe(r) for r in peers)
        MPI.Finalize()
        os._exit(0)
    """
    mpirun(4, source, env={"GORMAPY_JOB_NODES": "0,0,1,1"})


@pytest.mark.parametrize("answer", [0, 3000])
def test_what_was_sent_before_the_end_arrives(mpirun, answer):
    """Of a rank that ends at once, with messages under way to a stopped one, and unread ones of that."""
    source = f"""
        import os, signal, time
        from rankside import *
        pids = world.allgather(os.getpid())
        if rank == 2:
            for k in range({answer}):
                world.Isend(bytes(8000), 0, 7)
            world.send("stop me", 1)
            assert all((world.recv(source=0, tag=5) == bytes(9000)) for k in range(400))
            world.send("done", 1)
            try:
                world.recv(source=0, tag=6)
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_PROC_FAILED
            else:
                raise SystemExit("a message that was never sent")
        elif rank == 1:
            world.recv(source=2)
            os.kill(pids[2], signal.SIGSTOP)
            world.send("go", 0)
            time.sleep(3)
            os.kill(pids[2], signal.SIGCONT)
            world.recv(source=2)
        else:
            world.recv(source=1)
            for k in range(400):
                world.send(bytes(9000), 2, 5)
            MPI.Finalize()
            os._exit(0)
        if rank == 2:
            os._exit(0)
    """
    mpirun(3, source, env={"GORMAPY_JOB_NODES": "0,1,2"})


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
