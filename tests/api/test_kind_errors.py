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


# Programs begin with this: says(kind, words, call) expects an error of a kind, or of an error class of MPI, whose
# text has all the words; words that begin with "!" must not be there.
SAYS = """
import numpy as np
from rankside import *

def says(kind, words, call):
    try:
        call()
    except Exception as error:
        if isinstance(kind, int):
            assert isinstance(error, MPI.Exception), repr(error)
            assert error.Get_error_class() == kind, error
        else:
            assert type(error) is kind, f"{type(error)}: {error}"
        text = str(error)
        for word in words.split("|"):
            missing = word[1:] in text if word.startswith("!") else word not in text
            assert not missing, f"{word!r} and the text: {text}"
    else:
        raise AssertionError(f"no error with {words!r}")

def still_well():
    "See that the job is well after the mistakes."
    win.Fence()
    assert world.allreduce(1) == size
    win.Free()

a, b, matrix, whole = np.zeros(4), np.zeros(4), np.zeros((4, 6)), np.zeros(4, "i4")
win = MPI.Win.Create(a, 8, comm=world)
win.Fence()
"""


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
    source = """
says(MPI.ERR_RANK, "rank 1|mpiexec -n", lambda: world.Send(a, 1))
says(MPI.ERR_ROOT, "root 1|mpiexec -n", lambda: world.Bcast(a, 1))
says(MPI.ERR_RANK, "rank 1|mpiexec -n", lambda: win.Put(a, 1))
    """
    mpirun.alone(SAYS + source)
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
    source = """
    import mmap, os
    seen = []
    def see(call):
        try:
            call()
        except Exception as error:
            seen.append(f"{type(error).__name__}: {error}")
    own = MPI.Win.Create(b)
    see(lambda: own.Lock(1))
    see(lambda: win.Put(a, 1, 3))
    see(lambda: win.Put(a, target=1))
    see(lambda: world.Send(a, 5))
    see(lambda: world.Send([1, 2, 3], 1))
    see(lambda: world.Send(matrix[:, 1], 1))
    see(lambda: world.Send([a, 1, MPI.DOUBLE.Create_vector(2, 1, 2)], 1))
    see(lambda: world.Allreduce(whole, b))
    file = os.memfd_create("truncated")
    os.truncate(file, 4096)
    mapped = np.frombuffer(mmap.mmap(file, 4096))
    os.truncate(file, 0)
    see(lambda: world.Send(mapped, rank))
    if rank == 0:
        world.Send(a, 1, 5)
    else:
        see(lambda: world.Recv(b[:2], 0, 5))
    win.Fence(MPI.MODE_NOSUCCEED)
    see(lambda: win.Put(a, 1))
    other = world.Dup()
    see(lambda: other.Bcast(a) if rank == 0 else other.Allreduce(a, b))
    if rank == 1:
        say("\\n".join(seen))
    win.Fence()
    own.Free()
    """
    result = mpirun(2, SAYS + "\n".join(line[4:] for line in source.splitlines()) + "\nwin.Free()\n")
    elsewhere = ("this process was started by a PMIx launcher", "MPI_ERR_PROC_FAILED")  # other tests see these
    for text in shown:
        parts = [re.escape(part.strip()) for part in text.split("…")]
        assert text in elsewhere or re.search(".*".join(parts), result.stdout), f"{text}\nis not in\n{result.stdout}"


def test_array_that_is_received_as_an_object(ranks):
    ranks(
        1,
        says.array_that_is_received_as_an_object,
    )
