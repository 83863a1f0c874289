"""What can be run as a rank, and how it learns which one it is."""

import os
import subprocess
import sys

import pytest
from support.mpirun import environment, mpiexec, program

WHO = "from gormapy import MPI; w = MPI.COMM_WORLD; print('who', w.rank, w.size, flush=True)"


def who(result):
    return [line.split()[1:] for line in result.lines if line.startswith("who")]


def expected(n):
    return [[str(r), str(n)] for r in range(n)]


WRAPPERS = {
    "bash-c": ["bash", "-c", f'"$0" -c "{WHO}"', sys.executable],
    "bash-c-with-more": ["bash", "-c", f'"$0" -c "{WHO}"; true', sys.executable],
    "env": ["env", "SOMETHING=1", sys.executable, "-c", WHO],
    "nice": ["nice", "-n", "1", sys.executable, "-c", WHO],
    "timeout": ["timeout", "20", sys.executable, "-c", WHO],
    "stdbuf": ["stdbuf", "-oL", sys.executable, "-c", WHO],
    "python-starting-python": [
        sys.executable,
        "-c",
        f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {WHO!r}]))",
    ],
}


# subprocess closes the connection to the process manager, by which several nodes meet.
CLOSES = pytest.mark.one_node("the wrapper closes PMI_FD")


@pytest.mark.parametrize(
    "wrapper", [pytest.param(name, marks=[CLOSES] if name == "python-starting-python" else []) for name in WRAPPERS]
)
def test_wrappers_pass_the_rank_on(mpirun, wrapper):
    result = mpirun.command(2, *WRAPPERS[wrapper]).finish()
    assert who(result) == expected(2), str(result)


def test_status_comes_through_a_wrapper(mpirun):
    source = "import sys\nfrom rankside import *\nif rank: sys.exit(3)\nworld.Barrier()\n"
    script = program(source, mpirun.folder)
    mpirun.command(2, "bash", "-c", f"{sys.executable} {script}; exit $?").finish(expect=3)


def test_module_launch(tmp_path):
    path = program(WHO, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "gormapy.launch", "-n", "2", str(path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done
    assert sorted(done.stdout.split("\n"))[1:] == ["who 0 2", "who 1 2"]


def test_standard_input_goes_to_rank_0(mpirun):
    result = mpirun(
        3,
        """
        import sys
        from rankside import *
        say(rank, repr(sys.stdin.read()))
        """,
        stdin="first\nlast",
    )
    assert result.lines == ["0 'first\\nlast'", "1 ''", "2 ''"]


def test_tagged_lines_are_never_torn(mpirun):
    result = mpirun(
        4,
        """
        import sys
        from rankside import *
        for i in range(500):
            print(f"{rank}:{i}:" + "x" * (i % 90), flush=i % 3 == 0)
            print(f"{rank}:{i}:", file=sys.stderr)
        """,
        launcher=["--tag-output"],
    )
    for text, lengths in ((result.stdout, True), (result.stderr, False)):
        lines = text.splitlines()
        assert len(lines) == 2000
        seen = dict.fromkeys(range(4), 0)
        for line in lines:
            tag, _, rest = line.partition("] ")
            r, i, x = rest.split(":")
            assert tag == f"[{r}", line
            assert int(i) == seen[int(r)], "the lines of a rank keep their order"
            assert len(x) == (int(i) % 90 if lengths else 0), line
            seen[int(r)] += 1


def test_partial_lines_at_the_end(mpirun):
    result = mpirun(2, "import sys\nfrom rankside import *\nsys.stdout.write(f'<{rank}>')\n")
    assert sorted(result.stdout.replace("><", "> <").split()) == ["<0>", "<1>"]


def test_unflushed_output_is_not_lost(mpirun):
    result = mpirun(4, "from rankside import *\nprint('x' * 1000)\nfor i in range(100): print(i)\n")
    assert len(result.lines) == 404


def test_environment_and_folder(mpirun, tmp_path):
    result = mpirun(
        2,
        "import os\nfrom rankside import *\nsay(os.environ['A'], os.environ['B'], os.getcwd())",
        env={"B": "two words"},
        launcher=["-env", "A", "1", "-x", "B", "-wdir", str(tmp_path)],
    )
    assert result.lines == [f"1 two words {tmp_path}"] * 2


REFUSED = {
    "zero": (["-n", "0", "true"], 2),
    "not-a-number": (["-n", "x", "true"], 2),
    "no-program": (["-n", "2"], 2),
    "unknown-option": (["--frobnicate", "true"], 2),
    "not-found": (["-n", "2", "no-such-program-anywhere"], 127),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_one_clear_line(case):
    arguments, status = REFUSED[case]
    done = subprocess.run([mpiexec(), *arguments], capture_output=True, text=True, timeout=10)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("mpiexec: "), done.stderr


def test_options_of_other_launchers_are_accepted(mpirun):
    options = ["--oversubscribe", "--allow-run-as-root", "-host", "localhost", "--mca", "btl", "self"]
    options += ["--bind-to", "none", "--map-by", "slot"]
    result = mpirun(2, WHO, launcher=options)
    assert who(result) == expected(2)


def test_job_inside_a_rank(mpirun):
    script = program(WHO, mpirun.folder)
    result = mpirun(
        2,
        f"""
        import subprocess, sys
        from rankside import *
        if rank == 0:
            subprocess.run([{mpiexec()!r}, "-n", "3", sys.executable, {str(script)!r}], check=True)
        world.Barrier()
        assert world.allreduce(1) == 2
        """,
    )
    assert who(result) == expected(3), str(result)


def test_two_jobs_at_once(mpirun):
    source = "from rankside import *\nfor i in range(300): assert world.allreduce(1) == size\n"
    jobs = [mpirun.start(2, source), mpirun.start(3, source)]
    for job in jobs:
        job.finish()


def test_more_ranks_than_cores(mpirun):
    n = 4 * (os.cpu_count() or 1) + 3
    mpirun(n, "from rankside import *\nfor i in range(20): assert world.allreduce(1) == size\n", timeout=60)
