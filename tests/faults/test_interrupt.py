"""SIGINT to one rank raises KeyboardInterrupt in whatever call it waits, and leaves a usable process."""

import pytest

# The calls in which a rank can wait for rank 0, who does something else.
CALLS = {
    "recv": "world.Recv(a, source=0)",
    "recv-any": "world.Recv(a, source=MPI.ANY_SOURCE)",
    "pickled-recv": "world.recv(source=0)",
    "pickled-irecv": "world.irecv(source=0).wait()",
    "send-rendezvous": "world.Send(np.zeros(1_000_000), dest=0)",
    "pickled-send": "world.send(bytes(8_000_000), dest=0)",
    "ssend": "world.Ssend(a, dest=0)",
    "sendrecv": "world.Sendrecv(a, 0, 0, b, 0, 0)",
    "probe": "world.Probe(source=0)",
    "mprobe": "world.Mprobe(source=0)",
    "pickled-probe": "world.probe(source=0)",
    "wait": "world.Irecv(a, source=0).Wait()",
    "waitall": "MPI.Request.Waitall([world.Irecv(a, source=0), world.Irecv(b, source=0)])",
    "waitany": "MPI.Request.Waitany([world.Irecv(a, source=0), world.Irecv(b, source=0)])",
    "persistent": "r = world.Recv_init(a, source=0); r.Start(); r.Wait()",
    "barrier": "world.Barrier()",
    "bcast": "world.Bcast(a, root=0)",
    "bcast-large": "world.Bcast(np.zeros(1_000_000), root=0)",
    "pickled-bcast": "world.bcast(None, root=0)",
    "allreduce": "world.Allreduce(a, b)",
    "pickled-allreduce": "world.allreduce(1)",
    "gather": "world.Gather(a, np.zeros(size) if rank == 1 else None, root=1)",
    "alltoall": "world.Alltoall(np.zeros(size), np.zeros(size))",
    "fence": "win.Fence()",
    "lock": "win.Lock(0)",
    "lock-all": "win.Lock_all()",
    "start": "win.Start(first)",
    "win-wait": "win.Post(first); win.Wait()",
    "create": "MPI.Win.Create(a, comm=world)",
    "allocate": "MPI.Win.Allocate(64, comm=world)",
    "free": "win.Free()",
    "split": "world.Split(0)",
    "dup": "world.Dup()",
    "comm-free": "other.Free(); world.Barrier()",
}

SETUP = """
    import time
    import numpy as np
    from rankside import *
    a, b = np.zeros(1), np.zeros(1)
    win = MPI.Win.Allocate(8, 1, comm=world)
    other = world.Dup()
    first = world.Get_group().Incl([0])
    if rank == 0:
        win.Lock(0)  # nobody else gets it
    world.Barrier()
"""


def check_usable():
    return """
        # what needs nobody else works
        assert MPI.COMM_SELF.allreduce(7) == 7
        r = MPI.COMM_SELF.Irecv(b, source=0)
        MPI.COMM_SELF.Send(np.ones(1), dest=0)
        r.Wait()
        assert b[0] == 1
    """


@pytest.mark.parametrize("call", CALLS)
def test_interrupted_while_the_others_stay(mpirun, call):
    mpirun(
        2,
        SETUP
        + f"""
    if rank == 1:
        with interrupted():
            {CALLS[call]}
        {check_usable().strip()}
        raise_flag("interrupted")
    else:
        await_flag("interrupted")
        """,
    )


@pytest.mark.parametrize("call", CALLS)
def test_reset_after_an_interrupt(mpirun, call):
    freed = {"free": "win = MPI.Win.Allocate(8, 1, comm=world)", "comm-free": "other = world.Dup()"}
    mpirun(
        3,
        SETUP
        + f"""
    if rank == 1:
        with interrupted():
            {CALLS[call]}
    else:
        time.sleep(0.2)
    reset()
    {freed.get(call, "pass")}  # what was being freed is gone
    for i in range(3):
        total = np.zeros(1)
        world.Allreduce(np.full(1, rank + 1.0), total)
        assert total[0] == 6, total
        assert world.bcast(rank, root=i) == i
        assert world.alltoall([rank * 10 + r for r in range(3)]) == [r * 10 + rank for r in range(3)]
    left, right = (rank - 1) % size, (rank + 1) % size
    for count in (1, 200_000):
        got = np.zeros(count)
        world.Sendrecv(np.full(count, rank, float), right, 5, got, left, 5)
        assert (got == left).all()
    assert not world.Iprobe(), "a message of the time before the reset is still there"
    assert other.allreduce(rank) == 3
    third = world.Dup()
    assert third.allreduce(rank) == 3
    win.Lock(0)
    win.Unlock(0)
    win.Fence()
    win.Put(np.array([rank], "i1"), (rank + 1) % size)
    win.Fence()
    assert np.frombuffer(win.tomemory(), "i1")[0] == (rank - 1) % size
    win.Free()
        """,
    )


def test_all_ranks_interrupted_in_different_calls(mpirun):
    mpirun(
        4,
        """
        import numpy as np
        from rankside import *
        a = np.zeros(1)
        other = world.Dup()  # two collectives on one communicator would be an error
        calls = [
            lambda: world.Recv(a, source=3, tag=1),
            lambda: world.Barrier(),
            lambda: other.Bcast(a, root=(rank + 1) % size),
            lambda: world.Ssend(a, dest=0, tag=2),
        ]
        for turn in range(3):
            with interrupted():
                calls[(rank + turn) % 4]()
            reset()
            assert world.allreduce(1) == 4
        """,
    )


def test_long_collectives_are_interrupted_and_put_back(mpirun):
    # the first one on a communicator, in which the ranks find out how to copy, and later ones
    mpirun(
        4,
        """
        import numpy as np
        from rankside import *
        a, b = np.ones(100_000), np.zeros(100_000)
        other = world.Dup()
        for turn in range(3):
            with interrupted():
                if rank == turn:  # does not take part
                    other.Barrier()
                else:
                    world.Allreduce(a, b)
            reset()
            world.Allreduce(a, b)
            assert (b == size).all()
            world.Bcast(b, turn)
        """,
    )


def test_whole_job_is_interrupted_and_put_back_again_and_again(mpirun):
    # what a notebook does: Ctrl-C goes to all ranks, whatever they are in, and the next cell works
    mpirun(
        3,
        """
        import os, time
        from collections import Counter
        import numpy as np
        from rankside import *

        one, four, into = np.ones(1), np.zeros(4), np.zeros(4)

        def compute():
            while True:
                sum(range(1000))

        def round_the_lock():
            win.Lock((rank + 1) % size)  # everybody holds one, and waits for another
            world.Barrier()
            win.Lock((rank + 2) % size)

        STATES = {
            "recv": lambda: world.Recv(four, source=1),
            "Barrier": lambda: world.Barrier(),
            "Fence": lambda: win.Fence(),
            "Lock": lambda: win.Lock(1),
            "Start": lambda: win.Start(everybody.Incl([1])),
            "Win.Wait": lambda: (win.Post(everybody), win.Wait()),
            "puts": lambda: (kept.Fence(), kept.Put(one, 1), world.Recv(four, source=1)),
            "locks": round_the_lock,
            "Free": lambda: win.Free(),
            "Allreduce": lambda: world.Allreduce(four, into),
            "Bcast": lambda: world.Bcast(four, root=1),
            "Alltoall": lambda: world.alltoall([bytes(100_000)] * size),
            "Split": lambda: world.Split(0),
            "Allocate": lambda: MPI.Win.Allocate(64, comm=world),
            "computing": compute,
        }

        def descriptors():
            names = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
            return Counter(os.readlink(name) for name in names if os.path.islink(name))

        everybody = world.Get_group()
        memory = np.zeros(8)
        kept = MPI.Win.Create(memory, 8, comm=world)

        def check(turn):
            kept.Fence()
            kept.Put(np.full(1, rank + turn, float), (rank + 1) % size, 3)
            kept.Fence(MPI.MODE_NOSUCCEED)
            assert memory[3] == (rank - 1) % size + turn
            total = np.zeros(1)
            world.Allreduce(one, total)
            assert total[0] == size
            assert world.allgather((turn, rank)) == [(turn, r) for r in range(size)]
            win = MPI.Win.Allocate(8, 8, comm=world)
            win.Fence()
            win.Put(np.full(1, rank + turn, float), (rank + 1) % size)
            win.Fence()
            assert np.frombuffer(win.tomemory())[0] == (rank - 1) % size + turn
            world.Barrier()
            win.Lock(0)
            win.Accumulate(one, 0)
            win.Unlock(0)
            win.Free()

        check(-1)
        time.sleep(0.5)  # the watcher of peers has seen them all
        before = descriptors()
        for turn, (name, state) in enumerate(STATES.items()):
            win = MPI.Win.Allocate(8, 8, comm=world)
            if name == "Lock" and rank == 1:
                win.Lock(1)
            world.Barrier()
            with interrupted():
                if rank == 1 and name != "locks":
                    world.recv(source=1, tag=99)
                state()
            reset()
            check(turn)
            if name != "Free":
                win.Free()
        more = descriptors() - before
        assert not more, more
        """,
        timeout=60,
    )


def test_handler_that_does_not_raise_lets_the_call_go_on(mpirun):
    mpirun(
        2,
        """
        import signal
        import numpy as np
        from rankside import *
        seen = []
        def handler(*_):
            seen.append(True)
            raise_flag("seen")
        signal.signal(signal.SIGUSR1, handler)
        a = np.zeros(1)
        world.Barrier()
        if rank == 1:
            sender = signal_after(0.2, "USR1")
            world.Recv(a, source=0)
            sender.wait()
            assert len(seen) == 1, seen
            assert a[0] == 3
        else:
            await_flag("seen")
            world.Send(np.full(1, 3.0), dest=1)
        """,
    )


def test_signals_go_to_the_threads_of_python(mpirun):
    # a signal that Go's threads get is noted by Python, and before 3.12 not looked at by a rank that computes
    mpirun(
        2,
        """
        import os, signal, time
        import numpy as np
        np.zeros((300, 300)) @ np.zeros((300, 300))  # NumPy makes threads of its own
        before = set(os.listdir("/proc/self/task"))
        from rankside import *
        win = MPI.Win.Allocate(8, 8, comm=world)
        for turn in range(20):
            world.Barrier()
            reset()
        added = set(os.listdir("/proc/self/task")) - before
        assert added
        deadline = time.monotonic() + 10
        for thread in added:
            while True:
                with open(f"/proc/self/task/{thread}/status") as file:
                    blocked = int(next(line for line in file if line.startswith("SigBlk")).split()[1], 16)
                # Go blocks all signals of a thread that begins.
                if not blocked >> (signal.SIGSEGV - 1) & 1 or time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1):
                assert blocked >> (number - 1) & 1, (thread, number, hex(blocked))
            for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGURG, signal.SIGPROF):
                assert not blocked >> (number - 1) & 1, (thread, number, hex(blocked))
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
        """,
    )


def test_receive_that_was_interrupted_takes_no_later_message(mpirun):
    mpirun(
        2,
        """
        import numpy as np
        from rankside import *
        a = np.zeros(1)
        if rank == 1:
            with interrupted():
                world.Recv(a, source=0)
            raise_flag("interrupted")
            b = np.zeros(1)
            world.Recv(b, source=0)
            assert b[0] == 5 and a[0] == 0, (a, b)
        else:
            await_flag("interrupted")
            world.Send(np.full(1, 5.0), dest=1)
        """,
    )


def test_interrupted_send_delivers_its_data_or_nothing(mpirun):
    mpirun(
        2,
        """
        import gc, time
        import numpy as np
        from rankside import *
        n = 1_000_000
        if rank == 1:
            a = np.full(n, 1.0)
            with interrupted():
                world.Send(a, dest=0, tag=3)
            raise_flag("interrupted")
            del a
            gc.collect()
            world.Send(np.full(n, 2.0), dest=0, tag=3)
        else:
            await_flag("interrupted")
            got = []
            while not got or got[-1][0] != 2.0:
                message = np.zeros(n)
                world.Recv(message, source=1, tag=3)
                got.append(message)
            values = [np.unique(message).tolist() for message in got]
            # what was sent before the interrupt comes whole, or not at all
            assert values in ([[2.0]], [[1.0], [2.0]]), values
            time.sleep(0.2)
            assert not world.Iprobe(), "the data of the second message was delivered for the first"
        """,
    )


def test_singleton(mpirun):
    result = mpirun.alone(
        """
        import numpy as np
        from rankside import *
        a = np.zeros(1)
        for call in (
            lambda: world.Recv(a, source=0),
            lambda: world.Probe(),
            lambda: world.recv(),
            lambda: world.Irecv(a, tag=1).Wait(),
            lambda: world.Ssend(a, dest=0),
        ):
            with interrupted():
                call()
        assert world.allreduce(1) == 1
        stamp("leaving")
        """,
        timeout=10,
    )
    assert result.since("leaving") < 3, str(result)


def test_uncaught_interrupt_ends_the_job(mpirun):
    result = mpirun(
        3,
        """
        from rankside import *
        world.Barrier()
        if rank == 1:
            signal_after(0.2)
        world.recv(source=(rank + 1) % size)
        """,
        expect=130,
    )
    assert result.stderr.count("KeyboardInterrupt") == 1, str(result)
    assert "rank 1" in result.stderr, str(result)


FENCE_GIVEN_UP = """
    import numpy as np
    from gormapy import MPI
    from rankside import *

    mine = np.zeros(4)
    win = MPI.Win.Create(mine, 8, comm=world)
    if rank == 0:
        with interrupted():
            win.Fence()
        raise_flag("given up")
    else:
        await_flag("given up")
        win.Fence()  # rank 0 had come there
    other = 1 - rank
    win.Lock(other)
    win.Put(np.full(1, rank + 1.0), other, 2)
    win.Flush(other)
    got = np.zeros(1)
    win.Get(got, other, 2)
    win.Unlock(other)
    assert got[0] == rank + 1
    world.Barrier()
"""


def test_a_fence_that_one_rank_gives_up_and_the_other_passes(mpirun):
    mpirun(2, FENCE_GIVEN_UP, timeout=10)


def test_requests_of_the_time_before_a_reset_end(mpirun):
    """A nonblocking collective that the reset met between two of its steps fails; it does not begin the next one."""
    mpirun(
        2,
        """
        import signal, time
        import numpy as np
        from rankside import *

        class Over(BaseException):
            pass

        def over(number, frame):
            raise Over

        signal.signal(signal.SIGALRM, over)
        a, b = np.zeros(1 << 14), np.zeros(1 << 14)
        for k in range(200):
            world.Barrier()
            request = None
            if rank == 0:
                request = world.Iallreduce(a, b)
            else:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.000005 * (1 + k % 60))
                    world.Iallreduce(a, b).Wait()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Over:
                    pass
            time.sleep(0.001)
            reset()
            if rank == 0:
                end = time.monotonic() + 5
                try:
                    while not request.Test():
                        assert time.monotonic() < end, f"trial {k} does not end"
                except MPI.Exception as e:
                    assert e.Get_error_class() == MPI.ERR_PENDING, e
        """,
    )
