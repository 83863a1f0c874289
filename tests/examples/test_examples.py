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


GRIDS = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (3, 2)]

# The global sum is kept by the scheme; these are the values of a serial computation.
HILLS = {
    8: (3, "sum 2.576765066503 x[0][0] 0.000000006203 centre 0.235156992732"),
    12: (5, "sum 13.027477243978 x[0][0] 0.000038830442 centre 0.499477581980"),
}


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid[0]}x{grid[1]}")
def test_halo_is_the_same_for_every_process_grid(mpirun, grid):
    # one job for all, because a job takes longer to start than the steps do
    x, y = grid
    out = mpirun(
        x * y,
        f"""
        from gormapy.examples import halo
        for by in "messages", "fence":
            for corners in [], ["-c"]:
                for cells, (steps, _) in {HILLS}.items():
                    options = f"-x {x} -y {y} -i {{cells}} -j {{cells}} -w 2 -I {{steps}} --by {{by}}"
                    halo.main(options.split() + corners)
        """,
    ).stdout
    assert out.count("halo cells that are wrong: 0") == 8, out
    for _, expected in HILLS.values():
        assert out.count(expected) == 4, out


@pytest.mark.parametrize("by", ["messages", "fence"])
def test_halo_on_uneven_parts(mpirun, by):
    sums = set()
    for x, y in ((1, 1), (3, 2), (7, 1)):
        args = ["-x", x, "-y", y, "-i", 23, "-j", 17, "-w", 1, "-I", 4, "-c", "--by", by]
        out = example(mpirun, x * y, "halo", *args).stdout
        assert "halo cells that are wrong: 0" in out
        sums.add(re.search(r"sum .*", out)[0])
    assert len(sums) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-x", 3, "-y", 2], "3 x 2 needs 6 ranks, there are 2"),
        (["-x", 3], "3 does not divide the number of ranks, 2"),
        (["-i", 3, "-w", 2], "less than the halo"),
        (["-I", -1], "not negative"),
        (["--by", "pigeon"], "invalid choice"),
    ],
)
def test_halo_refuses_what_cannot_be(mpirun, args, words):
    result = example(mpirun, 2, "halo", *args, expect=2)
    assert result.stderr.count(words) == 1
