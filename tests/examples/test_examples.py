"""The examples do what they say, on every number of ranks."""

import re
import sys

import pytest
from ringlines import ring_lines
from support.mpirun import ANY


def example(mpirun, n, name, *args, expect=0, **options):
    """Run an example on ``n`` ranks."""
    return mpirun.command(n, sys.executable, "-m", f"gormapy.examples.{name}", *args, **options).finish(expect)


def test_demo(mpirun, n):
    out = example(mpirun, n, "demo").stdout
    assert len(re.findall(r"^  rank \d: process \d+ on ", out, re.MULTILINE)) == n
    for rank in range(n):
        left = (rank - 1) % n
        assert f"rank {rank} got {400 + left} from rank {left}" in out
        assert f"rank {rank} has {11 * left}" in out
    if n > 1:
        assert re.search(r"wrote \d+ times meanwhile, and the last value is there: True", out), out


def test_ring(mpirun, n):
    assert example(mpirun, n, "ring").lines == ring_lines(n)


def test_put(mpirun):
    assert example(mpirun, 2, "put").lines == [
        "Rank 1 sees 42",
        "[Lock/Unlock] rank 0 buf = 0",
        "[Lock/Unlock] rank 1 buf = 123",
    ]


def test_put_alone_says_what_it_needs(mpirun):
    result = example(mpirun, 1, "put", expect=ANY)
    assert result.status == 1
    assert "mpiexec -n 2" in result.stderr


@pytest.mark.parametrize("tasks", [0, 1, 8, 300])
def test_work_queue(mpirun, n, tasks):
    result = example(mpirun, n, "work_queue", tasks)
    assert result.stdout.splitlines() == [
        "final counter=0 (should be 0)",
        f"results filled: {tasks}/{tasks}",
        f"results: {[float(i * i) for i in range(1, tasks + 1)]}",
    ]


def diffused(nx, ny, steps, alpha):
    """Return the sum and the maximum within the plate of heat.py, by another formula: a cell at a time."""
    cells = [[100.0 if i == 0 else 0.0 for _ in range(ny)] for i in range(nx)]
    for j in range(ny // 3, 2 * ny // 3 + 1):
        cells[nx // 2][j] = 500.0
    for _ in range(steps):
        new = [row[:] for row in cells]
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                around = cells[i - 1][j] + cells[i + 1][j] + cells[i][j - 1] + cells[i][j + 1]
                new[i][j] = (1 - 4 * alpha) * cells[i][j] + alpha * around
        cells = new
    return sum(map(sum, cells)) / (nx * ny), max(max(row[1:-1]) for row in cells[1:-1])


@pytest.mark.parametrize("shape", [(9, 3), (23, 14)])
def test_heat(mpirun, n, shape):
    # one job for all ways and numbers of steps, because a job takes longer to start than the steps do
    out = mpirun(
        n,
        f"""
        from gormapy.examples import heat
        for by in heat.WAYS:
            for steps in 0, 1, 12:
                heat.main(f"--size {shape[0]} {shape[1]} --steps {{steps}} --by {{by}}".split())
        """,
    ).stdout
    assert out.count("cells that differ from those of one process: 0") == 9, out
    found = re.findall(r"^mean (\S+) hottest (\S+)$", out, re.MULTILINE)
    for k, steps in enumerate((0, 1, 12) * 3):
        mean, hottest = diffused(*shape, steps, 0.24)
        assert float(found[k][0]) == pytest.approx(mean, rel=1e-9)
        assert float(found[k][1]) == pytest.approx(hottest, rel=1e-9)
    assert len(re.findall(r" cells on \d ranks, \d+ steps, by \w+: \d+\.\d+ s$", out, re.MULTILINE)) == 9


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--size", 3, 9], "on 2 ranks a plate has at least 4 rows, and 3 columns"),
        (["--steps", -1], "not negative"),
        (["--by", "pigeon"], "invalid choice"),
    ],
)
def test_heat_refuses_what_cannot_be(mpirun, args, words):
    result = example(mpirun, 2, "heat", *args, expect=2)
    assert result.stderr.count(words) == 1


@pytest.mark.parametrize(
    ("n", "arguments", "left"),
    [(1, [], 1), (2, [], 1), (4, [], 3), (7, [64, 200, 1, 3], 5), (7, [640, 100, 5, 0, 3, 1, 4], 2)],
)
def test_recovery(mpirun, n, arguments, left):
    result = example(mpirun, n, "recovery", *arguments, launcher=["--enable-recovery"])
    steps = arguments[1] if arguments else 200
    assert result.lines[-1] == f"{steps} steps, at the end on {left} ranks; as with one process: True", str(result)
    assert len(re.findall("was killed by signal 9", result.stderr)) == n - left, str(result)


def test_recovery_with_wrong_arguments(mpirun):
    assert "CELLS" in example(mpirun, 1, "recovery", "many", expect=1).stderr
    assert "can't be divided" in example(mpirun, 4, "recovery", 3, expect=1).stderr


def test_notified_halo(mpirun, n):
    result = example(mpirun, n, "notified_halo", 200, 100)
    assert re.fullmatch(rf"100 steps on {n} ranks in .* s; as with one process: True", result.lines[0]), str(result)
