"""The end of a rank: what was sent arrives, nothing hangs, statuses are kept."""

import sys
from pathlib import Path

import pytest
from support.programs import beside

program = beside(__file__)
PROGRAMS = Path(__file__).parent / "programs"


def test_sent_messages_arrive_after_the_senders_end(mpirun):
    mpirun(2, program.sent_messages_arrive_after_the_senders_end)


def test_exit_with_everything_open(mpirun):
    result = mpirun(3, program.exit_with_everything_open)
    assert result.stderr == "", str(result)


@pytest.mark.parametrize("call", ["Ssend(np.zeros(1), 0)", "Issend(np.zeros(1), 0)", "Isend(np.zeros(1_000_000), 0)"])
def test_send_that_nobody_receives_does_not_hang_the_exit(mpirun, call):
    statement = f"with interrupted(): world.{call}" if call.startswith("S") else f"request = world.{call}"
    result = mpirun.alone(f"import numpy as np\nfrom rankside import *\n{statement}\nstamp('leaving')\n")
    assert result.since("leaving") < 20, str(result)


def test_explicit_finalize(mpirun):
    mpirun(2, program.explicit_finalize)


@pytest.mark.shm("by messages the data is sent, or kept by the sender")
def test_a_broadcast_that_finalize_ends_gives_no_data_of_later(mpirun):
    mpirun(2, program.finalize_while_a_thread_broadcasts)


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
        rest.Barrier()
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
    """There is nothing of Python any more that could raise KeyboardInterrupt: the process ends by the signal."""
    source = """
        import os, signal
        import numpy as np
        from rankside import *
        pids = world.allgather(os.getpid())
        if rank == 0:
            request = world.Issend(np.zeros(1), 1)  # the end waits for rank 1, which does not receive it
        else:
            await_call(0, "Finalize")
            os.kill(pids[0], signal.SIGINT)
            time.sleep(60)
    """
    result = mpirun(2, source, expect=130)
    assert "rank 0" in result.stderr and "Traceback" not in result.stderr, str(result)


# Programs that use MPI when the main program has ended
# -----------------------------------------------------

LATE = {
    "thread": ["thread 2"],
    "atexit_before_the_import": ["before 2"],
    "atexit": ["registered 2"],
    "object": ["gone 2"],
    "object_in_a_cycle": ["gone 2"],
    "object_in_builtins": ["gone 2"],
    "object_of_a_module": ["gone 2"],
    "object_of_gormapy": ["gone 2"],
    "everything": ["thread 2", "registered 2", "before 2", "gone 2"],
}


@pytest.mark.parametrize("how", LATE)
def test_mpi_is_used_when_the_main_program_has_ended(mpirun, how):
    result = mpirun(2, PROGRAMS / "late.py", how)
    for rank in "01":
        assert [line[2:] for line in result.stdout.splitlines() if line[0] == rank] == LATE[how], str(result)
    assert result.stderr == "", str(result)


@pytest.mark.parametrize("how", LATE)
def test_mpi_is_used_late_by_a_program_without_a_launcher(mpirun, how):
    result = mpirun.alone(PROGRAMS / "late.py", how)
    assert [line[2:] for line in result.stdout.splitlines()] == [s.replace("2", "1") for s in LATE[how]], str(result)
    assert result.stderr == "", str(result)


def test_status_of_a_program_that_uses_mpi_late(mpirun):
    result = mpirun(2, PROGRAMS / "late.py", "everything", "exit", expect=3)
    assert result.stdout.count("gone 2") >= 1, str(result)


def test_rank_that_fails_ends_at_once_whatever_it_would_do_late(mpirun):
    result = mpirun(2, PROGRAMS / "late.py", "without_threads", "fail", expect=1)
    assert "ValueError: nothing" in result.stderr and "finalized" not in result.stderr, str(result)


def test_daemon_thread_that_waits_does_not_disturb_the_end(mpirun):
    for _ in range(5):
        result = mpirun(2, PROGRAMS / "late.py", "daemon")
        assert result.stderr == "", str(result)


def test_file_that_is_left_open(mpirun):
    result = mpirun(2, PROGRAMS / "late.py", "file")
    assert result.stderr == "", str(result)


def test_processes_of_multiprocessing_in_a_rank(mpirun):
    for method in ("spawn", "forkserver", "fork"):
        result = mpirun(2, PROGRAMS / "pool_of_processes.py", method)
        assert result.stdout.splitlines() == ["[0, 1, 4]"] * 2 and result.stderr == "", str(result)


def test_exception_that_a_console_reports_is_no_failure(mpirun):
    """The program goes on: what it sends last arrives, and what is registered with atexit may use MPI."""
    source = """
        import atexit, code, time
        import numpy as np
        from rankside import *
        code.InteractiveConsole().push("1 / 0")
        atexit.register(lambda: print("at exit", world.allreduce(1)))
        if rank == 1:
            request = world.Isend(np.ones(1_000_000), 0)
        else:
            time.sleep(0.5)
            received = np.zeros(1_000_000)
            world.Recv(received, 1)
            print("received", received.sum())
    """
    result = mpirun(2, source)
    assert sorted(result.stdout.splitlines()) == ["at exit 2", "at exit 2", "received 1000000.0"], str(result)
    assert result.stderr.count("ZeroDivisionError") == 2, str(result)
