"""What is there when a recording, or a rank, ends early, and when there is none."""

import json
import signal

import numpy as np
import pytest
from support.mpirun import ANY
from support.programs import beside

from gormapy.trace import load

program = beside(__file__)


@pytest.mark.parametrize("end", program.keys_of("ENDS"))
def test_recording_survives_any_end(recorded, end):
    trace = recorded(2, program.recording_survives_any_end, end, expect=ANY)
    assert trace.job.status != 0
    for rank in (0, 1):
        names = trace.calls["name"][trace.calls["rank"] == rank].tolist()
        assert names[:2] == ["Barrier", "Sendrecv"], names
    assert len(trace.messages) == 2
    assert not np.isnan(trace.messages["received"]).any()


def test_interrupt_and_time_out_leave_a_recording(mpirun, tmp_path):
    path = tmp_path / "out.json"
    job = mpirun.start(2, program.interrupt_and_time_out_leave_a_recording, launcher=("--trace", str(path)))
    job.expect("there")
    job.signal(signal.SIGINT)
    job.finish(ANY)
    trace = load(path)
    assert "Recv" in trace.calls["name"][trace.calls["rank"] == 0]
    said = "rank 0 was in Recv when it ended"
    late = mpirun.until_timeout(
        2,
        program.interrupt_and_time_out_leave_a_recording,
        launcher=("--trace", str(path)),
        says={said: 1},
        first=3,
    )
    trace = load(path)
    stuck = trace.calls[~trace.calls["finished"]]
    assert stuck[["rank", "name"]].tolist() == [(0, "Recv")]
    assert stuck["end"][0] - stuck["begin"][0] >= 0
    assert said in late.stderr
    assert "was in Recv" in trace.summary()


def test_more_events_than_there_is_room_for(recorded):
    source = """
    import numpy as np
    from gormapy import MPI
    comm = MPI.COMM_WORLD
    for _ in range(500):
        comm.Barrier()
    """
    trace = recorded(2, source, env={"GORMAPY_TRACE_EVENTS": 100})
    assert set(trace.dropped) == {0, 1}
    assert all(n > 300 for n in trace.dropped.values())
    assert 0 < len(trace.calls) <= 200
    assert "found no room" in trace.summary()
    assert "found no room" in trace.job.stderr


@pytest.mark.parametrize("events", ["0", "many"])
def test_bad_number_of_events_is_refused(mpirun, tmp_path, events):
    job = mpirun(
        1,
        program.bad_number_of_events_is_refused,
        launcher=("--trace", str(tmp_path / "o")),
        env={"GORMAPY_TRACE_EVENTS": events},
        expect=2,
    )
    assert "GORMAPY_TRACE_EVENTS" in job.stderr
    assert "ran" not in job.stdout


def test_file_that_cannot_be_written_is_refused_before_the_job(mpirun, tmp_path):
    for path in (tmp_path / "no" / "such" / "folder.json", tmp_path):
        job = mpirun(
            1, program.file_that_cannot_be_written_is_refused_before_the_job, launcher=("--trace", str(path)), expect=2
        )
        assert "--trace" in job.stderr and "ran" not in job.stdout


def test_without_the_option_nothing_is_recorded(mpirun, tmp_path):
    mpirun(
        2,
        program.without_the_option_nothing_is_recorded,
        cwd=tmp_path,
    )
    assert not list(tmp_path.glob("*.json"))


def test_rank_without_mpi_is_said_to_be_absent(recorded):
    trace = recorded(1, "print('no MPI here')")
    assert trace.absent == [0]
    assert "recorded nothing" in trace.summary()
    assert len(trace.calls) == 0 and repr(trace).startswith("<Trace of 1 rank")


def test_children_are_not_recorded(recorded):
    trace = recorded(1, program.children_are_not_recorded)
    assert (trace.calls["name"] == "Barrier").sum() == 2


def test_summary_goes_to_standard_error(mpirun):
    job = mpirun(
        2,
        program.summary_goes_to_standard_error,
        launcher=("--summary",),
    )
    assert job.stdout == ""
    rows = [line.split() for line in job.stderr.splitlines()]
    row = next(row for row in rows if row[:1] == ["Sendrecv"])
    assert row[1:4] == ["10", "8000", "B"]
    assert ["10", "messages", "of", "8000", "B"] in rows
    total, rank0, rank1 = float(row[4]), float(row[7]), float(row[8])
    assert abs(total - rank0 - rank1) < 0.01


@pytest.mark.parametrize("n", [1, 2, 4])
def test_part_of_a_program(ranks, tmp_path, n):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json", "d.json")]
    ranks(n, program.in_program, *paths)
    for path in paths:
        assert len(load(path).calls) == 2 * n


def test_part_of_a_program_that_is_recorded(recorded, tmp_path):
    trace = recorded(2, program.in_program, str(tmp_path / "inner.json"))
    assert len(load(tmp_path / "inner.json").calls) == 4
    assert (trace.calls["name"] == "Barrier").sum() == 6
    assert (trace.calls["name"] == "Sendrecv").sum() == 2


def test_exception_in_a_recorded_part_leaves_what_there_is(mpirun, tmp_path):
    job = mpirun(
        2,
        program.exception_in_a_recorded_part_leaves_what_there_is,
        str(tmp_path / "out.json"),
        expect=1,
    )
    assert "on purpose" in job.stderr
    left = sorted(tmp_path.glob("out.rank*.json"))
    assert left, job
    for path in left:
        assert load(path).calls["name"].tolist() == ["Barrier"]


def test_what_is_no_recording(tmp_path):
    for text in (
        "",
        "{}",
        "[]",
        "nonsense",
        json.dumps({"traceEvents": []}),
        json.dumps({"otherData": {"producer": "gormapy"}}),
    ):
        path = tmp_path / "bad.json"
        path.write_text(text)
        with pytest.raises(ValueError, match=r"bad\.json"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.json")
