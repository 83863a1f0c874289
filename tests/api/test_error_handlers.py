"""What becomes of an error: an exception, the end of the job, or a function of the program."""

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


def test_errors_are_exceptions(ranks):
    ranks(
        2,
        program.errors_are_exceptions,
    )


def test_a_function_of_the_program(ranks):
    ranks(
        2,
        program.a_function_of_the_program,
    )


@pytest.mark.parametrize("handler", ["ERRORS_ARE_FATAL", "ERRORS_ABORT"])
@pytest.mark.parametrize(
    ("obj", "call", "said"),
    [
        ("world", "world.Isend(np.zeros(1), 5)", "Intracomm.Isend on MPI_COMM_WORLD: MPI_ERR_RANK: the destination"),
        ("world", "world.Dup().Bcast(np.zeros(1), 5)", "Intracomm.Bcast: MPI_ERR_ROOT: the root 5"),
        ("win", "win.Put(np.zeros(9), 0)", "Win.Put on window: MPI_ERR_RMA_RANGE"),
    ],
)
def test_the_job_ends(mpirun, handler, obj, call, said):
    result = mpirun(2, program.job_ends, obj, call, handler, expect=ANY)
    assert result.status not in (0, None), str(result)
    assert result.lines == ["before"] * 2
    assert said in result.stderr, str(result)
    assert f"is {handler}: the job ends" in result.stderr, str(result)
    assert "Traceback" not in result.stderr, str(result)


@pytest.mark.parametrize(
    ("errors", "handler"),
    [
        ("exception", "ERRORS_RETURN"),
        ("default", "ERRORS_ARE_FATAL"),
        ("fatal", "ERRORS_ARE_FATAL"),
        ("abort", "ERRORS_ABORT"),
    ],
)
def test_rc_errors(mpirun, errors, handler):
    result = mpirun.alone(
        f"""
        import gormapy
        gormapy.rc.errors = {errors!r}
        from gormapy import MPI
        assert MPI.COMM_WORLD.Get_errhandler() == MPI.{handler}
        assert MPI.Win.Allocate(8).Get_errhandler() == MPI.{handler}
        MPI.COMM_SELF.send(1, dest=5)
        """,
        expect=ANY,
    )
    assert result.status not in (0, None), str(result)
    assert ("Traceback" in result.stderr) == (errors == "exception"), str(result)
    assert "MPI_ERR_RANK" in result.stderr, str(result)


def test_rc_errors_that_do_not_exist(mpirun):
    result = mpirun.alone("import gormapy; gormapy.rc.errors = 'ignore'; from gormapy import MPI", expect=1)
    assert "expecting one of exception, default, fatal, abort, got 'ignore'" in result.stderr


def test_at_most_so_many(ranks):
    ranks(2, program.at_most_so_many)


def test_warnings_that_are_errors(ranks):
    ranks(2, program.warnings_that_are_errors)


@pytest.mark.parametrize("call", program.keys_of("FREES"))
def test_freed_before_the_object(mpirun, call):
    mpirun(2, program.freed_before_the_object, call)


def test_copies_of_a_freed_handler(ranks):
    ranks(1, program.copies_of_a_freed_handler)


def test_handler_of_another_kind(ranks):
    ranks(1, program.handler_of_another_kind)


def test_threads_make_handlers(ranks):
    ranks(1, program.threads_make_handlers)
