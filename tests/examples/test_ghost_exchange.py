"""GhostExchange: every method, memory and process grid gives the field of a serial model, to the last bit."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from support.mpirun import ANY, environment
from support.programs import beside

program = beside(__file__)

PROGRAM = [sys.executable, "-m", "gormapy.examples.ghost_exchange"]


@pytest.mark.parametrize("n", [1, 2, 4, 6, 7])
def test_every_way_gives_the_field_of_a_serial_model(mpirun, n):
    grids = sum(n % nx == 0 for nx in range(1, n + 1))
    result = mpirun(n, program.compare_with_a_serial_model, "numpy", "Solver", timeout=100)
    assert result.stdout.split() == [str(grids * 4 * 18)]


def test_the_compiled_kernel_gives_the_same_bits(mpirun):
    pytest.importorskip("numba")
    result = mpirun(2, program.compare_with_a_serial_model, "numba", "Solver", timeout=100)
    assert result.stdout.split() == [str(2 * 4 * 18)]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("n", [1, 2, 4, 6, 7])
def test_overlap_gives_the_same_bits(mpirun, n, kernel):
    pytest.importorskip(kernel)
    grids = sum(n % nx == 0 for nx in range(1, n + 1))
    result = mpirun(n, program.compare_with_a_serial_model, kernel, "Solver", True, timeout=100)
    assert result.stdout.split() == [str(grids * 4 * 5)]


DOUBLE = Path(__file__).parent / "double_of_cupy"


def test_fields_on_a_device(mpirun):
    """No device is needed: what stands for CuPy keeps its arrays apart from NumPy's, as memory of a device is."""
    env = {"PYTHONPATH": with_double()}
    result = mpirun(4, program.compare_with_a_serial_model, "numpy", "DeviceSolver", env=env, timeout=100)
    assert result.stdout.split() == [str(3 * 4 * 18)]


def test_the_program_on_a_device(mpirun):
    args = "-i 12 -j 12 -h 1 -c -I 5 -p --array cupy".split()
    on_device = mpirun.command(2, *PROGRAM, *args, env={"PYTHONPATH": with_double()}).finish()
    on_host = mpirun.command(2, *PROGRAM, *args[:-2]).finish()
    untimed = [[line for line in r.lines if "." not in line or "Sum" in line] for r in (on_device, on_host)]
    assert untimed[0] == untimed[1] and any("Sum: 13.027477243978" in line for line in untimed[0])


def with_double():
    return os.pathsep.join([str(DOUBLE), *filter(None, [environment().get("PYTHONPATH")])])


def ghost_exchange(mpirun, n, *args, expect=0):
    return mpirun.command(n, *PROGRAM, *map(str, args)).finish(expect)


@pytest.mark.parametrize(
    "n, args, result",
    [
        (4, "-x 2 -y 2 -i 8 -j 8 -h 1 -c -I 0 --method pscw", "Sum: 2.576765066503 "),
        (4, "-x 2 -y 2 -i 8 -j 8 -h 1 -c -I 3", "Sum: 2.576765066503 x[0][0]: 0.000000006203 centre: 0.235156992732 "),
        pytest.param(
            6,
            "-x 3 -y 2 -i 12 -j 12 -I 5 --method shared",
            "Sum: 13.027477243978 x[0][0]: 0.000038830442 centre: 0.499477581980 ",
            marks=pytest.mark.one_node("the method is that of shared memory"),
        ),
    ],
)
def test_the_known_values(mpirun, n, args, result):
    out = ghost_exchange(mpirun, n, *args.split()).stdout
    assert f"        {result}" in out


def test_the_lines_are_those_of_the_original(mpirun):
    lines = ghost_exchange(mpirun, 2, *"-i 40 -j 30 -I 21 -t --barrier --self-test".split()).stdout.splitlines()
    number = r"\d+\.\d{6}"
    expected = [
        "------> Initializing the Problem",
        "        Halo cells that are wrong: 0",
        "------> Advancing the Solution",
        "        Iter 0",
        "        Iter 10",
        "        Iter 20",
        "------> Printing Timings",
        f"        Solution Advancement: {number} ",
        f"        Boundary Condition Enforcement:  {number} ",
        f"        Waiting for Other Ranks:  {number} ",
        f"        Ghost Cell Update:  {number} ",
        f"        Total: {number}",
        f"GhostExchange_gormapy Timing is stencil {number} boundary condition {number} ghost cell {number} total {number}",
    ]
    assert len(lines) == len(expected) + 5, lines
    for line, pattern in zip(lines, expected):
        assert re.fullmatch(pattern, line), (line, pattern)


def test_print_shows_the_halos(mpirun):
    out = ghost_exchange(mpirun, 2, *"-x 2 -i 6 -j 3 -h 1 -c -I 1 -p".split()).stdout
    test, initial, last = (block for block in re.split(r"(?m)^     +-1.*$", out)[1:])
    rows = [[float(cell) for cell in line.split(":")[1].split()] for line in test.splitlines() if ":" in line]
    assert rows[0] == [20, 20, 21, 22, 1020, 22, 1020, 1021, 1022, 1022]  # the top halo: the nearest cells
    assert rows[2] == [10, 10, 11, 12, 1010, 12, 1010, 1011, 1012, 1012]
    assert len(rows) == 5
    assert "Initial State" in test and "Advancing" in initial
    assert len(re.findall(r"(?m)^ *-?\d+:", last)) == 5


def test_plot(mpirun, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "field.png"
    ghost_exchange(mpirun, 4, "-i", 300, "-j", 200, "-I", 2, "--plot", path)
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_trace(mpirun, tmp_path):
    path = tmp_path / "trace.json"
    ghost_exchange(mpirun, 2, *"-i 40 -j 40 -I 5 --method persistent --trace".split(), path)
    names = {event["name"] for event in json.loads(path.read_text())["traceEvents"]}
    assert "Prequest.Startall" in names


REFUSED = {
    "-h": "Option -h requires an argument.",
    "-x 2 -y": "Option -y requires an argument.",
    "--method": "Option --method requires an argument.",
    "-z": "Unknown option -z",
    "--nothing": "Unknown option --nothing",
    "-i 20 extra": "there is no argument 'extra'",
    "-x 0": "Option -x: 0 is less than 1",
    "-i 0": "Option -i: 0 is less than 1",
    "-h 0": "Option -h: 0 is less than 1",
    "-j -3": "Option -j: -3 is less than 1",
    "-I -1": "Option -I: -1 is less than 0",
    "-h two": "Option -h: 'two' is not a whole number",
    "-h 1.5": "Option -h: '1.5' is not a whole number",
    "-i 99999999999999999999": "Option -i: 99999999999999999999 is more than",
    "-x 3": "-x 3 does not divide the number of ranks, 2",
    "-x 2 -y 2": "-x 2 -y 2 needs 4 ranks, but there are 2: mpiexec -n 4",
    "-i 3 -j 9": "Error -- local size of grid is less than the halo size",
    "-i 2000000000 -j 2000000000": "MiB are available",
    "--method smoke": "'smoke' is none of sendrecv, persistent, fence, pscw, lock, shared",
    "--memory core": "'core' is none of implicit, packed, direct, window, shared",
    "--method fence --memory shared": "--memory shared is nothing for --method fence",
    "--kernel fortran": "'fortran' is none of numpy, numba",
    "--method fence --overlap": "--overlap is nothing for --method fence, only for sendrecv, persistent",
    "--array cupy --overlap": "--overlap is nothing for --array cupy",
    "--array cupy": "--array cupy: CuPy ",
    "--array cupy --kernel numba": "--array cupy has a kernel of its own",
    "--plot x.zebra": "Option --plot: there is no format 'zebra'",
    "--plot /nowhere/x.png": "Option --plot: '/nowhere/x.png' can't be written",
}


@pytest.mark.parametrize("args", ["-x 2 -y 2", "-i 3 -j 9", "-h", "-I -1"])
def test_bad_options_are_refused_by_all_ranks_with_one_message(mpirun, args):
    result = ghost_exchange(mpirun, 2, *args.split(), expect=ANY)
    assert result.status == 1
    assert result.stdout == ""
    assert result.stderr.startswith(REFUSED[args])
    own = [line for line in result.stderr.splitlines() if not line.startswith("mpiexec: ")]
    assert len(own) == 1, own


def test_shared_memory_is_refused_on_several_nodes(mpirun):
    command = [*PROGRAM, "--method", "shared"]
    result = mpirun.command(3, *command, env={"GORMAPY_JOB_NODES": "0,1,1"}).finish(expect=1)
    assert "--method shared needs ranks that share memory, and these are on 2 nodes\n" in result.stderr


def test_bad_options_are_explained(mpirun):
    mpirun(
        1,
        f"""
        from gormapy.examples.ghost_exchange.options import Refused, parse
        for args, message in {REFUSED!r}.items():
            try:
                assert not parse(args.split(), 2), args
            except Refused as error:
                assert message in str(error), (args, str(error))
        assert (parse(["-h3"], 6).x, parse(["-x2", "-ctp"], 6).y) == (3, 3)
        assert [parse([], 2, numba=has).kernel for has in (True, False)] == ["numba", "numpy"]
        """,
    )


def test_help(mpirun):
    out = ghost_exchange(mpirun, 2, "--help", "-i", 5).stdout
    assert out.count("usage:") == 1
    for option in "-x -y -i -j -h -I -c -t -p --method --memory --kernel --plot --trace --self-test".split():
        assert option in out
