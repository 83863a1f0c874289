"""Start, end, versions, errors and the names that exist."""

import pytest
from support.mpirun import ANY
from support.programs import beside

program = beside(__file__)


def test_rank_size_and_versions(mpirun, n):
    mpirun(n, program.rank_size_and_versions, n)


@pytest.mark.parametrize("ending", ["", "MPI.Finalize()"])
def test_attributes_of_comm_self_are_deleted_first(mpirun, ending):
    result = mpirun(
        2,
        f"""
        from gormapy import MPI
        def deleted(comm, keyval, value):
            assert not MPI.Is_finalized()
            print(value, MPI.COMM_WORLD.allreduce(1), flush=True)
        keyvals = [MPI.Comm.Create_keyval(delete_fn=deleted) for _ in range(2)]
        for k, keyval in enumerate(keyvals):
            MPI.COMM_SELF.Set_attr(keyval, f"attribute {{k}}")
        {ending}
        """,
    )
    assert result.lines == ["attribute 0 2"] * 2 + ["attribute 1 2"] * 2, result


def test_rc_keeps_from_initializing(mpirun):
    mpirun(
        2,
        """
        import gormapy
        gormapy.rc.initialize = False
        from gormapy import MPI
        assert not MPI.Is_initialized()
        for call in (
            lambda: MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED),
            lambda: MPI.COMM_WORLD.Split(0),
            lambda: MPI.Win.Allocate(8, comm=MPI.COMM_WORLD),
            lambda: MPI.File.Open(MPI.COMM_WORLD, "file", MPI.MODE_CREATE | MPI.MODE_RDWR),
        ):
            try:
                call()
                raise SystemExit("it went well before Init")
            except MPI.Exception as error:
                assert "is not initialized" in str(error), error
        MPI.Init()
        assert MPI.COMM_WORLD.size == 2
        MPI.COMM_WORLD.Barrier()
        MPI.Finalize()
        """,
    )


def test_rc_refuses_unknown_options():
    import gormapy

    with pytest.raises(TypeError):
        gormapy.rc.no_such_option = 1
    with pytest.raises(TypeError):
        gormapy.rc(no_such_option=1)


def test_errors_have_code_class_and_text(ranks):
    ranks(
        2,
        program.errors_have_code_class_and_text,
    )


def test_unhandled_exception_names_the_rank_once(mpirun):
    result = mpirun(
        4,
        program.unhandled_exception_names_the_rank_once,
        expect=1,
    )
    assert result.stderr.count("Traceback") == 1
    assert "rank " in result.stderr and "ValueError: in all ranks" in result.stderr


def test_exit_status_of_one_rank_ends_the_job(mpirun):
    result = mpirun(
        3,
        program.exit_status_of_one_rank_ends_the_job,
        expect=3,
    )
    assert "rank 1" in result.stderr


def test_abort(mpirun):
    result = mpirun(
        2,
        program.abort,
        expect=ANY,
    )
    assert result.status == 7


def test_lines_appear_when_they_are_printed(mpirun):
    result = mpirun(
        2,
        program.lines_appear_when_they_are_printed,
    )
    assert result.lines == ["line of 0", "line of 1"]


def test_singleton_has_everything(mpirun):
    mpirun.alone(program.singleton_has_everything)


def test_size_of_a_status(ranks):
    ranks(1, program.size_of_a_status)
