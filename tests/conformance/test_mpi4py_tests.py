"""mpi4py's own tests run unmodified on gormapy; those that fail are the ones that are listed.

The list is mpi4py-failures.txt. A test that fails and is not on it, and one that is on it and passes, fail here.
``make conformance`` runs all modules, ``make test`` those of what everyday programs use and of windows.
"""

import fnmatch
import json
import sys
from pathlib import Path

import pytest
from support.mpirun import ANY

HERE = Path(__file__).parent
SIZES = (1, 2, 4)
EVERYDAY = (
    "test_p2p_buf",
    "test_p2p_obj",
    "test_request",
    "test_status",
    "test_cco_buf",
    "test_cco_obj",
    "test_comm",
    "test_group",
    "test_msgspec",
    "test_file",
    "test_io",
    "test_objmodel",
    "test_util_dtlib",
    "test_util_pkl5",
    "test_util_pool",
    "test_util_sync",
)
LONG = ("test_msgspec", "test_io", "test_util_dtlib")
# These take ten seconds and more: make test has the same modules on fewer ranks, or the like of them.
EXHAUSTIVE = {
    ("test_msgspec", 2),
    ("test_io", 2),
    ("test_p2p_buf", 4),
    ("test_cco_buf", 4),
    ("test_util_dtlib", 2),
    ("test_rma", 2),
    ("test_rma", 3),
    ("test_rma_nb", 3),
}
# Modules about windows, also on numbers of ranks that are no powers of two
WINDOWS = (
    "test_rma",
    "test_rma_nb",
    "test_win",
    "test_errhandler",
    "test_attributes",
    "test_info",
    "test_doc",
    "test_pickle",
)
OTHERS = tuple(
    f"test_{name}"
    for name in (
        "address buffer cffi ctypes mpiabi cco_buf_inter cco_nb_buf cco_nb_vec cco_ngh_buf cco_ngh_obj cco_obj_inter cco_pr_buf "
        "cco_pr_ngh_buf cco_pr_vec cco_vec cco_vec_inter comm_inter comm_topo datatype dynproc environ errorcode "
        "exceptions grequest handle mpimem msgzero op p2p_buf_matched p2p_buf_part "
        "p2p_obj_matched pack session spawn subclass threads toplevel ulfm"
    ).split()
)
# What is not about MPI, or about what gormapy does not claim to be: a library with a C interface.
NOT_RUN = {
    "test_mpiapi": "compares mpi4py's sources with a C header",
    "test_package": "reads mpi4py's installed files",
}

# Tests that assert on times, with what a busy machine does not always give them: one that failed has three more tries.
TIMED = {
    "test_apply_async": "a worker has 2 s for a task that takes 0.2 s",
    "test_apply_async_timeout": "the main process looks three times before a task has slept for 0.2 s",
}


class Expected:
    """The tests that are known to fail: lines with a test or a pattern, the numbers of ranks and the reason."""

    def __init__(self, path):
        self.lines = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                test, sizes, reason = line.split(None, 2)
                self.lines.append((number, test, {int(n) for n in sizes.split(",")}, reason))

    def find(self, test, n):
        """Return the lines that expect a test to fail on n ranks."""
        return [number for number, pattern, sizes, _ in self.lines if n in sizes and fnmatch.fnmatchcase(test, pattern)]

    def of(self, module, n):
        """Return the lines about a module's tests on n ranks."""
        return [line for line in self.lines if n in line[2] and line[1].startswith(f"{module}.")]


def outcomes(folder, n):
    """Return what came of each test, all ranks taken together: {test: (outcome, reason)}."""
    found = {}
    for rank in range(n):
        path = folder / f"{rank}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            test, outcome, reason = json.loads(line)
            if test and found.get(test, ("",))[0] != "failed":
                found[test] = (outcome, f"rank {rank}: {reason}")
    # a test that no rank came to the end of has hung, or ended the job
    return {t: (("failed", "it did not end") if o[0] == "started" else o) for t, o in found.items()}


def run(mpirun, tmp_path, source, module, n, timeout):
    """Run a module of mpi4py's tests; compare what fails with what is expected to."""
    expected = Expected(HERE / "mpi4py-failures.txt")
    command = (sys.executable, "-m", "gormapy.run", HERE / "rankside" / "unittests.py", source / "test")
    result = mpirun.command(n, *command, tmp_path, module, timeout=timeout).finish(ANY)
    found = outcomes(tmp_path, n)
    for attempt in range(3):
        late = [t for t, (outcome, _) in found.items() if outcome == "failed" and t.rpartition(".")[2] in TIMED]
        if late:
            again = tmp_path / f"again-{attempt}"
            again.mkdir()
            mpirun.command(n, *command, again, *late, timeout=timeout).finish()
            found.update(outcomes(again, n))
    ended = all('["", "ended", ""]' in (tmp_path / f"{r}.jsonl").read_text() for r in range(n)) if found else False
    problems, used = [], set()
    for test, (outcome, reason) in sorted(found.items()):
        lines = expected.find(test, n)
        if outcome == "failed" and not lines:
            problems.append(f"{test} fails: {reason}")
        if outcome == "passed" and lines:
            problems.append(f"{test} passes, but line {lines} of mpi4py-failures.txt expects it to fail")
        if outcome == "failed":
            used.update(lines)
    problems += [f"line {k}: no test is {p!r} and fails" for k, p, _, _ in expected.of(module, n) if k not in used]
    assert not problems, "\n  ".join([f"{module} on {n} ranks:", *problems, str(result)])
    assert ended, f"{module} on {n} ranks did not come to its end\n{result}"
    assert result.status == 0, result


# Of test_rma, what does not go through every type and every count: for the emulated guest of tests/rdma.
SHORT = (
    "CompareAndSwap PutProcNull GetProcNull AccumulateProcNullReplace AccumulateProcNullSum GetAccumulateProcNull "
    "Fence FenceAll StartComplete PostWait StartCompletePostWait StartCompletePostTest Sync Flush"
).split()


def test_short_windows(mpirun, tmp_path, mpi4py_source):
    script = HERE / "rankside" / "unittests.py"
    names = [f"test_rma.TestRMAWorld.test{name}" for name in SHORT]
    command = (sys.executable, "-m", "gormapy.run", script, mpi4py_source / "test", tmp_path, *names)
    result = mpirun.command(2, *command, timeout=250).finish()
    found = {test: outcome for test, (outcome, _) in outcomes(tmp_path, 2).items()}
    assert found == dict.fromkeys(names, "passed"), result


def sizes(modules, often, also=()):
    """Return modules with numbers of ranks; those in also, and all but 2 of long modules, are for make conformance."""
    for module in modules:
        for n in (*often, *also):
            rare = n in also or (module in LONG and n != 2)
            marks = [pytest.mark.conformance] if rare else []
            if (module, n) in EXHAUSTIVE:
                marks.append(pytest.mark.exhaustive)
            yield pytest.param(module, n, marks=marks)


@pytest.mark.parametrize(("module", "size"), list(sizes(EVERYDAY, (1, 2, 4))))
def test_everyday(mpirun, tmp_path, mpi4py_source, module, size):
    run(mpirun, tmp_path, mpi4py_source, module, size, 250)


@pytest.mark.parametrize(("module", "size"), list(sizes(WINDOWS, (1, 2, 3), also=(4, 5))))
def test_windows(mpirun, tmp_path, mpi4py_source, module, size):
    run(mpirun, tmp_path, mpi4py_source, module, size, 250)


@pytest.mark.conformance
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("module", OTHERS)
def test_others(mpirun, tmp_path, mpi4py_source, module, size):
    run(mpirun, tmp_path, mpi4py_source, module, size, 200)


def test_every_module_is_known(mpi4py_source):
    modules = {path.stem for path in (mpi4py_source / "test").glob("test_*.py")}
    assert modules == {*EVERYDAY, *WINDOWS, *OTHERS, *NOT_RUN}
