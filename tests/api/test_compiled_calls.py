"""gormapy.numba: calls in functions that Numba compiles."""

import signal
import time

import pytest
from support.mpirun import ANY
from support.programs import beside

pytest.importorskip("numba", reason="Numba is not installed: it has no wheel for this Python, or 'make build' failed")
program = beside(__file__)
pytestmark = [
    pytest.mark.timeout(300),  # Numba compiles for seconds, and on a loaded machine for a minute
    pytest.mark.one_node("compiling takes minutes; test_one_sided_over_tcp is over a network"),
]

WAYS = ("python", "njit", "nogil")
RARE = pytest.mark.exhaustive  # each rank compiles, which takes most of the time
ALL = [*((way, 2) for way in ("python", "njit")), *(pytest.param(*c, marks=RARE) for c in (("njit", 1), ("nogil", 2)))]


@pytest.mark.parametrize("dtype", ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"))
def test_each_dtype(ranks, dtype):
    ranks(2, program.each_dtype, "python", dtype)


@RARE
@pytest.mark.parametrize("dtype", ("?", "i2", "c16"))
def test_each_dtype_compiled(ranks, dtype):
    ranks(2, program.each_dtype, "njit", dtype, timeout=240)


@pytest.mark.parametrize(("way", "n"), ALL)
def test_messages_and_collectives(ranks, n, way):
    ranks(n, program.each_dtype, way, "f8", timeout=240)


@pytest.mark.parametrize(("way", "n"), [*ALL, ("python", 4)])
def test_requests(ranks, n, way):
    ranks(n, program.requests, way, timeout=240)


@pytest.mark.parametrize(("way", "n"), [("python", 2), ("njit", 2), ("python", 4)])
@pytest.mark.parametrize("part", ("reductions", "temporaries", "the_process"))
def test_calls(ranks, n, way, part):
    ranks(n, getattr(program, part), way, timeout=240)


@pytest.mark.parametrize(("way", "flavor"), [("python", "allocate"), ("njit", "allocate"), ("python", "create")])
def test_one_sided(ranks, way, flavor):
    ranks(2, program.one_sided, way, flavor, timeout=240)


@RARE
def test_one_sided_over_tcp(mpirun):
    mpirun(2, program.one_sided, "njit", "allocate", env={"GORMAPY_FABRIC": "tcp"}, timeout=240)


@pytest.mark.parametrize("n", [1, 2, pytest.param(4, marks=RARE)])
def test_wrong_arguments(ranks, n):
    ranks(n, program.wrong_arguments, timeout=240)


def test_threads_of_numba(mpirun):
    mpirun(2, program.threads_of_numba, env={"NUMBA_NUM_THREADS": "2"}, timeout=240)


@pytest.mark.parametrize("way", WAYS)
def test_other_threads_go_on(ranks, way):
    ranks(2, program.other_threads_go_on, way, timeout=240)


def test_handler_that_returns(mpirun):
    mpirun(2, program.handler_that_returns, timeout=240)


@pytest.mark.parametrize("way", WAYS)
def test_interrupted(mpirun, way):
    result = mpirun(2, program.interrupted, way, expect=ANY, timeout=60)
    assert "interrupted" in result.stdout and "KeyboardInterrupt" in result.stderr, str(result)
    assert "SystemError" not in result.stderr and result.status == 128 + signal.SIGINT, str(result)


def test_interrupt_of_the_job(mpirun):
    job = mpirun.start(
        2,
        """
        import numba
        import numpy as np
        import gormapy.numba as nm

        receive = numba.njit(lambda a, source: nm.recv(a, source))
        receive(np.zeros(1), -2)
        print("waits", flush=True)
        receive(np.zeros(1), nm.rank())
        """,
        timeout=60,
    )
    job.expect("waits", 2, timeout=60)
    time.sleep(0.5)
    began = time.monotonic()
    job.signal(signal.SIGINT)
    job.finish(expect=ANY)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("make", ["Allocate", "Create"])
def test_interrupted_poll(mpirun, make):
    mpirun.alone(program.interrupted_poll, make, timeout=60)


def test_interrupted_wait(mpirun):
    mpirun.alone(program.interrupted_wait)


def test_arguments_that_are_refused(ranks):
    ranks(1, program.arguments_that_are_refused)


@pytest.mark.parametrize("way", ("python", "njit"))
@pytest.mark.parametrize("what", ("interrupted_receive", "interrupted_send"))
def test_memory_after_an_interrupt(mpirun, what, way):
    mpirun(2, getattr(program, what), way, timeout=60)


def test_two_signals(mpirun):
    mpirun(1, program.two_signals, timeout=60)


def test_a_subinterpreter_was_there(mpirun):
    mpirun(1, program.a_subinterpreter_was_there, timeout=60)


def test_no_sentence_of_another_error(ranks):
    ranks(1, program.no_sentence_of_another_error)


def test_exception_is_caught(mpirun):
    mpirun(1, program.caught, timeout=60)


def test_dead_peer(mpirun):
    result = mpirun(3, program.dead_peer, launcher=["--enable-recovery"], expect=ANY, timeout=60)
    assert result.stdout.splitlines() == ["told True True"] * 2, str(result)


@pytest.mark.parametrize(("n", "case"), [(2, "of_a_dead_peer"), (3, "of_a_receive_from_any"), (1, "when_revoked")])
def test_copied_handle(mpirun, n, case):
    function = getattr(program, f"copied_handle_{case}")
    result = mpirun(n, function, launcher=["--enable-recovery"], expect=ANY, timeout=60)
    assert result.stdout == "right\n", result


@pytest.mark.on_ranks(3)
def test_intercommunicators_are_refused(ranks):
    ranks(3, program.intercommunicators_are_refused)


def test_before_and_after(mpirun):
    mpirun.alone(
        """
        import gormapy
        gormapy.rc.initialize = False

        import numba
        import numpy as np
        import gormapy.numba as nm
        from gormapy import MPI

        send, one = numba.njit(lambda a: nm.send(a, 0)), np.zeros(1)
        assert not nm.initialized() and nm.size() == 0 and send(one) == MPI.ERR_OTHER
        MPI.Init()
        assert nm.initialized() and nm.size() == 1
        MPI.Finalize()
        assert send(one) == MPI.ERR_OTHER and "finalized" in nm.last_error() and nm.rank() == 0
        """,
        timeout=60,
    )


def test_forked(mpirun):
    mpirun(1, program.forked, timeout=60)


def test_cache(mpirun, tmp_path):
    """What another process has compiled finds the functions at their addresses in this one."""
    (tmp_path / "cached.py").write_text(
        "import numba\nimport gormapy.numba as numba_mpi\n\n"
        "@numba.njit(cache=True)\ndef total(x, out):\n"
        "    status, request = numba_mpi.isend(x, numba_mpi.rank())\n"
        "    numba_mpi.recv(out, numba_mpi.rank())\n"
        "    numba_mpi.wait(request)\n"
        "    return numba_mpi.allreduce(x, out, numba_mpi.Operator.SUM)\n"
    )
    main = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np
        from cached import total
        out = np.zeros(1)
        assert total(np.ones(1), out) == 0
        print(int(out[0]), sum(total.stats.cache_hits.values()), flush=True)
    """
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert mpirun(1, main, tmp_path, env=env, timeout=60).lines == ["1 0"]
    assert mpirun(2, main, tmp_path, env=env, timeout=60).lines == ["2 1", "2 1"]


def test_without_numba(mpirun):
    mpirun.alone(
        """
        import sys
        class Nowhere:
            def find_spec(self, name, path=None, target=None):
                if name == "numba":
                    raise ModuleNotFoundError("No module named 'numba'", name=name)
        sys.meta_path.insert(0, Nowhere())
        try:
            import gormapy.numba
        except ImportError as error:
            assert "pip install numba" in str(error), error
        else:
            raise AssertionError
        """
    )
