"""Programs written for mpi4py run by ``python -m gormapy.run``."""

import sys

from support.mpirun import ANY

RUN = (sys.executable, "-m", "gormapy.run")

HELLO = """
    from mpi4py import MPI
    import mpi4py, sys
    comm = MPI.COMM_WORLD
    assert comm.allreduce(1) == comm.size
    assert MPI.__name__ == "gormapy.MPI"
    assert __name__ == "__main__"
    print("rank", comm.rank, "of", comm.size, *sys.argv[1:])
"""


def test_script(mpirun, n):
    result = mpirun(n, HELLO, "one", "two words", python=RUN)
    assert result.lines == [f"rank {r} of {n} one two words" for r in range(n)]


def test_code(mpirun):
    code = "from mpi4py import MPI; import sys; print(MPI.COMM_WORLD.allreduce(1), sys.argv)"
    result = mpirun.command(2, *RUN, "-c", code, "x").finish()
    assert result.lines == ["2 ['-c', 'x']"] * 2


def test_module(mpirun, tmp_path):
    package = tmp_path / "work"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "from mpi4py import MPI\nimport sys, work.part\n"
        "print(MPI.COMM_WORLD.allreduce(work.part.ONE), sys.argv[1:], __package__)\n"
    )
    (package / "part.py").write_text("from mpi4py.MPI import COMM_WORLD\nONE = COMM_WORLD.size // COMM_WORLD.size\n")
    result = mpirun.command(2, *RUN, "-m", "work", "y", cwd=tmp_path).finish()
    assert result.lines == ["2 ['y'] work"] * 2


def test_neighbouring_module_is_found(mpirun, tmp_path):
    (tmp_path / "helper.py").write_text("from mpi4py import MPI\ndef total(): return MPI.COMM_WORLD.allreduce(2)\n")
    result = mpirun(2, "import helper\nprint(helper.total())\n", python=RUN, cwd="/")
    assert result.lines == ["4", "4"]


def test_options_of_mpi4py(mpirun):
    result = mpirun(
        2,
        """
        import mpi4py
        mpi4py.rc.initialize = False
        mpi4py.rc(finalize=False)
        from mpi4py import MPI
        assert not MPI.Is_initialized()
        MPI.Init()
        print(MPI.COMM_WORLD.allreduce(1))
        MPI.Finalize()
        """,
        python=RUN,
    )
    assert result.lines == ["2", "2"]


def test_exception(mpirun):
    result = mpirun(
        3,
        """
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        def compute():
            raise ValueError("wrong input")
        if comm.rank == 1:
            compute()
        comm.recv(source=1)
        """,
        python=RUN,
        expect=1,
    )
    assert result.stderr.count("Traceback (most recent call last)") == 1, result
    assert "rank 1" in result.stderr and "wrong input" in result.stderr
    assert "gormapy/run.py" not in result.stderr and "runpy" not in result.stderr, result
    assert result.duration < 25


def test_exit_status(mpirun):
    source = "import sys\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1: sys.exit(3)\nMPI.COMM_WORLD.Barrier()\n"
    mpirun(2, source, python=RUN, expect=3)


def test_syntax_error(mpirun):
    result = mpirun(2, "from mpi4py import MPI\nx = = 3\n", python=RUN, expect=1)
    assert "SyntaxError" in result.stderr
    assert "x = = 3" in result.stderr


def test_missing_script_is_one_line(mpirun):
    result = mpirun.command(1, *RUN, "no_such_script.py").finish(expect=ANY)
    assert result.status != 0
    assert "no_such_script.py" in result.stderr and "Traceback" not in result.stderr, result


def test_singleton(mpirun):
    result = mpirun.alone(HELLO, python=RUN)
    assert result.lines == ["rank 0 of 1"]
