"""Errors say what was asked, what there is and what to do: what learners really do."""

import re
from pathlib import Path

from support.programs import beside

program = beside(__file__)
says = beside(__file__, "says")


ERRORS = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


def test_integers_beyond_32_bits_are_not_cut(ranks):
    """A rank, tag or root that is too large is an error that names it, never another rank."""
    ranks(
        2,
        program.integers_beyond_32_bits_are_not_cut,
    )


def test_abort_is_never_a_success(mpirun):
    assert mpirun(2, program.abort_is_never_a_success, expect=1).status == 1


def test_one_sided_call_without_the_rank(ranks):
    ranks(
        2,
        says.one_sided_call_without_the_rank,
    )


def test_window_on_comm_self(ranks):
    ranks(
        2,
        says.window_on_comm_self,
    )


def test_process_that_nothing_started_more_of(mpirun, ranks):
    mpirun.alone(says.singleton)
    # under a launcher the number of ranks was somebody's choice
    ranks(
        1,
        says.process_that_nothing_started_more_of,
    )


def test_memory_that_is_not_contiguous(ranks):
    ranks(
        2,
        says.memory_that_is_not_contiguous,
    )


def test_objects_in_upper_case_calls(ranks):
    ranks(
        2,
        says.objects_in_upper_case_calls,
    )


def test_counts_and_datatypes(ranks):
    ranks(
        2,
        says.counts_and_datatypes,
    )


def test_operations(ranks):
    ranks(
        2,
        says.operations,
    )


def test_ranks_roots_and_tags(ranks):
    ranks(
        2,
        says.ranks_roots_and_tags,
    )


def test_truncated_and_out_of_range(ranks):
    ranks(
        2,
        says.truncated_and_out_of_range,
    )


def test_making_windows(ranks):
    ranks(
        1,
        says.making_windows,
    )


def test_what_is_freed_or_null(ranks):
    ranks(
        1,
        says.what_is_freed_or_null,
    )


def test_after_finalize(mpirun):
    mpirun(
        1,
        says.after_finalize,
    )


def test_objects_that_cannot_be_pickled(ranks):
    ranks(
        1,
        says.objects_that_cannot_be_pickled,
    )


def test_rank_given_to_recv_as_the_buffer(mpirun):
    """comm.recv(1) is comm.recv(buf=1) in mpi4py: what is meant is said where it is deprecated."""
    result = mpirun(
        1,
        program.rank_given_to_recv_as_the_buffer,
        expect=1,
    )
    assert "deprecated" in result.stderr and "source=0" in result.stderr
    assert "MPI_ERR_TRUNCATE" in result.stderr


def test_documentation_shows_the_texts(mpirun):
    """What the table in docs/errors.md says one sees is what one sees."""
    shown = re.findall(r"^\| `([^`]+)` \|", ERRORS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) > 12
    result = mpirun(2, says.mistakes_of_the_documentation)
    # Other tests see these.
    elsewhere = (
        "MPI_ERR_OTHER: join the job of",
        "MPI_ERR_OTHER: … rank 1 of the communicator has",
        "MPI_ERR_OTHER: … can't complete: rank … has given it up",
        "MPI_ERR_OTHER: allreduce can't complete: rank 0 of the communicator",
        "MPI_ERR_PROC_FAILED",
    )
    for text in shown:
        parts = [re.escape(part.strip()) for part in text.split("…")]
        assert text.startswith(elsewhere) or re.search(".*".join(parts), result.stdout), (
            f"{text}\nis not in\n{result.stdout}"
        )


def test_array_that_is_received_as_an_object(ranks):
    ranks(
        1,
        says.array_that_is_received_as_an_object,
    )


def test_packed_data_of_wrong_arguments(ranks):
    ranks(1, says.packed_data_of_wrong_arguments)


def test_messages_of_wrong_arguments(ranks):
    ranks(1, says.messages_of_wrong_arguments)


def test_communicators_of_wrong_arguments(ranks):
    ranks(
        1,
        says.communicators_of_wrong_arguments,
    )
