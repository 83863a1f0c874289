"""The programs of test_recorded_ends.py."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rankside import await_call

from gormapy import MPI, trace
from gormapy._ext import fast


def bad_number_of_events_is_refused():
    print("ran")


def file_that_cannot_be_written_is_refused_before_the_job():
    print("ran")


def without_the_option_nothing_is_recorded():
    assert not trace.is_on()
    assert "GORMAPY_JOB_TRACE" not in os.environ
    MPI.COMM_WORLD.Barrier()
    assert fast.trace_mark() == 0
    assert not any(isinstance(member, fast.Recorded) for cls in MPI.Comm.__mro__ for member in vars(cls).values())
    assert "gormapy-trace" not in Path("/proc/self/maps").read_text()


def summary_goes_to_standard_error():
    comm = MPI.COMM_WORLD
    a = np.zeros(100)
    for _ in range(5):
        comm.Sendrecv(a, 1 - comm.rank, 0, a.copy(), 1 - comm.rank)


def in_program(*argv):
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    a = np.zeros(5)
    comm.Barrier()
    for path in argv:
        with trace.record(path) as recording:
            assert trace.is_on()
            comm.Sendrecv(a, (rank + 1) % size, 3, a.copy(), (rank - 1) % size, 3)
            comm.Allreduce(a, a.copy())
        comm.Barrier()
        assert (recording.trace is not None) == (rank == 0)
        if rank == 0:
            found = recording.trace
            assert found.ranks == size, found
            assert sorted(found.calls["name"].tolist()) == ["Allreduce"] * size + ["Sendrecv"] * size, found.calls
            assert len(found.messages) == size and not np.isnan(found.messages["received"]).any()
    try:
        trace.stop()
    except RuntimeError:
        pass
    else:
        raise AssertionError()
    trace.start()
    try:
        trace.start()
    except RuntimeError:
        pass
    else:
        raise AssertionError()
    comm.Barrier()
    part = trace.stop()
    mine = trace.join([part])
    assert mine.calls[["rank", "name"]].tolist() == [(rank, "Barrier")]


def exception_in_a_recorded_part_leaves_what_there_is(*argv):
    comm = MPI.COMM_WORLD
    with trace.record(argv[0]):
        comm.Barrier()
        raise ValueError("on purpose")


# How rank 1 ends.
ENDS = {
    "raise ValueError('on purpose')": lambda: fail("on purpose"),
    "comm.Abort(3)": lambda: MPI.COMM_WORLD.Abort(3),
    "os.kill(os.getpid(), signal.SIGKILL)": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "import ctypes; ctypes.string_at(0)": lambda: ctypes.string_at(0),
    "os._exit(5)": lambda: os._exit(5),
}


def fail(text):
    raise ValueError(text)


def exchange():
    comm = MPI.COMM_WORLD
    a = np.zeros(4)
    comm.Barrier()
    comm.Sendrecv(a, 1 - comm.rank, 1, a.copy(), 1 - comm.rank, 1)
    comm.Barrier()  # both have received


def recording_survives_any_end(end):
    exchange()
    if MPI.COMM_WORLD.rank == 1:
        ENDS[end]()
    MPI.COMM_WORLD.Recv(np.zeros(4), 1, 77)


def interrupt_and_time_out_leave_a_recording():
    exchange()
    if MPI.COMM_WORLD.rank == 1:
        await_call(0, "Recv")
        print("there", flush=True)
        time.sleep(100)
    MPI.COMM_WORLD.Recv(np.zeros(4), 1, 77)


def children_are_not_recorded():
    comm = MPI.COMM_WORLD
    comm.Barrier()
    pid = os.fork()
    if pid == 0:
        try:
            comm.Barrier()
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    code = "from gormapy import MPI, trace; MPI.COMM_WORLD.Barrier(); assert not trace.is_on()"
    subprocess.run([sys.executable, "-c", code], check=True)
    comm.Barrier()
