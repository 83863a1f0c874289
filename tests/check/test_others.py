"""Programs that were not written for the checker: nothing is found in the examples, and in mpi4py's only what is known.

``make check-others`` runs mpi4py's, too.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from support import mpi4py
from support.mpirun import ANY

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

UNITTESTS = Path(__file__).parents[1] / "conformance" / "rankside" / "unittests.py"


def test_examples(mpirun):
    # one job for all, because a job takes longer to start than the examples do
    program = """
    from gormapy.examples import channel_mpsc, channel_spsc, channel_varsize, demo, heat, notified_halo, object_store
    from gormapy.examples import pingpong, put, remote_memcpy, ring, work_queue

    demo.main()
    ring.main()
    work_queue.main(["8"])
    for way in heat.WAYS:
        heat.main(["--size", "23", "14", "--steps", "12", "--by", way])
    notified_halo.main(100, 50)
    put.main()
    object_store.main([])
    remote_memcpy.main([])
    pingpong.main(["4", "10", "16"])
    channel_spsc.main(["4"])
    channel_varsize.main(["4"])
    for more in [], ["--nonlocking"]:
        channel_mpsc.main(["4", *more])
    """
    nothing_in(mpirun(2, program, launcher=["--check"]))


@pytest.mark.parametrize("n", [2, 3])
def test_ghost_exchange(mpirun, n):
    program = """
    from gormapy.examples.ghost_exchange.__main__ import main
    from gormapy.examples.ghost_exchange.methods import METHODS

    for method, way in METHODS.items():
        for memory in way.MEMORIES:
            main(f"-i 12 -j 9 -h 1 -c -I 4 --kernel numpy --method {method} --memory {memory}".split())
    """
    nothing_in(mpirun(n, program, launcher=["--check"], timeout=60))


def nothing_in(result):
    assert result.stderr.strip() == "mpiexec --check: nothing was found in this run", result


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return the folder of mpi4py's source distribution."""
    return mpi4py.unpacked(tmp_path_factory.mktemp("mpi4py"))


def found_in(mpirun, folder, n, *command, **options):
    """Run a program for mpi4py; return the classes that were found, each with its calls, and at how many lines."""
    out = folder / "findings.json"
    command = (sys.executable, "-m", "gormapy.run", *command)
    result = mpirun.command(n, *command, launcher=[f"--check=json:{out}"], **options).finish(ANY)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    findings = [record for record in records if "class" in record and not record.get("contested")]
    assert records[-1] == {"end": True, "findings": len(findings), "status": int(bool(findings))}, result
    places = {
        (found["class"], *sorted((access["call"], access["line"]) for access in found["accesses"]))
        for found in findings
    }
    return Counter((kind, *(call for call, _ in accesses)) for kind, *accesses in places)


TESTS = {
    "test_win": {},
    "test_rma_nb": {},
    "test_rma": {
        ("bad-argument", "Fetch_and_op"): 3,  # calls that have to raise a ValueError
        ("bad-argument", "Compare_and_swap"): 5,
        ("target-conflict", "Put", "Put"): 3,  # testPutGet: all ranks put the same values to each rank
    },
}


@pytest.mark.conformance
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("module", TESTS)
def test_tests_of_mpi4py(mpirun, tmp_path, source, module, n):
    found = found_in(mpirun, tmp_path, n, UNITTESTS, source / "test", tmp_path, module, timeout=400)
    assert found == TESTS[module]
    for rank in range(n):
        outcomes = [json.loads(line) for line in (tmp_path / f"{rank}.jsonl").read_text().splitlines()]
        assert outcomes[-1] == ["", "ended", ""]
        assert not [line for line in outcomes if line[1] == "failed"]


DEMOS = {
    "compute-pi/cpi-rma.py": {},
    "nxtval/nxtval-onesided.py": {},
    "nxtval/nxtval-scalable.py": {},
    "nxtval/nxtval-threads.py": {},
    # others count before rank 0 has set the counter to 0, unless the lock orders the two by chance
    "nxtval/nxtval-mpi3.py": {("local-access", "Get_accumulate", "store"): 1},
}


@pytest.mark.conformance
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("program", DEMOS)
def test_demonstrations_of_mpi4py(mpirun, tmp_path, source, program, n):
    found = found_in(mpirun, tmp_path, n, source / "demo" / program, stdin="1\n100\n1000\n0\n")
    assert found in ({}, DEMOS[program])
