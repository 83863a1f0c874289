"""Several threads of a rank communicate at once."""

import pytest
from support.programs import beside

program = beside(__file__)
eight = beside(__file__, "eight")


def test_threads_on_different_communicators(ranks):
    ranks(
        2,
        program.threads_on_different_communicators,
    )


def test_threads_on_one_communicator_by_tag(ranks):
    ranks(
        2,
        program.threads_on_one_communicator_by_tag,
    )


def test_threads_on_different_windows(ranks):
    ranks(
        2,
        program.threads_on_different_windows,
    )


@pytest.mark.parametrize("n", [2, 4])
def test_eight_threads_in_different_calls_at_once(ranks, n):
    ranks(
        n,
        eight.eight_threads_in_different_calls_at_once,
        timeout=60,
    )


def test_threads_that_wait_block_no_others(mpirun):
    # six threads of rank 0 wait, each in another call, for what rank 1 does only after all work is done
    mpirun(
        2,
        eight.threads_that_wait_block_no_others,
        timeout=60,
    )


def test_thread_that_waits_leaves_the_others_the_interpreter(ranks):
    ranks(
        2,
        program.thread_that_waits_leaves_the_others_the_interpreter,
    )


def test_first_use_from_another_thread(ranks):
    ranks(
        2,
        program.first_use_from_another_thread,
    )


EXITS = {
    "daemon-recv": ("world.recv(source=1 - rank, tag=99)", True),
    "daemon-barrier": ("other.Barrier() if rank == 0 else world.recv(tag=99)", True),
    "daemon-lock": ("win.Lock(0)", True),
    "daemon-busy": ("busy()", True),
    "other-recv": ("world.recv(source=1 - rank, tag=99)", False),
}


@pytest.mark.parametrize("case", EXITS)
def test_thread_in_a_call_does_not_hang_the_exit(mpirun, case):
    statement, daemon = EXITS[case]
    result = mpirun(
        2,
        f"""
        import os, threading, time
        from rankside import *
        other = world.Dup()
        win = MPI.Win.Allocate(8, comm=world)
        if rank == 0:
            win.Lock(0)
        world.Barrier()
        def busy():
            while True:
                MPI.COMM_SELF.allreduce(1)
        def work():
            try:
                {statement}
            except MPI.Exception as error:
                # Python aborts a process whose daemon thread is inside of print() when it exits.
                os.write(1, f"ended by {{error}}\\n".encode())
        if not ("Lock" in {statement!r} and rank == 0):
            threading.Thread(target=work, daemon={daemon}).start()
        time.sleep(0.3)
        stamp("leaving" + str(rank))
        """,
        timeout=15,
    )
    assert result.since("leaving0") < 3, str(result)
    assert "Traceback" not in result.stderr, str(result)
