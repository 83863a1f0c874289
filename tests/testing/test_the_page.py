"""docs/testing.md shows what happens."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_page(suite):
    blocks = re.findall(r"^```python\n# (test_\w+\.py)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for name, code in blocks:
        suite.write(name, f"# {name}\n{code}")
    done = suite("--mpi", "-n", 4, "test_sum.py", "test_window.py").check(passed=5)
    assert {"test_ring[nprocs=2]", "test_ring[nprocs=3]"} < set(done.cases)
    done = suite("--mpi", "-n", 4, "test_wrong.py").check(1, failed=2)
    values = done.text("test_values")
    assert "rank 2:" in values and "rank 3, in the same place: assert 3 < 2" in values, str(done)
    assert "deadlock" in done.text("test_wrong")
    done = suite("--mpi", "-n", 2, "test_deadlock.py").check(1, failed=1)
    shown = re.search(r"^    rank  call.*\n.*\n.*$", PAGE.read_text(), re.MULTILINE)[0]
    table = re.sub(r"\d\.\d s", "2.1 s", done.text("test_exchange"))
    assert all(line.strip() in table for line in shown.splitlines()), str(done)
