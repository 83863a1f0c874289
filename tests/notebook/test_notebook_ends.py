"""Ranks that die, kernels that end: the kernel lives on, and nothing is left behind."""

import os
import re
import signal
import time

import pytest
from kernels import Kernel, until
from support import leftovers

SETUP = """
%%mpi -n 3
from gormapy import MPI
import ctypes, os, signal, sys, time
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
"""

DEATHS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 was killed by signal 9 (SIGKILL)"),
    "exit status": ("os._exit(7)", "rank 1 ended with exit status 7"),
    "exit without one": ("os._exit(0)", "rank 1 ended by itself with exit status 0"),
    "segmentation fault": ("ctypes.string_at(0)", "rank 1 was killed by signal"),
    "abort": ("comm.Abort(5)", "rank 1 called Abort(5)"),
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_rank_that_dies_does_not_take_the_kernel_along(shared, how):
    code, words = DEATHS[how]
    shared.run(SETUP).check()
    kernel = shared.pid
    out = shared.run(f"%%mpi\nprint('last words of', rank, flush=True)\nif rank == 1: {code}\ncomm.Barrier()")
    out.check("RankDied")
    assert words in out.value and "their state is lost" in out.value and out.seconds < 20
    assert "last words of 1" in out.of(1)
    out = shared.run("%%mpi\nfrom gormapy import MPI\n'rank' in globals(), MPI.COMM_WORLD.allreduce(1)").check()
    assert out.of(2) == ["(False, 3)"]
    assert shared.pid == kernel and shared.run("1 + 1").check().text == "2"


def test_a_crash_shows_where_python_was(shared):
    shared.run(SETUP).check()
    out = shared.run("%%mpi\ndef deep():\n    ctypes.string_at(8)\nif rank == 1: deep()\ncomm.Barrier()")
    out.check("RankDied")
    assert "Fatal Python error: Segmentation fault" in out.text and " in deep" in out.text, out.text
    assert "rank 1 was killed by signal 11 (SIGSEGV)" in out.value


# Memory whose file was cut: each access to it is SIGBUS.
CUT = """
%%mpi
import mmap, tempfile
import numpy as np
with tempfile.TemporaryFile() as file:
    file.truncate(1 << 20)
    memory = mmap.mmap(file.fileno(), 1 << 20)
    file.truncate(0)
cut = np.frombuffer(memory, np.uint8)
kept = "state"
"""


def test_a_fault_that_the_core_contains_is_an_error_of_the_cell(shared):
    shared.run(SETUP).check()
    shared.run(CUT).check()
    for call in (
        "MPI.SUM.Reduce_local(cut[:100], np.zeros(100, np.uint8))",
        "MPI.SUM.Reduce_local(cut, np.zeros(1 << 20, np.uint8))",
        "MPI.COMM_SELF.Allgather(cut[:1000], np.zeros(1000, np.uint8))",
    ):
        out = shared.run(f"""
            %%mpi
            if rank == 1:
                try:
                    {call}
                except MPI.Exception as error:
                    print("contained:", error.Get_error_class() == MPI.ERR_BUFFER)
            """).check()
        assert out.of(1) == ["contained: True"], f"{call}: {out.text}"
    assert shared.run("%%mpi\nkept, comm.allreduce(1)").check().of(1) == ["('state', 3)"]


def test_a_rank_that_dies_between_cells(shared):
    shared.run(SETUP).check()
    pid = int(shared.run("%%mpi --ranks 2\nos.getpid()").check().of(2)[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not leftovers.runs(pid))
    until(lambda: "was killed by signal 9" in shared.run("%mpi status").check().text)
    out = shared.run("%%mpi\n'rank' in globals()").check()
    assert "Since the last cell: rank 2 was killed by signal 9 (SIGKILL)" in out.text and "lost" in out.text
    assert out.of(0) == ["False"]


def test_the_launcher_dies(shared):
    shared.run(SETUP).check()
    pid = int(shared.run("%%mpi --ranks 0\nos.getppid()").check().of(0)[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not shared.processes())
    assert "The ranks are new" in shared.run("%%mpi\n1").check().text


BUSY = {
    "nothing": "pass",
    "waiting": "comm.recv(source=(rank + 1) % size)",
    "computing": "while True: pass",
    "in C code with Python's lock": "mutex = ctypes.create_string_buffer(64)\n"
    "for _ in range(2): ctypes.PyDLL(None).pthread_mutex_lock(mutex)",
    "with a child": "import subprocess\nsubprocess.run(['sleep', '600'])",
}


@pytest.mark.parametrize("busy", BUSY)
def test_a_killed_kernel_leaves_nothing(tmp_path, busy):
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP).check()
        asked = kernel.begin(f"%%mpi\n{BUSY[busy]}")
        if busy == "nothing":
            kernel.finish(asked)
        time.sleep(0.7)
        assert len(kernel.processes()) >= 4
        os.kill(kernel.pid, signal.SIGKILL)
        assert not kernel.left(8.0)


@pytest.mark.parametrize("how", ["restart", "shutdown", "os._exit"])
def test_an_ended_kernel_leaves_nothing(tmp_path, how):
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP).check()
        assert len(kernel.processes()) >= 4
        if how == "restart":
            kernel.client.stop_channels()
            kernel.manager.restart_kernel(now=False)
            until(lambda: not kernel.processes())
            kernel._connect()
            assert kernel.run("%%mpi -n 2\nfrom gormapy import MPI\nMPI.COMM_WORLD.rank").check().of(1) == ["1"]
        elif how == "shutdown":
            kernel.manager.shutdown_kernel(now=False)
            assert not kernel.left(8.0)
        else:
            kernel.begin("import os; os._exit(1)")
            assert not kernel.left(8.0)


def test_forked_children_of_the_kernel_do_not_keep_ranks_alive(tmp_path):
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP).check()
        kernel.run(
            "import os, time\nif os.fork() == 0:\n    os.environ.clear()\n    time.sleep(20)\n    os._exit(0)"
        ).check()
        os.kill(kernel.pid, signal.SIGKILL)
        until(lambda: not any("magic.worker" in line or "mpiexec" in line for line in kernel.processes()), 15)
        for line in kernel.processes():
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)


def test_unloading_ends_the_ranks(kernel):
    kernel.run(SETUP).check()
    kernel.run("%unload_ext gormapy").check()
    until(lambda: not kernel.processes())
    assert "not found" in kernel.run("%%mpi\n1").text


def test_ranks_that_cant_be_started(kernel):
    out = kernel.run("""
        import os, sys
        real, sys.executable = sys.executable, "/bin/false"
        """).check()
    out = kernel.run("%%mpi -n 2\n1").check("StartError")
    assert "2 ranks could not be started" in out.value and out.seconds < 20
    kernel.run("sys.executable = real").check()
    assert kernel.run("%%mpi -n 2\n1").check().of(1) == ["1"]


def waits_of(pid):
    """Return how often the main thread of a process has waited for something."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.MULTILINE)[1])


@pytest.mark.parametrize("at", ["once", "some time"])
def test_interrupted_while_it_starts(kernel, tmp_path, at):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nsleep 40\nexec false\n")
    slow.chmod(0o755)
    kernel.run(f"import sys; real, sys.executable = sys.executable, {str(slow)!r}").check()
    waits = []

    def during(outcome, passed):
        processes = kernel.processes()
        if processes and at == "once":
            kernel.interrupt()
            return True
        if any("sleep 40" in line for line in processes):
            waits.append(waits_of(kernel.pid))
        # The kernel looks ten times a second who has come: it does so when it has waited some times more.
        if waits and waits[-1] >= waits[0] + 4:
            kernel.interrupt()
            return True

    out = kernel.run("%%mpi -n 7\n1", during=during)
    out.check("CellInterrupted")
    until(lambda: not kernel.processes())
    kernel.run("sys.executable = real").check()
    assert kernel.run("%%mpi -n 2\n1").check().of(1) == ["1"]
