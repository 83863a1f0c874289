"""Children of a rank: forked ones are told that they can't, spawned ones are singletons, and the job is unharmed."""


def test_forked_child_gets_a_clear_error(mpirun):
    mpirun(
        2,
        """
        import os
        import numpy as np
        from rankside import *
        win = MPI.Win.Allocate(8, 1, comm=world)
        req = world.Irecv(np.zeros(1), source=rank, tag=9)
        child = os.fork()
        if child == 0:
            calls = [
                lambda: world.Barrier(),
                lambda: world.send(1, dest=0),
                lambda: world.recv(),
                lambda: world.Send(np.zeros(1), dest=0),
                lambda: world.Dup(),
                lambda: world.allreduce(1),
                lambda: world.Iprobe(),
                lambda: req.Test(),
                lambda: win.Lock(0),
                lambda: win.Put(np.zeros(1, "i1"), 0),
                lambda: win.Fence(),
                lambda: MPI.Win.Allocate(8, comm=MPI.COMM_SELF),
            ]
            status = 0
            for i, call in enumerate(calls):
                try:
                    call()
                    say("no error in call", i)
                    status = 1
                except RuntimeError as error:
                    if "fork" not in str(error):
                        say("unclear", i, error)
                        status = 1
                except BaseException as error:
                    say("another error in call", i, repr(error))
                    status = 1
            import sys
            sys.exit(status)  # through the whole exit of Python
        pid, status = os.waitpid(child, 0)
        assert status == 0, status
        world.Send(np.ones(1), dest=rank, tag=9)
        req.Wait()
        assert world.allreduce(1) == 2
        win.Fence()
        win.Free()
        """,
    )


def test_end_of_forked_children_leaves_the_job_unharmed(mpirun):
    mpirun(
        2,
        """
        import os, signal
        from rankside import *
        for end in (lambda: os._exit(0), lambda: sys.exit(0), lambda: os._exit(3), lambda: os.kill(os.getpid(), 9)):
            child = os.fork()
            if child == 0:
                import sys
                end()
            os.waitpid(child, 0)
            assert world.allreduce(1) == 2
        """,
    )


def test_fork_while_another_thread_waits(mpirun):
    mpirun(
        2,
        """
        import os, threading, time
        from rankside import *
        got = []
        t = threading.Thread(target=lambda: got.append(world.recv(source=1 - rank, tag=1)))
        t.start()
        time.sleep(0.1)
        for i in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        world.send("x", dest=1 - rank, tag=1)
        t.join(10)
        assert got == ["x"]
        """,
    )


def test_subprocess_is_a_singleton(mpirun):
    result = mpirun(
        2,
        """
        import subprocess, sys
        from rankside import *
        code = "from gormapy import MPI; w = MPI.COMM_WORLD; print(w.rank, w.size, w.allreduce(5))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done
        assert done.stdout == "0 1 5\\n", done
        assert world.allreduce(1) == 2
        """,
    )
    assert result.stdout == ""


def test_failing_subprocess_leaves_the_job_unharmed(mpirun):
    mpirun(
        2,
        """
        import subprocess, sys
        from rankside import *
        for code in ("1 / 0", "import sys; sys.exit(3)", "MPI.COMM_WORLD.Abort(4)"):
            done = subprocess.run(
                [sys.executable, "-c", "from gormapy import MPI\\n" + code], capture_output=True, text=True, timeout=20
            )
            assert done.returncode in (1, 3, 4), done
        assert world.allreduce(1) == 2
        """,
    )


def test_multiprocessing_spawn(mpirun):
    mpirun(
        2,
        """
        import multiprocessing as mp
        import math

        def main():
            from gormapy import MPI
            world = MPI.COMM_WORLD
            if world.rank == 0:
                with mp.get_context("spawn").Pool(2) as pool:
                    assert pool.map(math.factorial, range(5)) == [1, 1, 2, 6, 24]
            world.Barrier()

        if __name__ == "__main__":
            main()
        """,
    )


def test_multiprocessing_spawn_with_mpi_in_the_main_module(mpirun):
    mpirun(
        2,
        """
        import multiprocessing as mp
        from gormapy import MPI

        def size(i):
            return MPI.COMM_WORLD.size

        if __name__ == "__main__":
            world = MPI.COMM_WORLD
            assert world.size == 2
            if world.rank == 0:
                with mp.get_context("spawn").Pool(2) as pool:
                    assert pool.map(size, range(4)) == [1] * 4
            world.Barrier()
        """,
    )


def test_multiprocessing_fork_without_mpi(mpirun):
    mpirun(
        2,
        """
        import math
        import multiprocessing as mp
        from rankside import *
        with mp.get_context("fork").Pool(2) as pool:
            assert pool.map(math.factorial, range(5)) == [1, 1, 2, 6, 24]
        assert world.allreduce(1) == 2
        """,
    )


def test_subprocess_that_outlives_its_rank_when_the_job_fails(mpirun):
    mpirun(
        2,
        """
        import subprocess, sys
        from rankside import *
        subprocess.Popen(["sleep", "60"], start_new_session=True)
        subprocess.Popen(["sleep", "60"])
        world.Barrier()
        if rank:
            sys.exit(3)
        world.Barrier()
        """,
        expect=3,
    )
