"""MPICH programs, with mpi4py over the wheel of MPICH, run under gormapy's launcher."""

import contextlib
import os
import textwrap
import time
from pathlib import Path

import pytest
from support.mpirun import ANY

WHO = """
    from mpi4py import MPI
    assert "MPICH" in MPI.Get_library_version()
    w = MPI.COMM_WORLD
    print("who", w.rank, w.size, w.allreduce(w.rank), flush=True)
"""


@pytest.fixture
def python(mpich):
    """Return the interpreter of the environment with mpi4py and MPICH."""
    return [str(mpich / "python")]


def finish(job, expect=0):
    """Wait for a job of MPICH and remove what MPICH leaves in shared memory when it is killed."""
    result = job.finish(expect)
    begun = time.time() - result.duration - 1
    mine = [file for file in Path("/dev/shm").glob("mpich_shm_*") if file.stat().st_mtime >= begun]
    used = ""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            used += (process / "maps").read_text()
            used += " ".join(os.readlink(fd) for fd in (process / "fd").iterdir())  # it is opened before it is mapped
    for file in mine:
        if file.name not in used:  # else it is of somebody who tests beside us
            file.unlink(missing_ok=True)
    return result


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_job(mpirun, python, n):
    result = finish(mpirun.start(n, WHO, python=python))
    assert result.lines == [f"who {r} {n} {n * (n - 1) // 2}" for r in range(n)]


ENDS = {
    "abort": ("w.Abort(5)", 5, "called Abort(5)"),
    "exit": ("os._exit(3)", 3, "ended with exit status 3"),
    "killed": ("os.kill(os.getpid(), 9)", 137, "was killed by signal 9 (SIGKILL)"),
    "no-finalize": ("os._exit(0)", 1, "ended with exit status 0 without calling MPI_Finalize"),
}


@pytest.mark.parametrize("end", ENDS)
def test_failure_ends_the_job(mpirun, python, end):
    statement, status, text = ENDS[end]
    source = f"""
        import os
        from mpi4py import MPI
        w = MPI.COMM_WORLD
        w.Barrier()
        if w.rank == 1:
            {statement}
        w.recv(source=1)
    """
    result = finish(mpirun.start(3, source, python=python), expect=status)
    lines = [line for line in result.stderr.splitlines() if line.startswith("mpiexec: ")]
    assert len(lines) == 1 and lines[0].startswith("mpiexec: rank 1 (pid ") and text in lines[0], str(result)


def test_rank_that_never_joins(mpirun, python):
    source = """
        import os, sys
        if os.environ["PMI_RANK"] == "1":
            sys.exit(0)
        from mpi4py import MPI
    """
    result = finish(mpirun.start(3, source, python=python), expect=1)
    assert "has called MPI_Init, which rank 1, which has ended, can't call any more" in result.stderr, str(result)


def test_wrapper_passes_the_rank_on(mpirun, python):
    script = mpirun.folder / "who.py"
    script.write_text(textwrap.dedent(WHO))
    result = finish(mpirun.command(2, "bash", "-c", f"env A=1 {python[0]} {script}; true"))
    assert result.lines == ["who 0 2 1", "who 1 2 1"]


def test_child_of_a_rank_is_not_the_rank(mpirun, python):
    source = f"""
        import os
        from mpi4py import MPI
        w = MPI.COMM_WORLD
        if w.rank == 1:
            command = "{python[0]} -c 'from mpi4py import MPI; print(MPI.COMM_WORLD.size)'"
            print("child failed", os.system(command) != 0)
        w.Barrier()
        print("who", w.rank, w.allreduce(1))
    """
    result = finish(mpirun.start(2, source, python=python))
    assert result.lines == ["child failed True", "who 0 2", "who 1 2"]
    assert "one MPI process only" in result.stderr, str(result)


def test_spawn_is_refused(mpirun, python):
    source = """
        import sys
        from mpi4py import MPI
        try:
            MPI.COMM_SELF.Spawn(sys.executable, maxprocs=1)
        except MPI.Exception:
            print("refused")
    """
    result = finish(mpirun.start(1, source, python=python))
    assert result.lines == ["refused"]
    assert "mpiexec: rank 0 asked to spawn processes, which this launcher does not do" in result.stderr, str(result)


def test_timeout_says_what_the_ranks_do(mpirun, python):
    source = """
        import os, time
        if os.environ["PMI_RANK"] == "1":
            time.sleep(100)
        from mpi4py import MPI
    """
    said = "an MPICH program, in MPI_Init, to which rank 1 did not come"
    for timeout in (6, 20, 50):  # a busy machine takes long until rank 0 is there
        result = finish(mpirun.start(2, source, python=python, timeout=timeout), expect=124)
        if said in result.stderr:
            break
    assert said in result.stderr, str(result)


GARBAGE = """
    import os, socket, sys
    from gormapy import MPI
    if MPI.COMM_WORLD.rank == 1:
        server = socket.socket(fileno=int(os.environ["PMI_FD"]))
        server.sendall(b"\\0garbage" * 1000 + b"\\n")
        print(server.recv(100))
    assert MPI.COMM_WORLD.allreduce(1) == 3
"""


@pytest.mark.one_node("gormapy uses the connection itself on several nodes")
def test_garbage_harms_nobody(mpirun):
    result = mpirun(3, GARBAGE)
    assert result.lines == [r"b'cmd=error rc=-1 msg=no_pmi1\n'"]
    assert "mpiexec: rank 1 sent " in result.stderr and "which is no PMI-1 request" in result.stderr


def test_children_of_a_rank_do_not_inherit_the_connection(mpirun):
    source = """
        import os
        from gormapy import MPI
        assert os.stat(f"/proc/self/fd/{os.environ['PMI_FD']}")
        assert os.system(f"test ! -e /proc/self/fd/{os.environ['PMI_FD']}") == 0
    """
    mpirun(2, source)


def test_gormapy_under_hydra_inside_a_rank_is_not_confused(mpirun, python):
    hydra = Path(python[0]).with_name("mpiexec")
    source = f"""
        import subprocess, sys
        from mpi4py import MPI
        program = "from mpi4py import MPI; print('inner', MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)"
        subprocess.run([{str(hydra)!r}, "-n", "2", sys.executable, "-c", program], check=True)
        print("outer", MPI.COMM_WORLD.allreduce(1))
    """
    result = finish(mpirun.start(1, source, python=python), expect=ANY)
    assert result.status == 0, str(result)
    assert result.lines == ["inner 0 2", "inner 1 2", "outer 1"]
