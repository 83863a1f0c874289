"""The programs of lessons on other MPIs: what runs, and that what goes wrong is told."""

import os
import time

import pytest
from lessons import elsewhere, source

pytestmark = pytest.mark.exhaustive  # it installs other MPIs

HEAD = "# 7 · Shared memory\n\nWhat it is about.\n\n<!-- first cell -->\n\n"
BEGIN = "```python\n%%mpi -n 2\nfrom gormapy import MPI\ncomm = MPI.COMM_WORLD\n```\n"


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "07-x.md"
        path.write_text(HEAD + text)
        return source.read(path)

    return read


@pytest.fixture(params=elsewhere.NAMES)
def mpi(request):
    """A library; whatever becomes of its jobs, they leave no shared memory behind."""
    before = segments()
    yield elsewhere.library(request.param)
    end = time.monotonic() + 120  # other workers may run jobs of MPICH, too
    while not segments() <= before and time.monotonic() < end:
        time.sleep(0.1)
    assert segments() <= before


def segments():
    return {name for name in os.listdir("/dev/shm") if name.startswith(("mpich_shm_", "sm_segment"))}


def test_jobs(read):
    lesson = read(
        "```python\nlocal\n```\n"
        "```python\n%%mpi\na = 1\n%time b\n```\n```error x\n%%mpi\n1 / 0\n```\n```python gormapy\n%%mpi\nc\n```\n"
        "```python\n%%mpi --ranks 0,2\nd\n```\n"
        "A\n```exercise\n%%mpi -n 3\ne\n```\n```solution\n%%mpi\nf\n```\n```python\n%%mpi --fresh\ng\n```\n"
    )
    found = [
        (job.n, [(python.strip(), cell.line, ranks) for cell, ranks, python in job.cells])
        for job in elsewhere.jobs(lesson)
    ]
    assert found == [
        (4, [("a = 1\npass", 10, None), ("d", 23, [0, 2])]),
        (3, [("e", 28, None), ("f", 32, None)]),
        (3, [("g", 36, None)]),
    ]


def test_cells_share_names_and_show_what_they_end_with(read, mpi):
    lesson = read(
        f"{BEGIN}```output gormapy\nonly here\n```\n"
        "```python\n%%mpi\ntotal = comm.allreduce(1)\n```\n"
        "```python\n%%mpi --ranks 1\nprint('rank', comm.rank)\ntotal * 21\n```\n```output\nrank 1\n42\n```\n"
    )
    assert elsewhere.run(lesson, mpi) == []


@pytest.mark.parametrize(
    "cell, says",
    [
        ("print('one')\n```\n```output\ntwo", "it should print 'two'"),
        ("assert comm.rank == 0, 'not rank 0'", "rank 1: 07-x.md:12:"),
        ("assert comm.rank == 0, 'not rank 0'", "AssertionError: not rank 0"),
        ("import os\nif comm.rank: os._exit(3)\ncomm.barrier()", "with ranks in the cells of lines ["),
    ],
)
def test_what_goes_wrong_is_told(read, mpi, cell, says):
    wrong = elsewhere.run(read(f"{BEGIN}```python\n%%mpi\n{cell}\n```\n```python\n%%mpi\n1\n```\n"), mpi)
    assert len(wrong) == 1
    assert says in wrong[0] and f"on {mpi.name} it" in wrong[0]


def test_what_hangs_ends(read, mpi, monkeypatch):
    for limit in (6, 30):  # a busy machine takes long until the ranks are there
        monkeypatch.setattr(elsewhere, "LIMIT", limit)
        (wrong,) = elsewhere.run(read(f"{BEGIN}```python\n%%mpi\ncomm.recv()\n```\n"), mpi)
        if "lines [12]" in wrong:
            break
    assert f"did not end within {limit} s, with ranks in the cells of lines [12]" in wrong
